//! Text form of a plan: like that of its graph, with what is in place and what is released.

use super::{Plan, Slot, Step};
use std::fmt::{self, Display, Formatter};

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let inputs: Vec<String> = (self.inputs.iter())
            .map(|i| format!("{}: {} {:?}", i.value, self.slots[i.value.index()], i.name))
            .collect();
        writeln!(f, "plan @{}({}) {{", self.name, inputs.join(", "))?;
        if !self.consumed.is_empty() {
            writeln!(f, "  consumes {}", list(&self.consumed))?;
        }
        for s in &self.steps {
            step(f, self, s)?;
        }
        if !self.release.is_empty() {
            writeln!(f, "  release {}", list(&self.release))?;
        }
        writeln!(f, "  return {}", list(&self.outputs))?;
        f.write_str("}\n")
    }
}

fn step(f: &mut Formatter<'_>, plan: &Plan, step: &Step) -> fmt::Result {
    let results: Vec<String> = match step.in_place {
        true => step.results.iter().map(ToString::to_string).collect(),
        false => (step.results.iter())
            .map(|r| format!("{r}: {}", plan.slots[r.index()]))
            .collect(),
    };
    let args: Vec<String> = step.args.iter().map(ToString::to_string).collect();
    write!(f, "  {} = {}({})", results.join(", "), step.op, args.join(", "))?;
    if step.in_place {
        f.write_str(" in place")?;
    }
    if !step.release.is_empty() {
        write!(f, " release {}", list(&step.release))?;
    }
    match &step.loc {
        Some(at) => writeln!(f, " @ {at}"),
        None => writeln!(f),
    }
}

fn list(slots: &[Slot]) -> String {
    let slots: Vec<String> = slots.iter().map(ToString::to_string).collect();
    slots.join(", ")
}

impl Display for super::Cost {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} calls, {} bytes allocated, {} at the peak, {} flops",
            self.calls, self.bytes_allocated, self.peak_bytes, self.flops
        )
    }
}
