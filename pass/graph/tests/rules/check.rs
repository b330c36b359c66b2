//! The checks: derivatives against differences of the reference interpreter.

use crate::samples::{Random, Sample};
use cotangent_graph::differentiate::{Joint, NoOracle, vjp};
use cotangent_graph::interp::{Tensor, Value, run};
use cotangent_graph::ir::{Graph, Kind, Value as Name};
use cotangent_graph::verify::{Stage, verify};

/// What a check says when it fails.
pub(crate) type Outcome = Result<(), String>;

/// A change to the cotangents, to see that the check notices.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Mutation {
    /// None.
    Honest,
    /// Zeros.
    Zeroed,
    /// A thousandth too large.
    Scaled,
}

/// The components of a value.
pub(crate) fn components(v: &Value) -> Vec<f64> {
    match v {
        Value::Tensor(t) => t.to_f64(),
        Value::Float(x) => vec![*x],
        other => panic!("{other:?} has no components"),
    }
}

/// A value of the same form with other components.
fn with_components(v: &Value, components: Vec<f64>) -> Value {
    match v {
        Value::Tensor(t) => Tensor::from_f64(t.kind(), t.shape(), components).into(),
        _ => Value::Float(components[0]),
    }
}

pub(crate) fn dot(a: &[Value], b: &[Value]) -> f64 {
    let products = |(a, b): (&Value, &Value)| -> f64 {
        let (a, b) = (components(a), components(b));
        assert_eq!(a.len(), b.len(), "a cotangent has the shape of its value");
        a.iter().zip(&b).map(|(x, y)| x * y).sum()
    };
    a.iter().zip(b).map(products).sum()
}

/// A random value of the same form. Those of single precision are rounded to it.
pub(crate) fn random_like(v: &Value, random: &mut Random) -> Value {
    match v {
        Value::Tensor(t) => random.tensor(t.shape()).cast(t.kind()).into(),
        _ => Value::Float(random.real()),
    }
}

/// `v + h·u`
fn moved(v: &Value, u: &Value, h: f64) -> Value {
    let sum = components(v)
        .iter()
        .zip(components(u))
        .map(|(x, u)| x + h * u)
        .collect();
    with_components(v, sum)
}

/// Derivative of `<seeds, graph(inputs)>` as input `i` moves along `u`, from a stencil of order six.
fn slope(graph: &Graph, inputs: &[Value], i: usize, u: &Value, seeds: &[Value], h: f64) -> Result<f64, String> {
    let at = |k: f64| -> Result<f64, String> {
        let mut inputs = inputs.to_vec();
        inputs[i] = moved(&inputs[i], u, k * h);
        let outputs = run(graph, &inputs).map_err(|e| e.to_string())?;
        Ok(dot(&outputs, seeds))
    };
    let mut sum = 0.0;
    for (k, weight) in [(1.0, 45.0), (2.0, -9.0), (3.0, 1.0)] {
        sum += weight * (at(k)? - at(-k)?);
    }
    Ok(sum / (60.0 * h))
}

/// Is anything in single precision? Then differences are coarse.
fn coarse(graph: &Graph) -> bool {
    (0..graph.value_count()).any(|v| match graph.ty(Name(v as u32)) {
        cotangent_graph::ir::Type::Tensor(Some(t)) => t.kind == Kind::F32,
        ty => *ty == cotangent_graph::ir::Type::Float(32),
    })
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * (1.0 + a.abs().max(b.abs()))
}

/// The gradient program: inputs of the graph, then seeds; outputs the cotangents that exist.
pub(crate) fn gradient(graph: &Graph, active: &[bool]) -> Result<(Joint, Vec<Name>), String> {
    let wrt: Vec<Name> = (graph.inputs.iter().zip(active))
        .filter(|(_, a)| **a)
        .map(|(i, _)| i.value)
        .collect();
    let seeded = vec![true; graph.outputs.len()];
    let joint = vjp(graph, &wrt, &seeded, &NoOracle).map_err(|(e, _)| e.to_string())?;
    // Every argument that a rule emits must be of a form that the C function takes.
    verify(&joint.graph, Stage::Functional).map_err(|e| e.to_string())?;
    Ok((joint, wrt))
}

/// Is part of the derivative LibTorch's own? It cannot run here.
fn left_to_libtorch(graph: &Graph) -> bool {
    graph.insts.iter().any(|i| i.op.name == "tape.vjp")
}

/// Checks the gradient of a graph at a point; gives for each input how far a mutated cotangent would be off.
fn check(graph: &Graph, inputs: &[Value], active: &[bool], seed: u64, mutation: Mutation) -> Result<Vec<bool>, String> {
    let mut random = Random::new(seed);
    let outputs = run(graph, inputs).map_err(|e| e.to_string())?;
    let seeds: Vec<Value> = outputs.iter().map(|y| random_like(y, &mut random)).collect();
    let (joint, wrt) = gradient(graph, active)?;
    if left_to_libtorch(&joint.graph) {
        return Ok(vec![true]);
    }
    let mut program = joint.graph.clone();
    program.outputs = joint.cotangents.iter().flatten().copied().collect();
    let given: Vec<Value> = (seeds.iter().zip(&joint.seeds))
        .filter(|(_, s)| s.is_some())
        .map(|(v, _)| v.clone())
        .collect();
    let all: Vec<Value> = inputs.iter().cloned().chain(given).collect();
    let mut cotangents = run(&program, &all)
        .map_err(|e| format!("the gradient does not run: {e}"))?
        .into_iter();
    // A step that single precision resolves, or one for double precision.
    let (h, tolerance) = if coarse(graph) { (0.25, 1e-5) } else { (2e-3, 1e-9) };
    let mut noticed = vec![];
    for (name, bar) in wrt.iter().zip(&joint.cotangents) {
        let i = graph.inputs.iter().position(|x| x.value == *name).expect("an input");
        let u = random_like(&inputs[i], &mut random);
        let numeric = slope(graph, inputs, i, &u, &seeds, h)?;
        let bar = match bar {
            Some(_) => cotangents.next().expect("one for each"),
            None => with_components(&inputs[i], vec![0.0; components(&inputs[i]).len()]),
        };
        let exact = dot(&[bar], &[u]);
        let claimed = match mutation {
            Mutation::Honest => exact,
            Mutation::Zeroed => 0.0,
            Mutation::Scaled => 1.001 * exact,
        };
        let agree = close(claimed, numeric, tolerance);
        if mutation == Mutation::Honest && !agree {
            return Err(format!("input {i}: the rule gives {exact}, differences give {numeric}"));
        }
        noticed.push(!agree);
    }
    Ok(noticed)
}

