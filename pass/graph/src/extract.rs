//! Part of a graph as a graph of its own: what computes some values from some others.

use crate::ir::{Arg, Graph, Inst, Value};
use std::collections::{HashMap, HashSet};

/// A part of a graph.
#[derive(Clone, Debug)]
pub struct Part {
    /// The part. Its outputs are the values asked for, in order, each once.
    pub graph: Graph,
    /// What its inputs are in the whole graph, in order.
    pub inputs: Vec<Value>,
}

/// Why a part cannot be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It would need this input, which is not at hand.
    Input(Value),
    /// It would draw random numbers again (position of the instruction).
    Random(usize),
}

/// The part of `whole` that computes `wanted` from `given`. With `effects` the random instructions among the first
/// so many stay even where nothing reads them (LibTorch's generator must advance as it would in the whole graph);
/// with `None`, none may be needed.
///
/// # Errors
/// If that takes more than `given`.
pub fn part(
    whole: &Graph,
    name: &str,
    wanted: &[Value],
    given: &[Value],
    effects: Option<usize>,
) -> Result<Part, Missing> {
    let at_hand: HashSet<Value> = given.iter().copied().collect();
    let definitions = whole.definitions();
    let mut needed = vec![false; whole.insts.len()];
    let mut used = HashSet::new();
    let mut work: Vec<Value> = wanted.to_vec();
    for (i, inst) in whole.insts.iter().enumerate().take(effects.unwrap_or(0)) {
        if inst.op.facts.random {
            require(inst, i, &mut needed, &mut work);
        }
    }
    while let Some(v) = work.pop() {
        if at_hand.contains(&v) {
            used.insert(v);
            continue;
        }
        let i = definitions[v.index()].ok_or(Missing::Input(v))?;
        if effects.is_none() && whole.insts[i].op.facts.random {
            return Err(Missing::Random(i));
        }
        require(&whole.insts[i], i, &mut needed, &mut work);
    }

    let mut graph = Graph::new(name);
    let mut map: HashMap<Value, Value> = HashMap::new();
    let mut inputs = vec![];
    for v in given {
        if used.contains(v) && !map.contains_key(v) {
            let named = whole.inputs.iter().find(|i| i.value == *v);
            let name = named.map_or_else(|| format!("saved{}", inputs.len()), |i| i.name.clone());
            map.insert(*v, graph.input(name, whole.ty(*v).clone()));
            inputs.push(*v);
        }
    }
    for (inst, _) in whole.insts.iter().zip(&needed).filter(|(_, n)| **n) {
        let renamed = |a: &Arg| a.map_values(&mut |v| Arg::Value(map[&v]));
        let args = inst.args.iter().map(renamed).collect();
        let types = inst.results.iter().map(|r| whole.ty(*r).clone()).collect();
        let results = graph.push(inst.op, args, types, inst.loc.clone());
        for (old, new) in inst.results.iter().zip(results) {
            map.entry(*old).or_insert(new);
        }
    }
    graph.outputs = wanted.iter().map(|v| map[v]).collect();
    Ok(Part { graph, inputs })
}

fn require(inst: &Inst, i: usize, needed: &mut [bool], work: &mut Vec<Value>) {
    if !std::mem::replace(&mut needed[i], true) {
        inst.args.iter().for_each(|a| a.for_each_value(&mut |v| work.push(v)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Kind, Type};
    use crate::ops::Op;

    fn whole() -> (Graph, Vec<Value>) {
        let t = Type::tensor(Kind::F32, [2]);
        let mut g = Graph::new("f");
        let x = g.input("x", t.clone());
        let w = g.input("w", t.clone());
        let mut op = |name: &str, args: Vec<Arg>| g.push(Op::named(name), args, vec![t.clone()], None)[0];
        let a = op("mul", vec![x.into(), w.into()]);
        let noise = op("rand_like", vec![x.into()]);
        let b = op("tanh", vec![a.into()]);
        let c = op("add", vec![b.into(), noise.into()]);
        g.outputs = vec![c];
        (g, vec![x, w, a, noise, b, c])
    }

    #[test]
    fn only_what_is_asked_for_is_computed_and_only_from_what_is_given() {
        let (g, v) = whole();
        let p = part(&g, "p", &[v[4]], &[v[1], v[2]], None).unwrap();
        assert_eq!(p.inputs, [v[2]]);
        assert_eq!(p.graph.insts.len(), 1);
        assert_eq!(p.graph.insts[0].op.name, "tanh");
    }

    #[test]
    fn a_missing_input_and_a_second_draw_are_told() {
        let (g, v) = whole();
        assert_eq!(part(&g, "p", &[v[4]], &[v[0]], None).unwrap_err(), Missing::Input(v[1]));
        assert_eq!(
            part(&g, "p", &[v[5]], &[v[0], v[1]], None).unwrap_err(),
            Missing::Random(1)
        );
    }

    #[test]
    fn random_effects_of_the_forward_stay() {
        let (g, v) = whole();
        let p = part(&g, "p", &[v[4]], &[v[0], v[1]], Some(4)).unwrap();
        let names: Vec<&str> = p.graph.insts.iter().map(|i| i.op.name).collect();
        assert_eq!(names, ["mul", "rand_like", "tanh"]);
        assert_eq!(p.graph.outputs.len(), 1);
    }
}
