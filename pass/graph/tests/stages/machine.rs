//! A machine that executes plans on memory: views share it, in-place steps write it, releases end it.
//!
//! Each slot is a tensor of addresses into a memory; a view is the op applied to the addresses.

use cotangent_graph::interp::{EvalArg, Tensor, Value, eval_op};
use cotangent_graph::ir::{Arg, Kind};
use cotangent_graph::ops::Op;
use cotangent_graph::plan::{Plan, Slot, Step};

/// What `reshape`, which may do either, does on this machine.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reshapes {
    Alias,
    Copy,
}

#[derive(Clone)]
struct Handle {
    memory: usize,
    addresses: Tensor,
    kind: Kind,
}

struct Machine {
    memories: Vec<Vec<f64>>,
    slots: Vec<Option<Handle>>,
}

/// Runs a plan. An error tells of a slot that is used after its release or never released, or of an input that was
/// written to.
pub(crate) fn execute(plan: &Plan, inputs: &[Value], reshapes: Reshapes) -> Result<Vec<Value>, String> {
    let mut machine = Machine {
        memories: vec![],
        slots: vec![None; plan.slots.len()],
    };
    for (slot, value) in plan.inputs.iter().zip(inputs) {
        let Value::Tensor(t) = value else {
            return Err(format!("{value:?} is not a tensor"));
        };
        machine.store(slot.value, t.clone());
    }
    let before = machine.memories.clone();
    for step in &plan.steps {
        machine.step(step, reshapes)?;
        machine.release(&step.release)?;
    }
    machine.release(&plan.release)?;
    if machine.memories[..before.len()]
        .iter()
        .zip(&before)
        .any(|(a, b)| bits(a) != bits(b))
    {
        return Err("an input was written to".into());
    }
    let kept = |s: Slot| plan.outputs.contains(&s) || plan.inputs.iter().any(|i| i.value == s);
    for (i, slot) in machine.slots.iter().enumerate() {
        if slot.is_some() && !kept(cotangent_graph::ir::Value(i as u32)) {
            return Err(format!("%{i} is never released"));
        }
    }
    plan.outputs
        .iter()
        .map(|s| machine.load(*s).map(Value::Tensor))
        .collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

impl Machine {
    fn handle(&self, slot: Slot) -> Result<&Handle, String> {
        self.slots[slot.index()]
            .as_ref()
            .ok_or(format!("{slot} is used without a value"))
    }

    fn load(&self, slot: Slot) -> Result<Tensor, String> {
        let handle = self.handle(slot)?;
        let memory = &self.memories[handle.memory];
        let values = handle.addresses.to_i64().iter().map(|a| memory[*a as usize]).collect();
        Ok(Tensor::from_f64(handle.kind, handle.addresses.shape(), values))
    }

    fn store(&mut self, slot: Slot, value: Tensor) {
        let addresses = (0..value.numel() as i64).collect();
        self.slots[slot.index()] = Some(Handle {
            memory: self.memories.len(),
            addresses: Tensor::from_i64(Kind::I64, value.shape(), addresses),
            kind: value.kind(),
        });
        self.memories.push(value.to_f64());
    }

    fn release(&mut self, slots: &[Slot]) -> Result<(), String> {
        for s in slots {
            self.slots[s.index()].take().ok_or(format!("{s} is released twice"))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step, reshapes: Reshapes) -> Result<(), String> {
        if step.op.facts.view && !(step.op.name == "reshape" && reshapes == Reshapes::Copy) {
            return self.view(step);
        }
        let values = self.run(step.op, &step.args)?;
        match (step.in_place, &step.args[0]) {
            (true, Arg::Value(target)) => self.write(*target, &values[0]),
            _ => {
                step.results.iter().zip(values).for_each(|(r, v)| self.store(*r, v));
                Ok(())
            }
        }
    }

    /// Writes over the memory of a slot. Two elements at one address would be a mistake of the plan's.
    fn write(&mut self, target: Slot, value: &Tensor) -> Result<(), String> {
        let handle = self.handle(target)?.clone();
        let addresses = handle.addresses.to_i64();
        let mut distinct = addresses.clone();
        distinct.sort_unstable();
        distinct.dedup();
        if distinct.len() != addresses.len() {
            return Err(format!("{target} is written to although its elements overlap"));
        }
        for (a, x) in addresses.iter().zip(value.to_f64()) {
            self.memories[handle.memory][*a as usize] = x;
        }
        Ok(())
    }

    fn view(&mut self, step: &Step) -> Result<(), String> {
        let Arg::Value(base) = step.args[0] else {
            return Err(format!("{} views nothing", step.op));
        };
        let base = self.handle(base)?.clone();
        let mut args = self.fill(&step.args)?;
        args[0] = EvalArg::Tensor(base.addresses.clone());
        for (r, addresses) in step.results.iter().zip(evaluate(step.op, &args)?) {
            self.slots[r.index()] = Some(Handle {
                addresses,
                ..base.clone()
            });
        }
        Ok(())
    }

    fn run(&self, op: Op, args: &[Arg]) -> Result<Vec<Tensor>, String> {
        let args = self.fill(args)?;
        // A place for the result stands in front.
        let into = ["_out", "_grad_input"]
            .into_iter()
            .find_map(|end| op.name.strip_suffix(end));
        if let Some(base) = into.and_then(Op::find) {
            return evaluate(base, &args[1..]);
        }
        if op.name != "addmm_" {
            return evaluate(op, &args);
        }
        let product = evaluate(Op::named("mm"), &args[1..])?.remove(0);
        evaluate(Op::named("add"), &[args[0].clone(), EvalArg::Tensor(product)])
    }

    fn fill(&self, args: &[Arg]) -> Result<Vec<EvalArg>, String> {
        let ints = |items: &[Arg]| items.iter().map(cotangent_graph::ops::constant_int).collect();
        let fill = |arg: &Arg| {
            Ok(match arg {
                Arg::None => EvalArg::None,
                Arg::Value(s) => EvalArg::Tensor(self.load(*s)?),
                Arg::List(slots) => {
                    let load = |s: &Option<Slot>| s.map(|s| self.load(s)).transpose();
                    EvalArg::List(slots.iter().map(load).collect::<Result<_, String>>()?)
                }
                Arg::Int(i) => EvalArg::Int(*i),
                Arg::Float(x) => EvalArg::Float(*x),
                Arg::Bool(b) => EvalArg::Bool(*b),
                Arg::Ints(items) => EvalArg::Ints(ints(items)),
                Arg::Kind(k) => EvalArg::Kind(*k),
                Arg::Device(d) => EvalArg::Device(*d),
                other => return Err(format!("the machine does not take {other}")),
            })
        };
        args.iter().map(fill).collect()
    }
}

fn evaluate(op: Op, args: &[EvalArg]) -> Result<Vec<Tensor>, String> {
    let values = eval_op(op, args).map_err(|e| e.to_string())?;
    let tensor = |v| match v {
        Value::Tensor(t) => Ok(t),
        other => Err(format!("{op} gives {other:?}")),
    };
    values.into_iter().map(tensor).collect()
}
