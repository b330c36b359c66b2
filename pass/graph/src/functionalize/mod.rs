//! Functionalization: in-place ops and writes through views become pure values and final writes.
//!
//! *Takes* a [`Specialized`] closed graph. *Gives* the same graph without writes, and the [`Effects`] that a call has
//! to carry out at its end: which inputs get which final values, and which outputs are views of such inputs.
//! *Promises* that a tensor written to keeps its kind and shape, that every read sees the writes before it and none
//! after it, and that outputs which shared storage still do. What it decides by strides or by which arguments share
//! memory is added to the prologue. *Not here*: carrying out the writes (the runtime).

mod rewrite;
mod special;
mod storage;
mod strides;
mod twin;
mod views;

#[cfg(test)]
mod tests;

pub(crate) use twin::{changes_metadata, infer_any, twin};
pub use views::Step;

use crate::differentiate::ShapeOracle;
use crate::ir::{Graph, Loc, Value};
use crate::specialize::{InputInfo, Specialized, Step as Check};
use std::fmt;

/// What a call does to its arguments' tensors, after the graph has run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// Final values, to be copied into inputs (`copy_`), each once, in this order.
    pub writes: Vec<Write>,
    /// Outputs that are views of inputs that were written to. The graph's own value for such an output is equal to it
    /// but lies elsewhere: after the writes, the output is the view of the input itself.
    pub aliases: Vec<Alias>,
}

/// A final write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Position of the input.
    pub input: usize,
    /// Position of the output that holds the final value. These outputs stand after all others.
    pub output: usize,
}

/// An output that shares the storage of a written input.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// Position of the output.
    pub output: usize,
    /// Position of the input.
    pub input: usize,
    /// The views that lead from the input to the output; none where it is the same tensor.
    pub steps: Vec<Step>,
}

impl fmt::Display for Effects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for w in &self.writes {
            writeln!(f, "; input {} becomes output {}", w.input, w.output)?;
        }
        for a in &self.aliases {
            write!(f, "; output {} is input {}", a.output, a.input)?;
            for step in &a.steps {
                write!(f, ", {}", step.op)?;
                let args: Vec<String> = step.args[1..].iter().map(ToString::to_string).collect();
                if !args.is_empty() {
                    write!(f, "({})", args.join(", "))?;
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Something that the prologue has to check because functionalization depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// The input has the strides that this call saw.
    Strides(Value),
    /// The inputs share what they shared in this call.
    Sharing {
        /// One input.
        a: Value,
        /// The other.
        b: Value,
        /// Are they one tensor?
        same_tensor: bool,
        /// Are they on one storage?
        same_storage: bool,
    },
}

/// Why a graph cannot be functionalized.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", at.as_ref().map(|l| format!(" (at {l})")).unwrap_or_default())]
pub struct FunctionalizeError {
    /// What is in the way, and what to do.
    pub message: String,
    /// Where.
    pub at: Option<Loc>,
}

/// Makes a specialized graph functional. `wrt` are the inputs that derivatives are asked for.
///
/// # Errors
/// If a write cannot be expressed: an op without a functional form, a tensor that may or may not share memory.
pub fn functionalize(
    specialized: &mut Specialized,
    wrt: &[Value],
    oracle: &dyn ShapeOracle,
) -> Result<Effects, FunctionalizeError> {
    let (effects, guards) = of_graph(&mut specialized.graph, &specialized.inputs, wrt, oracle)?;
    let slot = |v: Value| specialized.inputs.iter().find(|i| i.value == v).map(|i| i.slot);
    for guard in guards {
        let check = match guard {
            Guard::Strides(v) => {
                let facts = specialized
                    .inputs
                    .iter()
                    .find(|i| i.value == v)
                    .and_then(|i| i.facts.as_ref());
                slot(v).zip(facts).map(|(slot, f)| Check::Strides {
                    slot,
                    strides: f.strides.clone(),
                })
            }
            Guard::Sharing {
                a,
                b,
                same_tensor,
                same_storage,
            } => slot(a).zip(slot(b)).map(|(a, b)| Check::Sharing {
                a,
                b,
                same_tensor,
                same_storage,
            }),
        };
        specialized.prologue.steps.extend(check);
    }
    Ok(effects)
}

/// Makes a closed graph functional; without facts about its inputs, they are taken to share nothing and to lie in
/// memory in any way.
pub(crate) fn of_graph(
    graph: &mut Graph,
    inputs: &[InputInfo],
    wrt: &[Value],
    oracle: &dyn ShapeOracle,
) -> Result<(Effects, Vec<Guard>), FunctionalizeError> {
    if graph.insts.iter().all(|i| i.op.facts.mutates.is_empty()) {
        return Ok((Effects::default(), vec![]));
    }
    rewrite::rewrite(graph, inputs, wrt, oracle)
}
