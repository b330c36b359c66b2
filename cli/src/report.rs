//! `explain` and `emit`: what the pass made of a function.

use crate::artifacts::{self, Found};
use crate::inputs::Description;
use crate::kernels::KernelReport;
use crate::options::{Emit, Explain, Subject};
use crate::stages;
use anyhow::{Context, Result, bail};
use cotangent_graph::explain::{Explanation, line_of};
use cotangent_graph::ir::{Graph, Inst, Loc};
use cotangent_graph::program::{Program, Tree};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Prints a function at a stage.
pub(crate) fn emit(options: &Emit) -> Result<ExitCode> {
    let program = match artifacts::find(&options.subject)? {
        Found::Program(program) => program,
        Found::Kernel(kernel) => bail!(
            "`{0}` is a kernel, whose derivatives are native code of the program: it has no stages to show; see `cargo cotangent explain {0}`",
            kernel.key
        ),
    };
    let text = stages::text(&program, options.stage, &options.subject.inputs)?;
    print(&match options.subject.json {
        true => format!("{}\n", serde_json::json!({"function": program.key, "text": text})),
        false => text,
    })
}

/// Explains a function.
pub(crate) fn explain(options: &Explain) -> Result<ExitCode> {
    let program = match artifacts::find(&options.subject)? {
        Found::Program(program) => program,
        Found::Kernel(kernel) => {
            let kernel = KernelReport::of(kernel, &options.subject)?;
            return print(&match options.subject.json {
                true => format!("{}\n", serde_json::to_string(&kernel).context("cannot write JSON")?),
                false => kernel.to_string(),
            });
        }
    };
    let overview = Overview::of(&program)?;
    let (arguments, details) = match Arguments::choose(&options.subject, &program)? {
        Some((arguments, mut details)) => {
            add_sources(&mut details);
            (Some(arguments), Some(details))
        }
        None => (None, None),
    };
    if options.subject.json {
        return print(&format!(
            "{}\n",
            serde_json::json!({"overview": overview, "arguments": arguments, "details": details})
        ));
    }
    let others = format!(
        "cargo cotangent explain {} {}",
        options.subject.function,
        Description::of(&program)?.example()
    );
    let rest = match arguments.zip(details) {
        Some((arguments, details)) => format!("{arguments}\n  {others}\n\n{details}"),
        None => format!("For the backward, what it saves, bytes and FLOPs, say what the arguments are:\n  {others}\n"),
    };
    print(&format!("{overview}\n{rest}"))
}

/// Arguments for which a function is explained.
#[derive(Serialize)]
struct Arguments {
    /// As `--input` takes them.
    inputs: Vec<String>,
    from: From,
}

/// Where arguments are from.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum From {
    CommandLine,
    LastRun,
    Example,
}

impl Arguments {
    /// Those that the user gives; else those of the last run; else made-up ones, if the function takes them.
    fn choose(subject: &Subject, program: &Program) -> Result<Option<(Self, Explanation)>> {
        let explained = |inputs: &[String]| stages::explained(program, inputs);
        if !subject.inputs.is_empty() {
            let inputs = subject.inputs.clone();
            let details = explained(&inputs)?;
            let from = From::CommandLine;
            return Ok(Some((Self { inputs, from }, details)));
        }
        let description = Description::of(program)?;
        let run = match subject.artifact {
            Some(_) => None,
            None => artifacts::last_call(&program.key)?,
        };
        let run = run.map(|told| (description.inputs(&told), From::LastRun));
        let example = (description.inputs(&[]), From::Example);
        Ok(run.into_iter().chain([example]).find_map(|(inputs, from)| {
            let details = explained(&inputs).ok()?;
            Some((Self { inputs, from }, details))
        }))
    }
}

impl Display for Arguments {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.from {
            From::CommandLine => writeln!(f, "For these arguments:")?,
            From::LastRun => writeln!(f, "For the tensors of the last run (what else there is, is made up):")?,
            From::Example => writeln!(f, "For made-up arguments (a run of the program tells real ones):")?,
        }
        self.inputs.iter().try_for_each(|i| writeln!(f, "  {i}"))?;
        write!(f, "For others, say what they are:")
    }
}

