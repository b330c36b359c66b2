//! A case through the graph crate: forward, rules, and both run by the reference interpreter.

use crate::case::{Case, Flag};
use crate::compare::compare;
use crate::graph::CaseGraph;
use crate::report::Outcome;
use cotangent_graph::canonicalize::canonicalize;
use cotangent_graph::differentiate::{Joint, vjp};
use cotangent_graph::functionalize::Effects;
use cotangent_graph::interp::{InterpError, Shapes, Tensor, Value, run};
use cotangent_graph::{ir, simplify};

/// Runs one case and holds it against what was recorded.
pub fn interpret(case: &Case) -> Outcome {
    attempt(case).map_or_else(|o| o, |()| Outcome::Passed)
}

fn attempt(case: &Case) -> Result<(), Outcome> {
    let mut built = case.graph().map_err(Outcome::Refused)?;
    if case.name.starts_with("as_strided") && case.inputs.iter().any(|i| i.value.layout.is_some()) {
        return Err(Outcome::Refused("the interpreter keeps no strides".into()));
    }
    let inputs: Vec<Value> = case.inputs.iter().map(|i| i.value.tensor.clone().into()).collect();
    let effects = built.functionalize(&case.wrt(), &Shapes)?;
    forward(case, &built, &effects, &inputs)?;
    match canonicalize(&mut built.graph, &Shapes) {
        Ok(()) => forward(case, &built, &effects, &inputs)?,
        Err((e, _)) => return Err(Outcome::Refused(e.to_string())),
    }
    let Some(mut joint) = differentiated(case, &built)? else {
        return Ok(());
    };
    let inputs = seeded(case, &joint, inputs)?;
    gradients(case, &joint, &inputs)?;
    simplify::joint(&mut joint);
    gradients(case, &joint, &inputs).map_err(|o| match o {
        Outcome::Failed(why) => Outcome::Failed(format!("simplified: {why}")),
        other => other,
    })
}

fn forward(case: &Case, built: &CaseGraph, effects: &Effects, inputs: &[Value]) -> Result<(), Outcome> {
    let outputs = run(&built.graph, inputs).map_err(|e| declined(&e))?;
    for (k, got) in built.outputs.iter().zip(&outputs) {
        let want = case.outputs[*k]
            .as_ref()
            .expect("only defined outputs are in the graph");
        check(&format!("output {k}"), got, want, case)?;
    }
    for (i, input) in case.inputs.iter().enumerate() {
        let Some(want) = &input.after else { continue };
        match effects.writes.iter().find(|w| w.input == i) {
            Some(write) => check(&format!("input {i} afterwards"), &outputs[write.output], want, case)?,
            None => compare(&input.value.tensor, want, case)
                .map_err(|why| Outcome::Failed(format!("input {i} is not written to: {why}")))?,
        }
    }
    Ok(())
}

fn declined(e: &InterpError) -> Outcome {
    match e {
        InterpError::NotInterpreted(_) => Outcome::Refused(e.to_string()),
        InterpError::Invalid(_) => Outcome::Failed(e.to_string()),
    }
}

fn check(what: &str, got: &Value, want: &Tensor, case: &Case) -> Result<(), Outcome> {
    let failed = |why: String| Outcome::Failed(format!("{what}: {why}"));
    match got {
        Value::Tensor(got) => compare(got, want, case).map_err(failed),
        other => Err(failed(format!("{other:?} instead of a tensor"))),
    }
}

