//! In the linker's place: bitcode in, a native program with its artifact out.
//!
//! `cargo cotangent` makes rustc emit unoptimised bitcode and call this module as its linker:
//!
//! ```text
//! command ─▶ bitcode ─▶ raise ─▶ embed ─▶ native link
//! ```

mod addresses;
mod bitcode;
mod command;
mod diagnostics;
mod embed;
mod link;
mod state;
mod tools;

pub(crate) use addresses::exported;
pub use bitcode::{Bitcode, Module};
pub use command::LinkCommand;
pub use diagnostics::Failure;
pub use embed::{END_SYMBOL, START_SYMBOL, extract, write_shared_object};
pub use link::{Raise, Refused, link};
pub use state::{LinkRecord, State, tool_identity};
pub use tools::{LLVM_MAJOR, MissingTool, PREFIX_VARIABLE, Tools};
