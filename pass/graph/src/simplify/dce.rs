//! Dead code: what no output needs goes.

use crate::ir::{Graph, Inst, Value};

/// Does executing the instruction matter beyond its results? Random ops move LibTorch's generator.
pub(crate) fn has_effect(inst: &Inst) -> bool {
    inst.op.facts.random || !inst.op.facts.mutates.is_empty()
}

/// Removes instructions without effect that neither an output nor a value of `also` needs. Tells for each
/// instruction whether it was kept.
pub fn dce(graph: &mut Graph, also: &[Value]) -> Vec<bool> {
    let mut needed = vec![false; graph.value_count()];
    for v in graph.outputs.iter().chain(also) {
        needed[v.index()] = true;
    }
    let mut kept = vec![false; graph.insts.len()];
    for (i, inst) in graph.insts.iter().enumerate().rev() {
        if has_effect(inst) || inst.results.iter().any(|r| needed[r.index()]) {
            kept[i] = true;
            inst.args
                .iter()
                .for_each(|a| a.for_each_value(&mut |v| needed[v.index()] = true));
        }
    }
    let mut keep = kept.iter();
    graph.insts.retain(|_| *keep.next().expect("one flag per instruction"));
    kept
}