/// The joint graph; `None` where nothing is asked for.
fn differentiated(case: &Case, built: &CaseGraph) -> Result<Option<Joint>, Outcome> {
    let graph = &built.graph;
    let wrt: Vec<ir::Value> = case.wrt().into_iter().map(|i| graph.inputs[i].value).collect();
    let no_derivative = case.has(Flag::NoDerivative);
    let mut seeded: Vec<bool> = built
        .outputs
        .iter()
        .map(|k| case.cotangents[*k].is_some() || (no_derivative && case.out_requires_grad[*k]))
        .collect();
    seeded.resize(graph.outputs.len(), false); // Final values of inputs get no cotangent.
    if wrt.is_empty() {
        return Ok(None);
    }
    let joint = match vjp(graph, &wrt, &seeded, &Shapes) {
        Ok(joint) => joint,
        Err((e, _)) if no_derivative && case.op.is_some_and(|op| op.own.is_some()) => {
            return match e.to_string().contains(&case.name) {
                true => Ok(None),
                false => Err(Outcome::Failed(format!("the refusal does not name the function: {e}"))),
            };
        }
        Err((e, _)) => return Err(Outcome::Refused(e.to_string())),
    };
    if taped(&joint) {
        return Err(Outcome::Refused(format!("`{}` has no rule of ours", case.name)));
    }
    requires_grad(case, built, &wrt)?;
    if no_derivative {
        return Err(Outcome::Failed(
            "LibTorch has no derivative here, the rule gives one".into(),
        ));
    }
    Ok(Some(joint))
}

/// An output that LibTorch says requires grad can be seeded here; from one that does not, no cotangent flows.
fn requires_grad(case: &Case, built: &CaseGraph, wrt: &[ir::Value]) -> Result<(), Outcome> {
    for (k, output) in built.outputs.iter().enumerate() {
        let only: Vec<bool> = (0..built.graph.outputs.len()).map(|i| i == k).collect();
        // Where this output has no derivative, or LibTorch's tape gives it, the case's own cotangents decide.
        let joint = match vjp(&built.graph, wrt, &only, &Shapes) {
            Ok(joint) if !taped(&joint) => joint,
            _ => continue,
        };
        let flows = joint.cotangents.iter().any(Option::is_some);
        let wrong = match case.out_requires_grad[*output] {
            true => joint.seeds[k].is_none(),
            false => flows,
        };
        if wrong {
            return Err(Outcome::Failed(format!(
                "output {output}: requires grad is {flows} here"
            )));
        }
    }
    Ok(())
}

/// Does LibTorch's tape give a derivative in this graph?
fn taped(joint: &Joint) -> bool {
    joint.graph.insts.iter().any(|i| i.op.name == "tape.vjp")
}

/// The inputs of the joint graph: those of the forward, then the cotangents.
fn seeded(case: &Case, joint: &Joint, mut inputs: Vec<Value>) -> Result<Vec<Value>, Outcome> {
    let cotangents = case.cotangents.iter().zip(&case.outputs).filter(|(_, o)| o.is_some());
    for (k, (seed, (cotangent, _))) in joint.seeds.iter().zip(cotangents).enumerate() {
        match (seed, cotangent) {
            (Some(_), Some(c)) => inputs.push(c.tensor.clone().into()),
            (None, Some(_)) => {
                return Err(Outcome::Failed(format!(
                    "output {k} has a cotangent but does not require grad here"
                )));
            }
            _ => {}
        }
    }
    Ok(inputs)
}

/// Runs the joint graph and compares the gradients.
fn gradients(case: &Case, joint: &Joint, inputs: &[Value]) -> Result<(), Outcome> {
    let mut graph = joint.graph.clone();
    graph.outputs = joint.cotangents.iter().flatten().copied().collect();
    let got = run(&graph, inputs).map_err(|e| declined(&e))?;
    let mut got = got.into_iter();
    for (j, (bar, want)) in joint.cotangents.iter().zip(&case.grads).enumerate() {
        let got = bar.and_then(|_| got.next()).filter(|v| *v != Value::Undefined);
        match (got, want) {
            (None, None) => {}
            (Some(got), Some(want)) => check(&format!("gradient {j}"), &got, want, case)?,
            (Some(_), None) => return Err(Outcome::Failed(format!("gradient {j} is defined, LibTorch gives none"))),
            (None, Some(_)) => return Err(Outcome::Failed(format!("gradient {j} is missing"))),
        }
    }
    Ok(())
}
