//! A program through the stages that the run time runs, for stand-in arguments.

use crate::inputs::{Description, StandIn};
use crate::options::Stage;
use anyhow::{Context, Result, anyhow, bail};
use cotangent_graph::canonicalize::canonicalize;
use cotangent_graph::differentiate::{Joint, vjp};
use cotangent_graph::explain::{Explanation, explain};
use cotangent_graph::functionalize::functionalize;
use cotangent_graph::interp::Shapes;
use cotangent_graph::ir::{Graph, Loc, Type, Value};
use cotangent_graph::partition::{Policy, Split, partition};
use cotangent_graph::plan::{Options, Plan, plan};
use cotangent_graph::program::Program;
use cotangent_graph::simplify;
use cotangent_graph::specialize::{Outcome, Specialized, specialize};
use std::fmt::{Display, Write};

/// A function, differentiated and planned.
struct Compiled {
    /// Forward and backward.
    split: Split,
    /// Plan of the forward.
    forward: Plan,
    /// Plan of the backward.
    backward: Plan,
}

impl Compiled {
    /// What became of the function, as documentation. `wrt` are the inputs that cotangents were asked for.
    fn explain(&self, wrt: &[String]) -> Explanation {
        explain(&self.split, &self.forward, &self.backward, wrt)
    }
}

/// The text of a program at a stage.
pub(crate) fn text(program: &Program, stage: Stage, inputs: &[String]) -> Result<String> {
    if stage == Stage::Raise {
        return Ok(program.to_string());
    }
    let description = Description::of(program)?;
    let (mut special, wrt) = closed(program, &description, inputs)?;
    if stage == Stage::Specialize {
        return Ok(special.graph.to_string());
    }
    let count = special.graph.outputs.len();
    let effects = functionalize(&mut special, &wrt, &Shapes)?;
    if stage == Stage::Functionalize {
        return Ok(format!("{}{effects}", special.graph));
    }
    let joint = differentiate(special.graph, &wrt, count)?;
    if stage == Stage::Differentiate {
        return Ok(show_joint(&joint));
    }
    let compiled = compile(&joint);
    match stage {
        Stage::Partition => show_split(&compiled.split),
        _ => Ok(format!("{}\n{}", compiled.forward, compiled.backward)),
    }
}

/// A program through all stages, explained.
pub(crate) fn explained(program: &Program, inputs: &[String]) -> Result<Explanation> {
    let description = Description::of(program)?;
    let (mut special, wrt) = closed(program, &description, inputs)?;
    let count = special.graph.outputs.len();
    functionalize(&mut special, &wrt, &Shapes)?;
    let named = special.graph.inputs.iter().filter(|i| wrt.contains(&i.value));
    let names: Vec<String> = named.map(|i| i.name.clone()).collect();
    Ok(compile(&differentiate(special.graph, &wrt, count)?).explain(&names))
}

/// The closed graph for the stand-ins, and its inputs that cotangents are asked for.
fn closed(program: &Program, description: &Description, inputs: &[String]) -> Result<(Specialized, Vec<Value>)> {
    let host = StandIn::new(description, inputs)?;
    let special = match specialize(program, &host, &Shapes)? {
        Outcome::Closed(special) => named(*special, description),
        Outcome::Replay => {
            bail!("with such arguments the function fails: its own code runs, and panics in its own words")
        }
        Outcome::Refused(refusals) => {
            let first = refusals
                .first()
                .map(|r| r.message.as_str())
                .unwrap_or("this way through it cannot be raised");
            bail!("with such arguments the function cannot be differentiated: {first}")
        }
        Outcome::Grow(_) => bail!("with such arguments the function takes a way that is raised at run time only"),
    };
    let asked = |argument: usize| description.params.get(argument).is_some_and(|p| p.wrt);
    let wrt = special
        .inputs
        .iter()
        .filter(|i| i.place.is_some_and(|p| asked(p.argument)));
    let wrt = wrt
        .map(|i| i.value)
        .filter(|v| carries_derivative(special.graph.ty(*v)))
        .collect();
    Ok((special, wrt))
}

/// Names the inputs of a graph as the user named the parameters that they come from.
fn named(mut special: Specialized, description: &Description) -> Specialized {
    for (input, info) in special.graph.inputs.iter_mut().zip(&special.inputs) {
        let parameter = info.place.and_then(|place| description.params.get(place.argument));
        if let Some(parameter) = parameter {
            input.name.clone_from(&parameter.name);
        }
    }
    special
}

/// The joint graph; the first `count` outputs get seeds.
fn differentiate(mut graph: Graph, wrt: &[Value], count: usize) -> Result<Joint> {
    canonicalize(&mut graph, &Shapes).map_err(located)?;
    simplify::graph(&mut graph);
    let outputs = graph.outputs.iter().enumerate();
    let seeded: Vec<bool> = outputs
        .map(|(k, v)| k < count && carries_derivative(graph.ty(*v)))
        .collect();
    let mut joint = vjp(&graph, wrt, &seeded, &Shapes).map_err(located)?;
    simplify::joint(&mut joint);
    Ok(joint)
}

fn compile(joint: &Joint) -> Compiled {
    let split = partition(joint, Policy::SaveReads);
    let forward = plan(&split.forward, Options::default());
    let backward = plan(&split.backward, Options::default());
    Compiled {
        split,
        forward,
        backward,
    }
}

fn carries_derivative(ty: &Type) -> bool {
    match ty {
        Type::Tensor(Some(ty)) => ty.kind.is_float(),
        Type::Float(_) => true,
        _ => false,
    }
}

fn located<E: Display>((error, at): (E, Option<Loc>)) -> anyhow::Error {
    match at {
        Some(at) => anyhow!("{error}, at {at}"),
        None => anyhow!("{error}"),
    }
}

fn show_joint(joint: &Joint) -> String {
    let values = |values: &[Option<Value>]| {
        let texts: Vec<String> = values
            .iter()
            .map(|v| v.map_or("none".into(), |v| v.to_string()))
            .collect();
        texts.join(", ")
    };
    format!(
        "{}; the first {} instructions are the forward\n; seeds: {}\n; cotangents: {}\n",
        joint.graph,
        joint.forward,
        values(&joint.seeds),
        values(&joint.cotangents)
    )
}

fn show_split(split: &Split) -> Result<String> {
    let mut text = format!("{}\n{}", split.forward, split.backward);
    for residual in &split.residuals {
        writeln!(text, "; {} is {} of the backward", residual.forward, residual.backward)
            .context("cannot write text")?;
    }
    Ok(text)
}
