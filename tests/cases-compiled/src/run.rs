//! One case.

use crate::torch;
use cotangent_cases::{Case, CaseGraph, Flag, Outcome, compare};
use cotangent_graph::canonicalize::canonicalize;
use cotangent_graph::differentiate::{Joint, infer, vjp};
use cotangent_graph::functionalize::Effects;
use cotangent_graph::ir::{Graph, Type, Value};
use cotangent_graph::partition::{Policy, Split, partition};
use cotangent_graph::plan::{Options, plan};
use cotangent_graph::simplify;
use cotangent_runtime::exec::{CompiledGraph, Input, Meta, Output, RunError};
use tch::Tensor;

/// Which way a case went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Through rules of Cotangent's own only.
    Own,
    /// With an opaque node, which LibTorch differentiates (or would, if asked).
    Opaque,
}

/// Runs one case and holds it against what was recorded; tells which way it went, if it went at all.
pub fn run(case: &Case) -> (Option<Way>, Outcome) {
    let mut way = None;
    let outcome = attempt(case, &mut way).map_or_else(|o| o, |()| Outcome::Passed);
    match outcome {
        Outcome::Refused(_) => (None, outcome),
        _ => (way, outcome),
    }
}

fn refused(e: impl ToString) -> Outcome {
    Outcome::Refused(e.to_string())
}

fn failed(e: impl ToString) -> Outcome {
    Outcome::Failed(e.to_string())
}

/// A run that declines, because a shape depends on values, or fails.
fn ran(e: RunError) -> Outcome {
    match e.to_string().contains("which Cotangent does not compile") {
        true => refused(e),
        false => failed(e),
    }
}

fn attempt(case: &Case, way: &mut Option<Way>) -> Result<(), Outcome> {
    let mut built = case.graph().map_err(refused)?;
    shapes(case, &mut built)?;
    let inputs: Vec<Tensor> = case.inputs.iter().map(|i| input(case, i)).collect();
    let wrt: Vec<Value> = case.wrt().iter().map(|i| built.graph.inputs[*i].value).collect();

    canonicalize(&mut built.graph, &Meta).map_err(|(e, _)| refused(e))?;
    let effects = built.functionalize(&case.wrt(), &Meta)?;
    let own = built.graph.insts.iter().all(|i| i.op.own.is_some());
    *way = Some(if own { Way::Own } else { Way::Opaque });

    let no_derivative = case.has(Flag::NoDerivative);
    let mut seeded: Vec<bool> = built
        .outputs
        .iter()
        .map(|k| case.cotangents[*k].is_some() || (no_derivative && case.out_requires_grad[*k]))
        .collect();
    // Final values of inputs that were written to: nothing flows back from them here.
    seeded.resize(built.graph.outputs.len(), false);
    let joint = match vjp(&built.graph, &wrt, &seeded, &Meta) {
        Ok(joint) => joint,
        Err((e, _)) if no_derivative && own => {
            forward(case, &built, &built.graph, &inputs, &effects)?;
            return named(case, &e.to_string());
        }
        Err((e, _)) => return Err(refused(e)),
    };
    for policy in [Policy::SaveReads, Policy::RecomputeAll] {
        let mut joint = joint.clone();
        simplify::joint(&mut joint);
        let split = partition(&joint, policy);
        both(case, &built, &split, &effects, &joint, no_derivative && !own)
            .map_err(|o| label(o, &format!("{policy:?}")))?;
        if case.inputs.iter().any(|i| i.after.is_some()) || !effects.writes.is_empty() {
            break; // The inputs are no longer what they were.
        }
    }
    if no_derivative && own {
        return Err(failed("LibTorch has no derivative here, the rule gives one"));
    }
    Ok(())
}

fn label(outcome: Outcome, what: &str) -> Outcome {
    match outcome {
        Outcome::Failed(why) => Outcome::Failed(format!("{what}: {why}")),
        other => other,
    }
}

fn input(case: &Case, input: &cotangent_cases::Input) -> Tensor {
    let x = torch::tensor(&input.value);
    // As user code passes it: a leaf. The in-place cases write to a copy of it.
    match input.grad.is_some() && !case.grads.is_empty() {
        true => x.detach().set_requires_grad(true),
        false => x,
    }
}

/// Gives the results the types that our shape rules, or LibTorch's Meta device, infer. Ours must be the recorded ones;
/// what LibTorch infers is checked again when the op has run.
fn shapes(case: &Case, built: &mut CaseGraph) -> Result<(), Outcome> {
    for at in 0..built.graph.insts.len() {
        let inst = built.graph.insts[at].clone();
        let types = infer(&built.graph, &Meta, inst.op, &inst.args).map_err(refused)?;
        let opaque = inst.op.own.is_none();
        if types.len() != inst.results.len() {
            let why = format!("{} results instead of {}", types.len(), inst.results.len());
            return Err(if opaque { refused(why) } else { failed(why) });
        }
        for (got, result) in types.into_iter().zip(inst.results) {
            let (got, want) = (Type::Tensor(Some(got)), built.graph.ty(result).clone());
            if !opaque && want != Type::Tensor(None) && got != want {
                return Err(failed(format!(
                    "shape rule of `{}`: {got} instead of {want}",
                    case.name
                )));
            }
            built.graph.set_ty(result, got);
        }
    }
    Ok(())
}

fn compile(graph: &Graph) -> Result<CompiledGraph, Outcome> {
    CompiledGraph::compile(&plan(graph, Options::default())).map_err(refused)
}

