//! Lowering: from a plan to an LLVM module that calls LibTorch's C functions.
//!
//! *Takes* a plan. *Gives* [`Lowered`]: the text of a module with one function
//! `i32 f(ptr slots, ptr floats, ptr scalars)`, and what its caller must know. *Promises* that a handle that the
//! function makes stands in its slot until it is released, so that after a failure (the function returns the number
//! of the step, from one) the caller frees what the slots hold, and nothing else. *Not here*: machine code (`jit`).

mod args;
mod dense;
mod emit;
mod number;
mod scalar;

#[cfg(test)]
pub(crate) use scalar::LIBM;

use cotangent_graph::ir::{Kind, Loc, Type};
use cotangent_graph::ops::Op;
use cotangent_graph::plan::Plan;

/// A lowered plan.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// Name of the function that the graph is of.
    pub function: String,
    /// The LLVM module. It is the same in every process.
    pub text: String,
    /// Constant numbers that ops take: the third argument points at one C handle for each.
    pub scalars: Vec<Scalar>,
    /// What each slot may hold.
    pub slots: Vec<Held>,
    /// For each of the first slots, which hold the inputs, whether it stays the caller's.
    pub lent: Vec<bool>,
    /// Length of the array of floats.
    pub floats: usize,
    /// Where the function finds its inputs, in the plan's order.
    pub inputs: Vec<Place>,
    /// Where it leaves its outputs, in the plan's order.
    pub outputs: Vec<Place>,
    /// The steps, for messages.
    pub steps: Vec<(Op, Option<Loc>)>,
}

/// What a slot may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// A C handle of a tensor.
    Tensor,
    /// A tape.
    Tape,
}

/// Where an input or output stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a slot.
    Slot(usize),
    /// In the array of floats.
    Float(usize),
}

/// A constant number in a form that LibTorch takes.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// A scalar with an integer (or flag).
    Int(i64),
    /// A scalar with a float.
    Float(f64),
    /// A tensor without dimensions, of that kind.
    Tensor(f64, Kind),
}

/// Why a plan cannot be lowered. The earlier stages rule all of these out; none depends on the user's data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{op}` cannot be compiled: {why}")]
pub struct LowerError {
    /// The op.
    pub op: String,
    /// What is in the way.
    pub why: String,
}

/// What a slot for a value of that type holds.
fn held(ty: &Type) -> Option<Held> {
    match ty {
        Type::Tensor(_) => Some(Held::Tensor),
        Type::Tape => Some(Held::Tape),
        _ => None,
    }
}

/// Symbol of the function in the text of a lowered graph.
const SYMBOL: &str = "@cotangent_graph";

/// Lowers a plan.
///
/// # Errors
/// If the plan's graph was not closed, or holds an op that has no C function.
pub fn lower(plan: &Plan) -> Result<Lowered, LowerError> {
    emit::Emitter::new(plan)?.run()
}

impl Lowered {
    /// The text with another symbol for the function.
    #[cfg(feature = "jit")]
    pub(crate) fn named(&self, symbol: &str) -> String {
        self.text.replace(&format!("{SYMBOL}("), &format!("@{symbol}("))
    }
}
