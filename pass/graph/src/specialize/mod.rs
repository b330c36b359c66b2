//! Specialization: from a program and the facts of one call to one closed graph.
//!
//! *Takes* a [`crate::program::Program`], the running program as a [`Host`], and an oracle for the shapes that
//! Cotangent has no rule for. *Gives* a [`Specialized`]: a closed graph, the [`Prologue`] that later calls run to
//! see whether it is theirs and to fetch its inputs, and the image of what the function leaves in memory. *Promises*
//! that whatever the graph depends on is checked by the prologue, in the order in which the function itself reads,
//! and that nothing else is: floats, addresses and integers that decide nothing may differ from call to call.
//! *Not here*: strides and sharing of storage, which only writes make visible (see `functionalize`).

mod eval;
mod host;
mod image;
mod outcome;
mod prologue;
mod scalars;
mod tensors;
#[cfg(test)]
mod tests;

pub use eval::specialize;
pub use host::{Host, TensorFacts, contiguous_strides};
pub use outcome::{
    ClosedBase, ClosedDatum, ClosedImage, ClosedWrite, InputInfo, Outcome, Place, Pointer, SpecializeError, Specialized,
};
pub use prologue::{Inputs, Operand, Prologue, Slot, Step};
