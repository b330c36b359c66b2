//! Specialization: from a program and the facts of one call to one closed graph.

mod host;
mod outcome;
mod prologue;

pub use host::{Host, TensorFacts, contiguous_strides};
pub use outcome::{
    ClosedBase, ClosedDatum, ClosedImage, ClosedWrite, InputInfo, Outcome, Place, Pointer, SpecializeError, Specialized,
};
pub use prologue::{Inputs, Operand, Prologue, Slot, Step};