/// First derivatives agree with differences.
pub(crate) fn first(sample: &Sample) -> Outcome {
    for seed in 1..4 {
        check(&sample.graph, &sample.inputs, &sample.active, seed, Mutation::Honest)
            .map_err(|e| format!("`{}`: {e}", sample.text))?;
    }
    Ok(())
}

/// No input has a cotangent: there is no path, not a path of zeros.
pub(crate) fn none(sample: &Sample) -> Outcome {
    run(&sample.graph, &sample.inputs).map_err(|e| format!("`{}`: {e}", sample.text))?;
    let (joint, _) = gradient(&sample.graph, &sample.active)?;
    match joint.cotangents.iter().any(Option::is_some) {
        true => Err(format!("`{}`: a cotangent appears", sample.text)),
        false => Ok(()),
    }
}

/// For each input asked for: does the check notice the mutation?
pub(crate) fn notices(sample: &Sample, mutation: Mutation) -> Result<Vec<bool>, String> {
    check(&sample.graph, &sample.inputs, &sample.active, 1, mutation)
}

/// Derivatives of the derivative program agree with differences: reverse over reverse.
pub(crate) fn second(sample: &Sample) -> Outcome {
    let (joint, _) = gradient(&sample.graph, &sample.active)?;
    let mut program = joint.graph;
    program.outputs = joint.cotangents.iter().flatten().copied().collect();
    if program.outputs.is_empty() {
        return Ok(());
    }
    let mut random = Random::new(7);
    let outputs = run(&sample.graph, &sample.inputs).map_err(|e| e.to_string())?;
    let seeds = (outputs.iter().zip(&joint.seeds)).filter(|(_, s)| s.is_some());
    let seeds: Vec<Value> = seeds.map(|(y, _)| random_like(y, &mut random)).collect();
    let inputs: Vec<Value> = sample.inputs.iter().cloned().chain(seeds).collect();
    let mut active = sample.active.clone();
    active.resize(inputs.len(), true);
    check(&program, &inputs, &active, 2, Mutation::Honest)
        .map(|_| ())
        .map_err(|e| format!("`{}`, second derivative: {e}", sample.text))
}

/// The transpose of a linear function: `<g, f(x + u) - f(x)> = <f*(g), u>` for steps of any size.
pub(crate) fn transpose(sample: &Sample, each: bool) -> Outcome {
    let mut random = Random::new(5);
    let (graph, inputs) = (&sample.graph, &sample.inputs);
    let fail = |e: String| format!("`{}`, transpose: {e}", sample.text);
    let outputs = run(graph, inputs).map_err(|e| e.to_string())?;
    let seeds: Vec<Value> = outputs.iter().map(|y| random_like(y, &mut random)).collect();
    let steps: Vec<Value> = inputs
        .iter()
        .zip(&sample.active)
        .map(|(x, a)| if *a { random_like(x, &mut random) } else { x.clone() })
        .collect();
    let indices: Vec<usize> = (0..inputs.len()).filter(|i| sample.active[*i]).collect();
    let groups: Vec<Vec<usize>> = match each {
        true => indices.iter().map(|i| vec![*i]).collect(),
        false => vec![indices],
    };
    for group in groups {
        let mut there = inputs.clone();
        let mut active = vec![false; inputs.len()];
        for &i in &group {
            there[i] = moved(&inputs[i], &steps[i], 1.0);
            active[i] = true;
        }
        let there = run(graph, &there).map_err(|e| fail(e.to_string()))?;
        let change = dot(&there, &seeds) - dot(&outputs, &seeds);
        let (joint, _) = gradient(graph, &active)?;
        let mut program = joint.graph.clone();
        program.outputs = joint.cotangents.iter().flatten().copied().collect();
        let given = (seeds.iter().zip(&joint.seeds)).filter(|(_, s)| s.is_some());
        let all: Vec<Value> = inputs.iter().cloned().chain(given.map(|(v, _)| v.clone())).collect();
        let bars = run(&program, &all).map_err(|e| fail(e.to_string()))?;
        let with_bar = group.iter().zip(&joint.cotangents).filter(|(_, c)| c.is_some());
        let directions: Vec<Value> = with_bar.map(|(i, _)| steps[*i].clone()).collect();
        let tolerance = if coarse(graph) { 1e-5 } else { 1e-12 };
        if !close(dot(&bars, &directions), change, tolerance) {
            return Err(fail(format!("{} is not {change}", dot(&bars, &directions))));
        }
    }
    Ok(())
}
