//! Forward mode agrees with reverse mode, and starts from what the reverse saves.

use crate::check::{Outcome, dot, gradient, random_like};
use crate::samples::{Random, Sample};
use cotangent_graph::differentiate::{NoOracle, push};
use cotangent_graph::extract::part;
use cotangent_graph::interp::{Value, run};
use cotangent_graph::ir::Value as Name;
use cotangent_graph::partition::{Policy, residuals};

/// `<seeds, tangents of the outputs> = <cotangents of the inputs, tangents>`.
pub(crate) fn agrees(sample: &Sample) -> Outcome {
    let fail = |e: String| format!("`{}`, forward: {e}", sample.text);
    let (mut joint, wrt) = gradient(&sample.graph, &sample.active)?;
    let saved = residuals(&mut joint, Policy::SaveReads);
    let push = push(&joint, &vec![true; wrt.len()], &NoOracle).map_err(|(e, _)| fail(e.to_string()))?;
    // What LibTorch differentiates cannot run here.
    if push.graph.insts.iter().any(|i| i.op.name == "tape.vjp") {
        return Ok(());
    }
    let mut random = Random::new(11);
    let outputs = run(&sample.graph, &sample.inputs).map_err(|e| fail(e.to_string()))?;
    let seeds: Vec<Option<Value>> = (outputs.iter().zip(&joint.seeds))
        .map(|(y, s)| s.map(|_| random_like(y, &mut random)))
        .collect();
    let position = |v: &Name| {
        sample
            .graph
            .inputs
            .iter()
            .position(|i| i.value == *v)
            .expect("an input")
    };
    let steps: Vec<Value> = (wrt.iter())
        .map(|v| random_like(&sample.inputs[position(v)], &mut random))
        .collect();

    let mut reverse = joint.graph.clone();
    reverse.outputs = joint.cotangents.iter().flatten().chain(&saved).copied().collect();
    let all: Vec<Value> = sample
        .inputs
        .iter()
        .cloned()
        .chain(seeds.iter().flatten().cloned())
        .collect();
    let mut bars = run(&reverse, &all).map_err(|e| fail(e.to_string()))?;
    let kept = bars.split_off(bars.len() - saved.len());
    let moved = steps.iter().zip(&joint.cotangents).filter(|(_, c)| c.is_some());
    let moved: Vec<Value> = moved.map(|(t, _)| t.clone()).collect();
    let backward = dot(&bars, &moved);

    let given: Vec<Name> = saved.iter().chain(push.tangents.iter().flatten()).copied().collect();
    let wanted: Vec<Name> = push.outputs.iter().flatten().copied().collect();
    let part = part(&push.graph, "forward", &wanted, &given, Some(0)).map_err(|e| fail(format!("{e:?}")))?;
    let tangents = steps.iter().zip(&push.tangents).filter(|(_, v)| v.is_some());
    let values: Vec<Value> = kept.into_iter().chain(tangents.map(|(t, _)| t.clone())).collect();
    let at = |v: &Name| given.iter().position(|g| g == v).expect("it is given");
    let inputs: Vec<Value> = part.inputs.iter().map(|v| values[at(v)].clone()).collect();
    let dots = run(&part.graph, &inputs).map_err(|e| fail(e.to_string()))?;
    let seeded = seeds.into_iter().zip(&push.outputs).filter(|(_, v)| v.is_some());
    let seeded: Vec<Value> = seeded.filter_map(|(s, _)| s).collect();
    let forward = dot(&seeded, &dots);
    match (forward - backward).abs() <= 1e-5 * (1.0 + backward.abs()) {
        true => Ok(()),
        false => Err(fail(format!("{forward} is not {backward}"))),
    }
}
