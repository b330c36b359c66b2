//! The run-time half of Cotangent.
//!
//! A raised function arrives as a `cotangent_graph::program::Program`. [`exec`] turns the graphs that the middle end
//! makes of it into machine code ([`lower`]; `jit`, or a library that an earlier run saved) that calls LibTorch's own
//! kernels by address ([`kernels`]). [`kernel`] calls the derivatives of functions over floats and memory, which the
//! pass wrote as native code.

pub mod differentiable;
pub mod engine;
pub mod entry;
pub mod error;
pub mod exec;
mod imports;
#[cfg(feature = "jit")]
pub mod jit;
pub mod kernel;
pub mod kernels;
mod library;
pub mod lower;
pub mod operations;
mod saved;
pub mod stop;
pub mod torch;

pub use differentiable::Differentiable;
pub use error::Error;
pub use saved::Saved;
pub use stop::stop_gradient;