/// Runs the forward alone.
fn forward(case: &Case, built: &CaseGraph, graph: &Graph, inputs: &[Tensor], effects: &Effects) -> Result<(), Outcome> {
    let args: Vec<Input<'_>> = inputs.iter().map(Input::from).collect();
    let out = compile(graph)?.run(&args).map_err(ran)?;
    outputs(case, built, &out, inputs, effects)
}

/// The outputs, and what the call left in its inputs.
fn outputs(
    case: &Case,
    built: &CaseGraph,
    out: &[Output],
    inputs: &[Tensor],
    effects: &Effects,
) -> Result<(), Outcome> {
    for (k, got) in built.outputs.iter().zip(out) {
        let want = case.outputs[*k]
            .as_ref()
            .expect("the graph has the defined outputs only");
        check(case, &format!("output {k}"), got, want)?;
    }
    for write in &effects.writes {
        let Output::Tensor(value) = &out[write.output] else {
            return Err(failed("a final value is not a tensor"));
        };
        tch::no_grad(|| inputs[write.input].shallow_clone().copy_(value));
    }
    for (input, x) in case.inputs.iter().zip(inputs) {
        if let Some(after) = &input.after {
            let x = torch::read(x).map_err(failed)?;
            compare(&x, after, case).map_err(|e| failed(format!("`{}` afterwards: {e}", input.key)))?;
        }
    }
    Ok(())
}

fn check(case: &Case, what: &str, got: &Output, want: &cotangent_graph::interp::Tensor) -> Result<(), Outcome> {
    let Output::Tensor(got) = got else {
        return Err(failed(format!("{what} is not a tensor")));
    };
    if !got.defined() {
        return Err(failed(format!("{what} is undefined")));
    }
    if cotangent_runtime::torch::has_grad_fn(got) {
        return Err(failed(format!("{what} left the region with a grad_fn")));
    }
    let got = torch::read(got).map_err(failed)?;
    compare(&got, want, case).map_err(|e| failed(format!("{what}: {e}")))
}

/// Runs forward and backward.
fn both(
    case: &Case,
    built: &CaseGraph,
    split: &Split,
    effects: &Effects,
    joint: &Joint,
    must_fail: bool,
) -> Result<(), Outcome> {
    let inputs: Vec<Tensor> = case.inputs.iter().map(|i| input(case, i)).collect();
    // What the backward reads must not change when the call writes to its inputs at the end.
    let kept = inputs
        .iter()
        .enumerate()
        .map(|(i, x)| match effects.writes.iter().any(|w| w.input == i) {
            true => x.detach().copy(),
            false => x.shallow_clone(),
        });
    let kept: Vec<Tensor> = kept.collect();
    let args: Vec<Input<'_>> = kept.iter().map(Input::from).collect();
    let out = compile(&split.forward)?.run(&args).map_err(ran)?;
    outputs(case, built, &out[..split.primals], &inputs, effects)?;
    if joint.seeds.iter().all(Option::is_none) && case.grads.iter().all(Option::is_none) && !must_fail {
        return Ok(());
    }
    let mut bars = vec![];
    for (k, seed) in split.seeds.iter().enumerate() {
        let cotangent = built.outputs.get(k).and_then(|o| case.cotangents[*o].as_ref());
        match (seed, cotangent) {
            (Some(_), Some(c)) => bars.push(torch::tensor(c)),
            (Some(_), None) => {
                let Output::Tensor(y) = &out[k] else {
                    return Err(failed("an output is not a tensor"));
                };
                bars.push(y.ones_like());
            }
            (None, Some(_)) => {
                return Err(failed(format!(
                    "output {k} has a cotangent but does not require grad here"
                )));
            }
            (None, None) => {}
        }
    }
    let residuals = out[split.primals..].iter().map(Output::as_input);
    let args: Vec<Input<'_>> = residuals.chain(bars.iter().map(Input::from)).collect();
    let backward = compile(&split.backward)?;
    let got = match (backward.run(&args), must_fail) {
        (Err(e), true) => return named(case, &e.to_string()),
        (Ok(_), true) => return Err(failed("LibTorch has no derivative here, and no error came")),
        (got, false) => got.map_err(failed)?,
    };
    gradients(case, split, &got)?;
    // A pullback may be called as often as wanted: nothing that the first call used may have changed.
    let again = backward.run(&args).map_err(failed)?;
    gradients(case, split, &again).map_err(|o| label(o, "second call"))
}

fn gradients(case: &Case, split: &Split, got: &[Output]) -> Result<(), Outcome> {
    for (j, (position, want)) in split.cotangents.iter().zip(&case.grads).enumerate() {
        let defined = |o: &&Output| !matches!(o, Output::Tensor(t) if !t.defined());
        let got = position.map(|p| &got[p]).filter(defined);
        match (got, want) {
            (None, None) => {}
            (Some(got), Some(want)) => check(case, &format!("gradient {j}"), got, want)?,
            (Some(_), None) => return Err(failed(format!("gradient {j} is defined, LibTorch gives none"))),
            (None, Some(_)) => return Err(failed(format!("gradient {j} is missing"))),
        }
    }
    Ok(())
}

/// A refusal for want of a derivative names the function.
fn named(case: &Case, message: &str) -> Result<(), Outcome> {
    let base = case.op.map_or("", |op| op.base);
    let base = base.trim_end_matches('_');
    // LibTorch's own message says `zeta` for `special_zeta`.
    let short = base.trim_start_matches("special_");
    match message.contains(&case.name) || message.contains(short) {
        true => Ok(()),
        false => Err(failed(format!("the refusal does not name the function: {message}"))),
    }
}
