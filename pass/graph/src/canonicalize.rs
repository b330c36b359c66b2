//! Canonicalisation: composite functions become the functions that LibTorch runs for them.
//!
//! *Takes* a closed graph. *Gives* the same graph without ops whose rule is [`Rule::Composite`]. *Promises* the same
//! values, bit for bit where LibTorch runs the same functions, and the same draws from its generator. *Not here*: the
//! decompositions themselves, which stand in the op table.

use crate::differentiate::ShapeOracle;
use crate::ir::{Arg, Graph, Loc, Value};
use crate::ops::families::Rewrite;
use crate::ops::{Rule, RuleError};
use std::collections::HashMap;

/// Rewrites the composites of a closed graph. Values keep their numbers, except results of composites.
///
/// # Errors
/// If the arguments of a composite are refused, as LibTorch would refuse them.
pub fn canonicalize(graph: &mut Graph, oracle: &dyn ShapeOracle) -> Result<(), (RuleError, Option<Loc>)> {
    let mut renamed: HashMap<Value, Value> = HashMap::new();
    let mut todo: Vec<_> = std::mem::take(&mut graph.insts).into_iter().rev().collect();
    while let Some(mut inst) = todo.pop() {
        for arg in &mut inst.args {
            *arg = arg.map_values(&mut |v| Arg::Value(*renamed.get(&v).unwrap_or(&v)));
        }
        let Some(Rule::Composite(decompose)) = inst.op.own.map(|o| o.rule) else {
            graph.insts.push(inst);
            continue;
        };
        let start = graph.insts.len();
        let stands_for = Rewrite::run(graph, oracle, (inst.op, inst.args, inst.loc.clone()), decompose)
            .map_err(|e| (e, inst.loc))?;
        renamed.insert(inst.results[0], stands_for);
        // A decomposition may contain composites.
        todo.extend(graph.insts.drain(start..).rev());
    }
    for output in &mut graph.outputs {
        *output = *renamed.get(output).unwrap_or(output);
    }
    Ok(())
}
