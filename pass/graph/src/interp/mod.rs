//! The reference interpreter: runs a closed graph on the CPU, slowly and exactly as LibTorch would.
//!
//! It is the oracle of this crate's tests: what a stage rewrites must run to the same numbers here. Each kernel is a
//! plain loop; floats are computed in `f64` and rounded to the kind of the result. An in-place op is computed as its
//! functional twin and gives the new value.

mod activations;
mod args;
mod contraction;
mod convolution;
mod create;
mod elementwise;
mod facts;
mod images;
mod indexing;
mod lanes;
mod losses;
mod matmul;
mod normalisation;
mod oracle;
mod ordering;
mod padding;
mod pieces;
mod promote;
mod reductions;
mod run;
mod scalars;
mod shape;
mod tensor;

pub use oracle::Shapes;
pub use run::{EvalArg, InterpError, Value, eval_op, run, supports};
pub use tensor::{Data, Tensor, count, round, strided_indices, strides, wrap};
