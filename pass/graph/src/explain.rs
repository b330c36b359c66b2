//! What the compiler did to a function, as documentation: for people as text, for programs as JSON.

use crate::ir::{Arg, Loc, Type, Value};
use crate::partition::{Origin, Split};
use crate::plan::{Cost, Plan, Step, flops};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// The documentation of one specialization of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The function.
    pub function: String,
    /// The function itself, and what it computes on the side for the backward.
    pub forward: Phase,
    /// What is kept between the two.
    pub saved: Vec<Saved>,
    /// Bytes of what is saved and would not live on anyway as an input or an output of the function.
    pub saved_bytes: u64,
    /// The computation of the cotangents.
    pub backward: Phase,
    /// Inputs for which no cotangent was asked.
    pub inactive: Vec<String>,
    /// Ops that LibTorch differentiates through its own tape, for lack of a rule.
    pub opaque: Vec<Opaque>,
    /// Lines of the source, by `file:line`, as far as the reader is to see them.
    pub sources: BTreeMap<String, String>,
}

/// Forward or backward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// What a run costs.
    pub cost: Cost,
    /// Its inputs, with names and types.
    pub inputs: Vec<String>,
    /// Its steps, in order.
    pub steps: Vec<Note>,
    /// Its outputs, with types.
    pub outputs: Vec<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    /// The step as text.
    pub step: String,
    /// The op.
    pub op: String,
    /// Where the user wrote what it is part of.
    pub at: Option<String>,
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes that its results take; none for views and in-place steps.
    pub bytes: u64,
    /// It writes over its first operand.
    pub in_place: bool,
    /// It only gives another view of its first operand.
    pub view: bool,
}

/// A value that is saved for the backward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// What it is: an input or output of the function, or the step that makes it.
    pub what: String,
    /// Its type.
    pub ty: String,
    /// Bytes of a tensor of that type.
    pub bytes: u64,
    /// It lives on anyway, as an input or an output of the function.
    pub free: bool,
    /// The steps of the backward that read it, with source lines: why it is saved.
    pub read_by: Vec<String>,
}

/// An op that LibTorch differentiates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Opaque {
    /// The op.
    pub op: String,
    /// Where the user wrote it.
    pub at: Option<String>,
}

/// Explains a function from its split and the plans of both halves. `wrt` are the names of the inputs that cotangents
/// were asked for, in the split's order.
pub fn explain(split: &Split, forward: &Plan, backward: &Plan, wrt: &[String]) -> Explanation {
    let saved: Vec<Saved> = split
        .residuals
        .iter()
        .map(|r| saved(split, r.origin, r.forward, r.backward))
        .collect();
    let tapes = split.forward.insts.iter().filter(|inst| {
        let last = inst.results.last().map(|r| split.forward.ty(*r));
        last == Some(&Type::Tape)
    });
    Explanation {
        function: split.forward.name.clone(),
        forward: phase(forward, (0..split.primals).map(|k| result(k, split.primals)).collect()),
        saved_bytes: saved.iter().filter(|s| !s.free).map(|s| s.bytes).sum(),
        backward: phase(backward, cotangents(split, wrt)),
        inactive: inactive(split, wrt),
        opaque: tapes
            .map(|inst| Opaque {
                op: inst.op.name.into(),
                at: inst.loc.as_ref().map(ToString::to_string),
            })
            .collect(),
        saved,
        sources: BTreeMap::new(),
    }
}

/// What output `k` of `count` is.
fn result(k: usize, count: usize) -> String {
    match count {
        1 => "the result".into(),
        _ => format!("result {k}"),
    }
}

/// What each output of the backward is.
fn cotangents(split: &Split, wrt: &[String]) -> Vec<String> {
    let of = |k: usize| {
        let asked = split.cotangents.iter().zip(wrt);
        let names: Vec<String> = asked
            .filter(|(c, _)| **c == Some(k))
            .map(|(_, name)| format!("`{name}`"))
            .collect();
        format!("the cotangent of {}", names.join(" and of "))
    };
    (0..split.backward.outputs.len()).map(of).collect()
}

/// The inputs without a cotangent, and why.
fn inactive(split: &Split, wrt: &[String]) -> Vec<String> {
    let inputs = split.forward.inputs.iter().map(|i| &i.name);
    let asked = wrt.iter().zip(&split.cotangents);
    let unasked = inputs
        .filter(|name| !wrt.contains(name))
        .map(|name| format!("`{name}`: it is not asked for"));
    let zero = asked
        .filter(|(_, c)| c.is_none())
        .map(|(name, _)| format!("`{name}`: the result does not depend on it"));
    unasked.chain(zero).collect()
}

