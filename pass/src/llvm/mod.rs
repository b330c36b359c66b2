//! LLVM at the edge: bitcode modules, and the decoder that turns them into the evaluator's own form.
//!
//! The only unsafe code of the pass. [`raw`] wraps the C API value by value; [`decode`] reads functions, [`constant`]
//! constants and types, [`debug`] source locations.

mod constant;
mod debug;
mod decode;
mod module;
mod raw;

pub(crate) use debug::Locations;
pub(crate) use module::{Context, Module};
