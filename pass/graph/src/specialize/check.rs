//! What can be told at build time: ops that no derivative will get through, whatever the shapes are.

use crate::functionalize::{changes_metadata, twin};
use crate::ir::{Arg, Graph, Inst, Type, Value};
use crate::ops::{Op, Rule};
use crate::program::{Datum, Leaf, Program, Refusal};
use std::collections::HashSet;

/// Lists, for every leaf, the ops that specialization or differentiation would refuse: those of a shape that depends
/// on contents, writes without a functional form, and ops without a derivative on a path from the arguments asked
/// for (by position) to what the function leaves.
pub fn check(program: &Program, wrt: &[usize]) -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = vec![];
    for leaf in &program.leaves {
        let (from, to) = (varied(&leaf.graph, wrt), needed(leaf));
        for inst in &leaf.graph.insts {
            let on_path = inst.results.iter().any(|r| from.contains(r) && to.contains(r));
            if let Some(message) = refusal(inst, on_path) {
                let refusal = Refusal {
                    message,
                    at: inst.loc.iter().cloned().collect(),
                };
                if !refusals.contains(&refusal) {
                    refusals.push(refusal);
                }
            }
        }
    }
    refusals
}

fn refusal(inst: &Inst, on_path: bool) -> Option<String> {
    let op = inst.op;
    if !op.is_libtorch() {
        return None;
    }
    if op.facts.dynamic_shape && op.own.is_none() {
        return Some(super::dynamic_shape(op));
    }
    if changes_metadata(op) || (op.facts.mutates == [0] && op.name != "copy_" && twin(op).is_none()) {
        return Some(super::unknown_write(op));
    }
    let op = twin(op).map_or(op, |t| t.op);
    match rule(op) {
        Some(Rule::Unsupported(why)) if on_path => Some(format!(
            "no derivative for `{op}`: {why}; or take its argument out of the derivative with `detach()`"
        )),
        _ => None,
    }
}

fn rule(op: Op) -> Option<Rule> {
    op.own.map(|o| o.rule)
}

/// Does the op pass no derivative on?
fn is_constant(inst: &Inst) -> bool {
    matches!(rule(inst.op), Some(Rule::Constant)) || inst.op.name == "detach"
}

/// Values that vary with the arguments asked for. A write makes its target vary.
fn varied(graph: &Graph, wrt: &[usize]) -> HashSet<Value> {
    let mut varied: HashSet<Value> = HashSet::new();
    for inst in &graph.insts {
        let asked = inst.op.name == "host.arg"
            && matches!(inst.args.first(), Some(Arg::Int(i)) if wrt.iter().any(|w| *w as i64 == *i));
        let mut depends = asked;
        inst.args
            .iter()
            .for_each(|a| a.for_each_value(&mut |v| depends |= varied.contains(&v)));
        if !depends || is_constant(inst) {
            continue;
        }
        let carries = |v: &&Value| !matches!(graph.ty(**v), Type::Int(_));
        varied.extend(inst.results.iter().filter(carries));
        varied.extend(targets(inst));
    }
    varied
}

/// Values that what the function leaves depends on. What is written to a value that is needed is needed.
fn needed(leaf: &Leaf) -> HashSet<Value> {
    let mut needed: HashSet<Value> = leaf.graph.outputs.iter().copied().collect();
    for write in &leaf.image.writes {
        if let Datum::Scalar {
            value: Arg::Value(v), ..
        } = &write.datum
        {
            needed.insert(*v);
        }
    }
    for inst in leaf.graph.insts.iter().rev() {
        let writes = !inst.op.facts.mutates.is_empty();
        if (writes || inst.results.iter().any(|r| needed.contains(r))) && !is_constant(inst) {
            inst.args
                .iter()
                .for_each(|a| a.for_each_value(&mut |v| needed.extend([v])));
            needed.extend(inst.results.iter().filter(|_| writes));
        }
    }
    needed
}

/// The tensors that an instruction writes to.
fn targets(inst: &Inst) -> impl Iterator<Item = Value> + '_ {
    inst.op.facts.mutates.iter().filter_map(|i| match inst.args.get(*i) {
        Some(Arg::Value(v)) => Some(*v),
        _ => None,
    })
}