fn saved(split: &Split, origin: Origin, forward: Value, backward: Value) -> Saved {
    let maker = split.forward.insts.iter().find(|i| i.results.contains(&forward));
    let what = match (origin, maker) {
        (Origin::Input(k), _) => format!("input `{}`", split.forward.inputs[k].name),
        (Origin::Output(k), _) => format!("output {k}"),
        (Origin::Intermediate, Some(inst)) => {
            format!("`{}{forward}`, the result of `{0}`{}", inst.op, at(inst.loc.as_ref()))
        }
        (Origin::Intermediate, None) => forward.to_string(),
    };
    let mut read_by = vec![];
    // A view reads nothing: who reads the view does.
    let mut names = vec![backward];
    for inst in &split.backward.insts {
        let mut reads = false;
        let read = &mut |v| reads |= names.contains(&v);
        inst.args.iter().for_each(|a| a.for_each_value(read));
        match reads {
            true if inst.op.facts.view => names.extend(&inst.results),
            true => read_by.push(match &inst.loc {
                Some(at) => format!("the derivative of {at} reads it (`{}`)", inst.op),
                None => format!("`{}` reads it", inst.op),
            }),
            false => {}
        }
    }
    if split.backward.outputs.contains(&backward) {
        read_by.push("it is a cotangent itself".into());
    }
    let ty = split.forward.ty(forward);
    Saved {
        what,
        bytes: bytes(ty),
        ty: ty.to_string(),
        free: origin != Origin::Intermediate,
        read_by,
    }
}

fn at(loc: Option<&Loc>) -> String {
    loc.map(|l| format!(" at {l}")).unwrap_or_default()
}

fn bytes(ty: &Type) -> u64 {
    match ty {
        Type::Tensor(Some(t)) => t.bytes(),
        _ => 0,
    }
}

/// The notes on one plan, of whose outputs the first are shown: `outputs` says what they are.
fn phase(plan: &Plan, outputs: Vec<String>) -> Phase {
    let ty = |v: Value| &plan.slots[v.index()];
    let names = Names::of(plan);
    Phase {
        cost: plan.cost,
        inputs: plan
            .inputs
            .iter()
            .map(|i| format!("{}: {}", names.of_value(i.value), ty(i.value)))
            .collect(),
        steps: plan.steps.iter().map(|s| note(plan, &names, s)).collect(),
        outputs: plan
            .outputs
            .iter()
            .zip(outputs)
            .map(|(v, what)| format!("{what}: {} ({})", names.of_value(*v), ty(*v)))
            .collect(),
    }
}

/// The names of a plan's inputs.
struct Names(BTreeMap<Value, String>);

impl Names {
    fn of(plan: &Plan) -> Self {
        Self(plan.inputs.iter().map(|i| (i.value, i.name.replace(' ', ""))).collect())
    }

    fn of_value(&self, v: Value) -> String {
        self.0.get(&v).cloned().unwrap_or_else(|| v.to_string())
    }

    fn of_arg(&self, arg: &Arg) -> String {
        match arg {
            Arg::Value(v) => self.of_value(*v),
            Arg::List(items) => {
                let item = |v: &Option<Value>| v.map_or("none".to_owned(), |v| self.of_value(v));
                format!("{{{}}}", items.iter().map(item).collect::<Vec<_>>().join(", "))
            }
            other => other.to_string(),
        }
    }
}

fn note(plan: &Plan, names: &Names, step: &Step) -> Note {
    let args: Vec<String> = step.args.iter().map(|a| names.of_arg(a)).collect();
    let results: Vec<String> = step
        .results
        .iter()
        .map(|r| format!("{}: {}", names.of_value(*r), plan.slots[r.index()]))
        .collect();
    let fresh = !step.in_place && !step.op.facts.view && step.op.facts.mutates.is_empty();
    Note {
        step: format!("{} = {}({})", results.join(", "), step.op, args.join(", ")),
        op: step.op.name.into(),
        at: step.loc.as_ref().map(ToString::to_string),
        flops: flops(step, &plan.slots),
        bytes: if fresh {
            step.results.iter().map(|r| bytes(&plan.slots[r.index()])).sum()
        } else {
            0
        },
        in_place: step.in_place,
        view: step.op.facts.view,
    }
}

