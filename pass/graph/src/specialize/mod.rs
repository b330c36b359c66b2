//! Specialization: from a program and the facts of one call to one closed graph.

mod eval;
mod host;
mod image;
mod outcome;
mod prologue;
mod scalars;
mod tensors;

pub use eval::specialize;
pub use host::{Host, TensorFacts, contiguous_strides};
pub use outcome::{
    ClosedBase, ClosedDatum, ClosedImage, ClosedWrite, InputInfo, Outcome, Place, Pointer, SpecializeError, Specialized,
};
pub use prologue::{Inputs, Operand, Prologue, Slot, Step};
