//! Kernels: derivatives of LLVM functions over floats in registers and memory.
//!
//! A frontend prepares a module that holds what its requests reach, and asks. The planner emits a derivative per
//! function and activity into the module.

pub mod analysis;
pub mod attributes;
pub mod callee;
pub mod caught;
pub mod engine;
pub mod forward;
mod globals;
mod lost;
pub(crate) mod marks;
mod order;
pub mod planner;
mod pointers;
pub mod prepare;
pub mod refusal;
pub mod request;
pub mod reverse;
pub mod root;
pub mod rules;
pub mod support;
mod tape;

pub use planner::{differentiate, differentiate_with_tapes};
pub use refusal::Refusal;
pub use request::{Activity, DiffRequest, Mode};
pub(crate) use tape::tape_of;
pub use tape::{Loop, Tape};
