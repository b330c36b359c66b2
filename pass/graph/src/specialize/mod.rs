//! Specialization: from a program and the facts of one call to one closed graph.
//!
//! *Takes* a [`crate::program::Program`], the running program as a [`Host`], and an oracle for the shapes that
//! Cotangent has no rule for. *Gives* a [`Specialized`]: a closed graph, the [`Prologue`] that later calls run to
//! see whether it is theirs and to fetch its inputs, and the image of what the function leaves in memory. *Promises*
//! that whatever the graph depends on is checked by the prologue, in the order in which the function itself reads,
//! and that nothing else is: floats, addresses and integers that decide nothing may differ from call to call.
//! Where only running can tell how to go on (a decision on a tensor's elements, a rule of the user's), the graph is that
//! of one region and ends in a [`Cut`]; [`resume`] closes the next one.
//! *Not here*: strides and sharing of storage, which only writes make visible (see `functionalize`).

mod check;
mod cut;
mod eval;
mod host;
mod image;
mod nodes;
mod outcome;
mod prologue;
mod reads;
mod resume;
mod scalars;
mod tensors;
#[cfg(test)]
mod tests;

pub use check::check;
pub use cut::{Action, Cut, Passed, Returned, RuleCall, Suspended};
pub use eval::specialize;
pub use host::{Host, TensorFacts, contiguous_strides};
pub use outcome::{
    ClosedBase, ClosedDatum, ClosedImage, ClosedWrite, InputInfo, Outcome, Place, Pointer, SpecializeError, Specialized,
};
pub use prologue::{Inputs, Operand, Prologue, Slot, Step};
pub use resume::resume;

use crate::ops::Op;

fn dynamic_shape(op: Op) -> String {
    format!(
        "the shape of the result of `{op}` depends on the contents of its argument, which is not supported; call it \
         outside the function, or use a form of fixed shape (a mask with `where_self`, `masked_fill`)"
    )
}

fn unknown_write(op: Op) -> String {
    format!(
        "`{op}` changes a tensor in place in a way that Cotangent knows no functional form of; use a form that returns \
         a new tensor"
    )
}