/// The line of a place: `file:line` of `file:line:column`.
pub fn line_of(at: &str) -> &str {
    match at.rsplit_once(':') {
        Some((line, column)) if line.contains(':') && column.bytes().all(|b| b.is_ascii_digit()) => line,
        _ => at,
    }
}

const LEGEND: &str = "\
A line below is one call of LibTorch: its results with their types, the function, the work and the memory that it takes.
\"in place\": it writes over its first operand, which nothing needs any more, and where that is small, a loop of the
compiled code may do it instead; \"view\": it only looks at memory that is there. Calls stand below the line of the source
that they are part of.";

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n\n{LEGEND}\n", self.function)?;
        writeln!(f, "Forward: {}", Summary(&self.forward.cost))?;
        self.lines(f, &self.forward)?;
        let kept = self.saved.iter().filter(|s| !s.free).count();
        writeln!(
            f,
            "\nSaved for the backward: {} values. {kept} of them, {}, would not live on without it.",
            self.saved.len(),
            Bytes(self.saved_bytes)
        )?;
        for s in &self.saved {
            let whose = if s.free { ", the caller's" } else { "" };
            writeln!(f, "  {}: {}, {}{whose}", s.what, s.ty, Bytes(s.bytes))?;
            s.read_by.iter().try_for_each(|r| writeln!(f, "      {r}"))?;
        }
        writeln!(f, "\nBackward: {}", Summary(&self.backward.cost))?;
        self.lines(f, &self.backward)?;
        if !self.inactive.is_empty() {
            writeln!(f, "\nNothing is computed for")?;
            self.inactive.iter().try_for_each(|i| writeln!(f, "  {i}"))?;
        }
        if self.opaque.is_empty() {
            return writeln!(f, "\nEvery op is differentiated by a rule of Cotangent's.");
        }
        writeln!(f, "\nDifferentiated by LibTorch's own tape:")?;
        for o in &self.opaque {
            let at = o.at.as_ref().map(|l| format!(" at {l}")).unwrap_or_default();
            writeln!(f, "  {}{at}", o.op)?;
        }
        Ok(())
    }
}

impl Explanation {
    fn lines(&self, f: &mut Formatter<'_>, phase: &Phase) -> fmt::Result {
        phase.inputs.iter().try_for_each(|i| writeln!(f, "  takes {i}"))?;
        let mut place: Option<&str> = None;
        for note in &phase.steps {
            let line = note.at.as_deref().map_or("(no line of the source)", line_of);
            if place != Some(line) {
                place = Some(line);
                match self.sources.get(line) {
                    Some(text) => writeln!(f, "  {line}    {text}")?,
                    None => writeln!(f, "  {line}")?,
                }
            }
            let mut costs = vec![];
            if note.flops > 0 {
                costs.push(Flops(note.flops).to_string());
            }
            match note {
                Note { in_place: true, .. } => costs.push("in place".into()),
                Note { view: true, .. } => costs.push("view".into()),
                Note { bytes: 0, .. } => {}
                Note { bytes, .. } => costs.push(Bytes(*bytes).to_string()),
            }
            let line = format!("    {:<64} {}", note.step, costs.join(", "));
            writeln!(f, "{}", line.trim_end())?;
        }
        phase.outputs.iter().try_for_each(|o| writeln!(f, "  gives {o}"))
    }
}

/// A cost in one line.
struct Summary<'a>(&'a Cost);

impl Display for Summary<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let cost = self.0;
        let (all, peak) = (Bytes(cost.bytes_allocated), Bytes(cost.peak_bytes));
        write!(
            f,
            "{} calls, {}, {all} allocated, {peak} at the peak",
            cost.calls,
            Flops(cost.flops)
        )
    }
}

struct Bytes(u64);

impl Display for Bytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, 1024, &["B", "KiB", "MiB", "GiB", "TiB"])
    }
}

struct Flops(u64);

impl Display for Flops {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        scaled(f, self.0, 1000, &["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"])
    }
}

fn scaled(f: &mut Formatter<'_>, n: u64, step: u64, units: &[&str]) -> fmt::Result {
    let mut unit = 0;
    let mut size = 1;
    while n / size >= step && unit + 1 < units.len() {
        size *= step;
        unit += 1;
    }
    match unit {
        0 => write!(f, "{n} {}", units[0]),
        _ => write!(f, "{:.1} {}", n as f64 / size as f64, units[unit]),
    }
}
