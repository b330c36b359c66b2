//! The build-time half of Cotangent.
//!
//! [`kernel`] differentiates functions of LLVM modules. [`capture`] stands in the linker's place: it receives the bitcode of every crate of a program, has the requested
//! functions raised to tensor graphs, embeds the result in the program and links it natively.

pub mod capture;
pub mod kernel;
pub mod llvm;
pub mod plugin;
pub mod raise;
mod weave;
