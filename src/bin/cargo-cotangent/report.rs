//! `explain` and `emit`: what the pass made of a function.

use crate::inputs::Description;
use crate::options::{Emit, Explain};
use crate::{artifacts, stages};
use anyhow::{Context, Result};
use cotangent_graph::explain::{Explanation, explain as explanation};
use cotangent_graph::ir::Loc;
use cotangent_graph::program::{Program, Tree};
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Prints a function at a stage.
pub(crate) fn emit(options: &Emit) -> Result<ExitCode> {
    let program = artifacts::find(&options.subject)?;
    let text = stages::text(&program, options.stage, &options.subject.inputs)?;
    print(&match options.subject.json {
        true => format!("{}\n", serde_json::json!({"function": program.key, "text": text})),
        false => text,
    })
}

/// Explains a function.
pub(crate) fn explain(options: &Explain) -> Result<ExitCode> {
    let program = artifacts::find(&options.subject)?;
    let overview = Overview::of(&program)?;
    let details: Option<Explanation> = match options.subject.inputs.is_empty() {
        true => None,
        false => {
            let compiled = stages::compiled(&program, &options.subject.inputs)?;
            Some(explanation(&compiled.split, &compiled.forward, &compiled.backward))
        }
    };
    if options.subject.json {
        return print(&format!(
            "{}\n",
            serde_json::json!({"overview": overview, "details": details})
        ));
    }
    let rest = match details {
        Some(details) => details.to_string(),
        None => format!(
            "For the backward, what it saves, bytes and FLOPs, say what the arguments are:\n  cargo cotangent explain {} {}\n",
            options.subject.function,
            Description::of(&program)?.example()
        ),
    };
    print(&format!("{overview}\n{rest}"))
}

/// Prints a text. A reader who has read enough (`| head`) is no error.
fn print(text: &str) -> Result<ExitCode> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write"),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// What is known of a function before its arguments are.
#[derive(Serialize)]
struct Overview {
    function: String,
    at: String,
    /// Parameters, as `name: type`, and whether a cotangent is asked for.
    parameters: Vec<(String, bool)>,
    result: String,
    /// Ways through the function that decisions on run-time scalars lead to.
    ways: Vec<Vec<Step>>,
    /// Ways that end in a panic of the function's own.
    panics: usize,
}

/// An operation.
#[derive(Serialize)]
struct Step {
    text: String,
    at: Option<String>,
}

impl Overview {
    fn of(program: &Program) -> Result<Overview> {
        let description = Description::of(program)?;
        let ways = program.leaves.iter().map(|leaf| {
            // Reads of arguments and arithmetic on sizes are bookkeeping; what a reader looks for are the tensors.
            let tensors = leaf
                .graph
                .insts
                .iter()
                .filter(|i| i.results.iter().any(|r| leaf.graph.ty(*r).is_tensor()));
            let step = |inst: &cotangent_graph::ir::Inst| Step {
                text: inst.op.to_string(),
                at: inst.loc.as_ref().map(Loc::to_string),
            };
            tensors.filter(|i| !i.op.name.starts_with("host.")).map(step).collect()
        });
        Ok(Overview {
            function: program.key.clone(),
            at: format!("{}:{}", description.file, description.line),
            parameters: description
                .params
                .iter()
                .map(|p| (format!("{}: {}", p.name, p.ty), p.wrt))
                .collect(),
            result: description.ret,
            ways: ways.collect(),
            panics: panics(&program.tree),
        })
    }
}

fn panics(tree: &Tree) -> usize {
    match tree {
        Tree::Replay => 1,
        Tree::Branch { arms, otherwise, .. } => {
            arms.iter().map(|(_, arm)| panics(arm)).sum::<usize>() + panics(otherwise)
        }
        Tree::Leaf(_) | Tree::Refused(_) | Tree::Grow => 0,
    }
}

impl Display for Overview {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({})", self.function, self.at)?;
        for (parameter, wrt) in &self.parameters {
            writeln!(f, "  {parameter}{}", if *wrt { "  (differentiated)" } else { "" })?;
        }
        writeln!(f, "  -> {}", self.result)?;
        for (k, way) in self.ways.iter().enumerate() {
            match self.ways.len() {
                1 => writeln!(f, "\nOperations on tensors:")?,
                n => writeln!(f, "\nWay {} of {n}, operations on tensors:", k + 1)?,
            }
            for step in way {
                writeln!(f, "  {:<24} {}", step.text, step.at.as_deref().unwrap_or_default())?;
            }
        }
        match self.panics {
            0 => Ok(()),
            1 => writeln!(f, "\nOne more way ends in a panic of the function's own."),
            n => writeln!(f, "\n{n} more ways end in a panic of the function's own."),
        }
    }
}
