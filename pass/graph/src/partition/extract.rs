//! Taking some of a graph's instructions into a graph of their own.

use crate::ir::{Arg, Graph, Input, Type, Value};
use crate::simplify::has_effect;

/// The instructions at the positions `insts`, as far as `outputs` or an effect need them, as a graph of its own with
/// `inputs` (values of `graph`) as inputs. Values are numbered anew, without gaps.
pub(super) fn extract(
    graph: &Graph,
    inputs: &[Input],
    insts: impl DoubleEndedIterator<Item = usize>,
    outputs: &[Value],
) -> Graph {
    let mut needed = vec![false; graph.value_count()];
    outputs.iter().for_each(|v| needed[v.index()] = true);
    let mut kept = vec![];
    for i in insts.rev() {
        let inst = &graph.insts[i];
        if has_effect(inst) || inst.results.iter().any(|r| needed[r.index()]) {
            kept.push(inst);
            let mark = &mut |v: Value| needed[v.index()] = true;
            inst.args.iter().for_each(|a| a.for_each_value(mark));
        }
    }

    let mut out = Graph::new(graph.name.clone());
    let mut renumbered = vec![None; graph.value_count()];
    for input in inputs {
        renumbered[input.value.index()] = Some(out.input(input.name.clone(), graph.ty(input.value).clone()));
    }
    for inst in kept.into_iter().rev() {
        let args = inst
            .args
            .iter()
            .map(|a| a.map_values(&mut |v| Arg::Value(new(&renumbered, v))));
        let types: Vec<Type> = inst.results.iter().map(|r| graph.ty(*r).clone()).collect();
        let results = out.push(inst.op, args.collect(), types, inst.loc.clone());
        for (old, new) in inst.results.iter().zip(results) {
            renumbered[old.index()] = Some(new);
        }
    }
    out.outputs = outputs.iter().map(|v| new(&renumbered, *v)).collect();
    out
}

fn new(renumbered: &[Option<Value>], v: Value) -> Value {
    renumbered[v.index()].unwrap_or_else(|| unreachable!("{v} is needed but neither an input nor made here"))
}
