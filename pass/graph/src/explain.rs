//! What the compiler did to a function, as documentation: for people as text, for programs as JSON.

use crate::ir::{Arg, Loc, Type, Value};
use crate::partition::{Origin, Split};
use crate::plan::{Cost, Plan, Step, flops};
use serde::{Deserialize, Serialize};
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
    /// Ops that LibTorch differentiates through its own tape, for lack of a rule.
    pub opaque: Vec<Opaque>,
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

/// Explains a function from its split and the plans of both halves.
pub fn explain(split: &Split, forward: &Plan, backward: &Plan) -> Explanation {
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
        forward: phase(forward, split.primals),
        saved_bytes: saved.iter().filter(|s| !s.free).map(|s| s.bytes).sum(),
        backward: phase(backward, usize::MAX),
        opaque: tapes
            .map(|inst| Opaque {
                op: inst.op.name.into(),
                at: inst.loc.as_ref().map(ToString::to_string),
            })
            .collect(),
        saved,
    }
}

fn saved(split: &Split, origin: Origin, forward: Value, backward: Value) -> Saved {
    let maker = split.forward.insts.iter().find(|i| i.results.contains(&forward));
    let what = match (origin, maker) {
        (Origin::Input(k), _) => format!("input `{}`", split.forward.inputs[k].name),
        (Origin::Output(k), _) => format!("output {k}"),
        (Origin::Intermediate, Some(inst)) => format!("{forward} = {}{}", inst.op, at(inst.loc.as_ref())),
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
            true => read_by.push(format!("{}{}", inst.op, at(inst.loc.as_ref()))),
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

/// The notes on one plan, of whose outputs the first `outputs` are shown.
fn phase(plan: &Plan, outputs: usize) -> Phase {
    let ty = |v: Value| &plan.slots[v.index()];
    Phase {
        cost: plan.cost,
        inputs: plan
            .inputs
            .iter()
            .map(|i| format!("{} = {}: {}", i.value, i.name, ty(i.value)))
            .collect(),
        steps: plan.steps.iter().map(|s| note(plan, s)).collect(),
        outputs: plan
            .outputs
            .iter()
            .take(outputs)
            .map(|v| format!("{v}: {}", ty(*v)))
            .collect(),
    }
}

fn note(plan: &Plan, step: &Step) -> Note {
    let args: Vec<String> = step.args.iter().map(Arg::to_string).collect();
    let results: Vec<String> = step
        .results
        .iter()
        .map(|r| format!("{r}: {}", plan.slots[r.index()]))
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
    }
}

impl Display for Explanation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.function)?;
        writeln!(f, "Forward: {}", Summary(&self.forward.cost))?;
        lines(f, &self.forward)?;
        let kept = self.saved.iter().filter(|s| !s.free).count();
        writeln!(
            f,
            "\nSaved for the backward: {} values; {kept} of them, {}, only for it",
            self.saved.len(),
            Bytes(self.saved_bytes)
        )?;
        for s in &self.saved {
            writeln!(f, "  {}: {}, {}", s.what, s.ty, Bytes(s.bytes))?;
            s.read_by.iter().try_for_each(|r| writeln!(f, "      read by {r}"))?;
        }
        writeln!(f, "\nBackward: {}", Summary(&self.backward.cost))?;
        lines(f, &self.backward)?;
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

fn lines(f: &mut Formatter<'_>, phase: &Phase) -> fmt::Result {
    phase.inputs.iter().try_for_each(|i| writeln!(f, "  takes {i}"))?;
    let mut place: Option<&str> = None;
    for note in &phase.steps {
        if place != note.at.as_deref() {
            place = note.at.as_deref();
            writeln!(f, "  {}", place.unwrap_or("(no source line)"))?;
        }
        let mut costs = vec![];
        if note.flops > 0 {
            costs.push(Flops(note.flops).to_string());
        }
        match (note.in_place, note.bytes) {
            (true, _) => costs.push("in place".into()),
            (false, 0) => {}
            (false, n) => costs.push(Bytes(n).to_string()),
        }
        let line = format!("    {:<64} {}", note.step, costs.join(", "));
        writeln!(f, "{}", line.trim_end())?;
    }
    phase.outputs.iter().try_for_each(|o| writeln!(f, "  gives {o}"))
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
