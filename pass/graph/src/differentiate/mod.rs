//! The reverse sweep: from a closed, functional graph to the joint graph of forward and backward.
//!
//! *Takes* a closed graph without mutation, the inputs to differentiate for, and which outputs get a cotangent.
//! *Gives* a [`Joint`]: the same graph with the backward appended. *Promises* that a value without a path to a seeded
//! output has no cotangent (`None`, which users see as the undefined tensor), never zeros; that nothing is computed
//! for an input that was not asked for. *Not here*: what is saved (`partition`).

mod push;
mod rule;
mod sweep;

pub use push::{Push, push};
pub use rule::Vjp;
pub use sweep::{Joint, varied, vjp};

use crate::ir::{Arg, Graph, Loc, TensorType, Type, Value};
use crate::ops::{Infer, Op, Results, ShapeError};

/// Shapes of the ops that have no shape rule of ours: the runtime asks LibTorch.
pub trait ShapeOracle {
    /// Result types of `op` on arguments of a closed graph; `types` gives those of the values among them.
    fn infer(&self, op: Op, args: &[Arg], types: &dyn Fn(Value) -> Type) -> Result<Vec<TensorType>, ShapeError>;
}

/// An oracle that knows nothing: graphs of Cotangent's own ops need no other.
pub struct NoOracle;

impl ShapeOracle for NoOracle {
    fn infer(&self, op: Op, _: &[Arg], _: &dyn Fn(Value) -> Type) -> Result<Vec<TensorType>, ShapeError> {
        Err(ShapeError(format!("no shape rule for `{op}`")))
    }
}

/// Appends `op` to a closed graph, with result types from its shape rule or the oracle.
pub fn emit(
    graph: &mut Graph,
    oracle: &dyn ShapeOracle,
    op: Op,
    args: Vec<Arg>,
    loc: Option<Loc>,
) -> Result<Vec<Value>, ShapeError> {
    let types = infer(graph, oracle, op, &args)?;
    if let Results::Count(n) = op.results
        && n != types.len()
    {
        return Err(ShapeError(format!(
            "the shape rule of `{op}` gives {} results",
            types.len()
        )));
    }
    Ok(graph.push(
        op,
        args,
        types.into_iter().map(|t| Type::Tensor(Some(t))).collect(),
        loc,
    ))
}

/// Result types of `op` on arguments of a closed graph.
pub fn infer(graph: &Graph, oracle: &dyn ShapeOracle, op: Op, args: &[Arg]) -> Result<Vec<TensorType>, ShapeError> {
    match op.own {
        Some(own) => (own.infer)(&Infer {
            op,
            args,
            types: &|v| graph.tensor(v).clone(),
        }),
        None => oracle.infer(op, args, &|v| graph.ty(v).clone()),
    }
}
