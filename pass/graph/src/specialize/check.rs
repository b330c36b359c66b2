//! What can be told at build time: ops that no derivative will get through, whatever the shapes are.

use crate::functionalize::{changes_metadata, twin};
use crate::ir::{Arg, Graph, Inst, Type, Value};
use crate::ops::{Op, Rule};
use crate::program::{Datum, Leaf, Program, Refusal};
use crate::scalar::{Cast, Function};
use std::collections::HashSet;

/// Lists, for every leaf, the ops that specialization or differentiation would refuse: those of a shape that depends
/// on contents, writes without a functional form, and ops without a derivative on a path from the arguments asked
/// for (by position) to what the function leaves.
pub fn check(program: &Program, wrt: &[usize]) -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = vec![];
    for leaf in &program.leaves {
        let (from, to) = (varied(&leaf.graph, wrt), needed(leaf));
        let bits = bits(&leaf.graph, &from);
        for inst in &leaf.graph.insts {
            let is_needed = inst.results.iter().any(|r| to.contains(r));
            let on_path = is_needed && inst.results.iter().any(|r| from.contains(r));
            let made_of_bits = is_needed && is_float(&leaf.graph, inst) && is_same_bits(inst) && reads(inst, &bits);
            let message = match made_of_bits {
                true => Some(MADE_OF_BITS.to_owned()),
                false => refusal(inst, on_path),
            };
            if let Some(message) = message {
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

const MADE_OF_BITS: &str =
    "arithmetic on the bits of a float that become a float again; compute on the float, not on its bits";

/// Integers that are computed from the bits of floats that vary. What comparisons give is no such number, and nothing that
/// a comparison decides.
fn bits(graph: &Graph, varied: &HashSet<Value>) -> HashSet<Value> {
    let mut bits = HashSet::new();
    for inst in &graph.insts {
        let Some((function, _)) = Function::of(inst.op, &inst.args) else {
            continue;
        };
        let taken = match function {
            Function::ICmp(_) | Function::FCmp(_) => false,
            Function::Cast(Cast::Bits) => reads(inst, varied) || reads(inst, &bits),
            Function::Select => inst.args[1..].iter().any(|a| mentions(a, &bits)),
            _ => reads(inst, &bits),
        };
        if taken && !is_float(graph, inst) {
            bits.extend(inst.results.iter().copied());
        }
    }
    bits
}

fn is_same_bits(inst: &Inst) -> bool {
    matches!(Function::of(inst.op, &inst.args), Some((Function::Cast(Cast::Bits), _)))
}

fn is_float(graph: &Graph, inst: &Inst) -> bool {
    inst.results.iter().any(|r| matches!(graph.ty(*r), Type::Float(_)))
}

fn reads(inst: &Inst, values: &HashSet<Value>) -> bool {
    inst.args.iter().any(|a| mentions(a, values))
}

fn mentions(arg: &Arg, values: &HashSet<Value>) -> bool {
    let mut found = false;
    arg.for_each_value(&mut |v| found |= values.contains(&v));
    found
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