/// Adds the lines of the source that the steps point at, where the files can be read: places are told from the folder
/// that Cargo compiled in, which is this one or one above it.
fn add_sources(details: &mut Explanation) {
    let steps = details.forward.steps.iter().chain(&details.backward.steps);
    let places: BTreeSet<String> = steps
        .filter_map(|s| Some(line_of(s.at.as_deref()?).to_owned()))
        .collect();
    let here = std::env::current_dir().unwrap_or_default();
    for place in places {
        let Some((file, line)) = place.rsplit_once(':') else {
            continue;
        };
        let text = here
            .ancestors()
            .find_map(|folder| std::fs::read_to_string(folder.join(file)).ok());
        let line = line
            .parse::<usize>()
            .ok()
            .and_then(|n| text.as_ref()?.lines().nth(n.checked_sub(1)?));
        if let Some(line) = line {
            details.sources.insert(place, line.trim().to_owned());
        }
    }
}

/// Prints a text. A reader who has read enough (`| head`) is no error.
fn print(text: &str) -> Result<ExitCode> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("cannot write"),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// A function as the user wrote it.
#[derive(Serialize)]
pub(crate) struct Head {
    function: String,
    at: String,
    /// Parameters, as `name: type`, and whether a cotangent is asked for.
    parameters: Vec<(String, bool)>,
    result: String,
}

impl Head {
    /// The function with that key.
    pub(crate) fn of(key: &str, description: Description) -> Self {
        let parameters = description.params.iter();
        Self {
            function: key.to_owned(),
            at: format!("{}:{}", description.file, description.line),
            parameters: parameters.map(|p| (format!("{}: {}", p.name, p.ty), p.wrt)).collect(),
            result: description.ret,
        }
    }
}

impl Display for Head {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ({})", self.function, self.at)?;
        for (parameter, wrt) in &self.parameters {
            writeln!(f, "  {parameter}{}", if *wrt { "  (differentiated)" } else { "" })?;
        }
        writeln!(f, "  -> {}", self.result)
    }
}

/// What is known of a function before its arguments are.
#[derive(Serialize)]
struct Overview {
    #[serde(flatten)]
    head: Head,
    /// Operations on tensors, once for all ways that have the same: how many ways, and the operations. Decisions on
    /// run-time scalars lead to them.
    ways: Vec<(usize, Vec<Step>)>,
    /// Ways that end in a panic of the function's own.
    panics: usize,
}

/// An operation.
#[derive(PartialEq, Eq, Serialize)]
struct Step {
    text: String,
    at: Option<String>,
}

impl Overview {
    fn of(program: &Program) -> Result<Overview> {
        let description = Description::of(program)?;
        let mut ways: Vec<(usize, Vec<Step>)> = Vec::new();
        for leaf in &program.leaves {
            let steps = steps(&leaf.graph);
            match ways.iter_mut().find(|(_, known)| *known == steps) {
                Some((count, _)) => *count += 1,
                None => ways.push((1, steps)),
            }
        }
        Ok(Overview {
            head: Head::of(&program.key, description),
            ways,
            panics: panics(&program.tree),
        })
    }
}

/// The operations on tensors. Reads of arguments and arithmetic on sizes are bookkeeping, and left out.
fn steps(graph: &Graph) -> Vec<Step> {
    let makes_tensor = |inst: &&Inst| inst.results.iter().any(|r| graph.ty(*r).is_tensor());
    let tensors = graph
        .insts
        .iter()
        .filter(makes_tensor)
        .filter(|i| !i.op.name.starts_with("host."));
    let step = |inst: &Inst| Step {
        text: inst.op.to_string(),
        at: inst.loc.as_ref().map(Loc::to_string),
    };
    tensors.map(step).collect()
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
        write!(f, "{}", self.head)?;
        for (k, (ways, steps)) in self.ways.iter().enumerate() {
            match (self.ways.len(), ways) {
                (1, 1) => writeln!(f, "\nOperations on tensors:")?,
                (1, n) => writeln!(f, "\nOperations on tensors, the same on {n} ways through the function:")?,
                (_, n) => writeln!(f, "\nOperations on tensors, variant {} ({n} of the ways):", k + 1)?,
            }
            for step in steps {
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
