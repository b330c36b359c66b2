//! In the linker's place: bitcode in, a native program with its artifact out.
//!
//! `cargo cotangent` makes rustc emit unoptimised bitcode and call this module as its linker.

mod bitcode;

pub use bitcode::{Bitcode, Module};
