//! Forward mode, out of reverse mode: the cotangents are linear in the seeds, and the transpose of that linear map takes
//! tangents of the inputs to tangents of the outputs. So one table of rules serves both modes, and both agree.

use super::{Joint, ShapeOracle, vjp};
use crate::ir::{Arg, Graph, Inst, Loc, Type, Value};
use crate::ops::{Op, RuleError};
use std::collections::HashMap;

/// A joint graph with the computation of tangents behind it.
#[derive(Clone, Debug)]
pub struct Push {
    /// The joint graph, then what computes the tangents of the outputs. Its seeds stay inputs, which nothing reads.
    pub graph: Graph,
    /// For each input asked for, the input that carries its tangent; `None` where it has none, or no path leads from it
    /// to an output.
    pub tangents: Vec<Option<Value>>,
    /// For each output, its tangent; `None` where no path leads to it.
    pub outputs: Vec<Option<Value>>,
}

/// Forward mode for the inputs that a joint graph was made for. `moving` tells which of them have a tangent.
///
/// # Errors
/// If the derivative of an op has no derivative itself.
pub fn push(joint: &Joint, moving: &[bool], oracle: &dyn ShapeOracle) -> Result<Push, (RuleError, Option<Loc>)> {
    let mut graph = joint.graph.clone();
    let moves: Vec<bool> = joint
        .cotangents
        .iter()
        .zip(moving)
        .map(|(c, m)| c.is_some() && *m)
        .collect();
    let carried = joint.cotangents.iter().zip(&moves).filter(|(_, m)| **m);
    graph.outputs = carried.filter_map(|(c, _)| *c).collect();
    let seeds: Vec<Value> = joint.seeds.iter().flatten().copied().collect();
    let transposed = vjp(&graph, &seeds, &vec![true; graph.outputs.len()], oracle)?;
    let mut graph = transposed.graph;
    set_to_zero(&mut graph, &seeds, joint.forward);
    let mut tangents = transposed.seeds.into_iter();
    let mut outputs = transposed.cotangents.into_iter();
    Ok(Push {
        graph,
        tangents: moves.iter().map(|m| if *m { tangents.next()? } else { None }).collect(),
        outputs: joint.seeds.iter().map(|s| s.and_then(|_| outputs.next()?)).collect(),
    })
}

/// A linear map is its own derivative at every point, so that of the seeds at most the shapes are read: from the
/// instruction `at` on, they are zeros.
fn set_to_zero(graph: &mut Graph, seeds: &[Value], at: usize) {
    let mut zeros = HashMap::new();
    let mut made = vec![];
    for seed in seeds {
        let ty = graph.ty(*seed).clone();
        let zero = match &ty {
            Type::Tensor(Some(t)) => {
                let args = vec![Arg::ints(&t.shape), Arg::Kind(t.kind), Arg::Device(-1)];
                let result = graph.fresh(ty);
                made.push(Inst {
                    op: Op::named("zeros"),
                    args,
                    results: vec![result],
                    loc: None,
                });
                Arg::Value(result)
            }
            _ => Arg::Float(0.0),
        };
        zeros.insert(*seed, zero);
    }
    for arg in graph.insts[at..].iter_mut().flat_map(|inst| &mut inst.args) {
        *arg = arg.map_values(&mut |v| zeros.get(&v).cloned().unwrap_or(Arg::Value(v)));
    }
    graph.insts.splice(at..at, made);
}
