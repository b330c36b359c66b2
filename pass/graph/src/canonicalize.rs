//! Canonicalisation: composite functions become the functions that LibTorch runs for them.
//!
//! *Takes* a closed graph. *Gives* the same graph without ops whose rule is [`Rule::Composite`], and with the moments
//! of a normalisation detached where the program reads them: LibTorch differentiates the normalised tensor only, while
//! a second derivative goes through the moments. *Promises* the same values, bit for bit where LibTorch runs the same
//! functions, and the same draws from its generator. *Not here*: the decompositions themselves, which stand in the op
//! table.

use crate::differentiate::ShapeOracle;
use crate::ir::{Arg, Graph, Inst, Loc, Type, Value};
use crate::ops::families::Rewrite;
use crate::ops::{Op, Rule, RuleError};
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
            let moments = moments(&inst).to_vec();
            if is_plain_product(graph, &inst) {
                inst.op = Op::named("mm");
            }
            graph.insts.push(inst);
            for v in moments {
                if used(v, &todo, &graph.outputs) {
                    let ty = graph.ty(v).clone();
                    let detached = graph.push(Op::named("detach"), vec![v.into()], vec![ty], None);
                    renamed.insert(v, detached[0]);
                }
            }
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

/// A `matmul` of two matrices is what LibTorch runs as `mm`, after it has looked at their ranks.
fn is_plain_product(graph: &Graph, inst: &Inst) -> bool {
    let matrix = |a: &Arg| matches!(a, Arg::Value(v) if matches!(graph.ty(*v), Type::Tensor(Some(t)) if t.rank() == 2));
    inst.op.name == "matmul" && inst.args.iter().all(matrix)
}

/// The results that LibTorch takes for constants.
fn moments(inst: &Inst) -> &[Value] {
    if inst.op.name == "native_layer_norm" {
        &inst.results[1..]
    } else {
        &[]
    }
}

fn used(v: Value, todo: &[Inst], outputs: &[Value]) -> bool {
    let mut used = outputs.contains(&v);
    let args = todo.iter().flat_map(|inst| &inst.args);
    args.for_each(|a| a.for_each_value(&mut |u| used |= u == v));
    used
}
