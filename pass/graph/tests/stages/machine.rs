//! A machine that executes plans on memory: views share it, in-place steps write it, releases end it.
//!
//! Each slot is a tensor of addresses into a memory; a view is the op applied to the addresses.

use cotangent_graph::interp::{EvalArg, Tensor, Value, eval_op};
use cotangent_graph::ir::{Arg, Kind};
use cotangent_graph::ops::Op;
use cotangent_graph::partition::Split;
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
    reshapes: Reshapes,
}

/// Runs a plan. An error tells of a slot that is used after its release or never released, or of an input that was
/// written to.
pub(crate) fn execute(plan: &Plan, inputs: &[Value], reshapes: Reshapes) -> Result<Vec<Value>, String> {
    let mut machine = Machine::new(reshapes);
    let inputs = machine.take(inputs)?;
    let before = machine.memories.clone();
    let outputs = machine.call(plan, &inputs)?;
    machine.unchanged(&before, &(0..before.len()).collect::<Vec<_>>())?;
    Ok(outputs.iter().map(|h| Value::Tensor(machine.read(h))).collect())
}

/// Runs a forward, and then a backward that may use up the residuals. Gives the function's outputs, as they are after
/// both, and the cotangents.
pub(crate) fn execute_once(
    split: &Split,
    (forward, backward): (&Plan, &Plan),
    inputs: &[Value],
    seeds: &[Value],
    reshapes: Reshapes,
) -> Result<(Vec<Value>, Vec<Value>), String> {
    let mut machine = Machine::new(reshapes);
    let inputs = machine.take(inputs)?;
    let mut outputs = machine.call(forward, &inputs)?;
    let mut given = outputs.split_off(split.primals);
    given.extend(machine.take(seeds)?);
    let before = machine.memories.clone();
    let cotangents = machine.call(backward, &given)?;
    let callers = inputs.iter().chain(&outputs).chain(&given[split.residuals.len()..]);
    machine.unchanged(&before, &callers.map(|h| h.memory).collect::<Vec<_>>())?;
    let read = |hs: &[Handle]| hs.iter().map(|h| Value::Tensor(machine.read(h))).collect();
    Ok((read(&outputs), read(&cotangents)))
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|x| x.to_bits()).collect()
}

impl Machine {
    fn new(reshapes: Reshapes) -> Self {
        Self {
            memories: vec![],
            slots: vec![],
            reshapes,
        }
    }

    /// Puts values into memory.
    fn take(&mut self, values: &[Value]) -> Result<Vec<Handle>, String> {
        let take = |v: &Value| match v {
            Value::Tensor(t) => Ok(self.allocate(t)),
            other => Err(format!("{other:?} is not a tensor")),
        };
        values.iter().map(take).collect()
    }

    fn call(&mut self, plan: &Plan, inputs: &[Handle]) -> Result<Vec<Handle>, String> {
        self.slots = vec![None; plan.slots.len()];
        for (input, handle) in plan.inputs.iter().zip(inputs) {
            self.slots[input.value.index()] = Some(handle.clone());
        }
        for step in &plan.steps {
            self.step(step)?;
            self.release(&step.release)?;
        }
        self.release(&plan.release)?;
        let lent = |s: Slot| plan.inputs.iter().any(|i| i.value == s) && !plan.consumed.contains(&s);
        for (i, slot) in self.slots.iter().enumerate() {
            let s = cotangent_graph::ir::Value(i as u32);
            if slot.is_some() && !lent(s) && !plan.outputs.contains(&s) {
                return Err(format!("{s} is never released"));
            }
        }
        plan.outputs.iter().map(|s| self.handle(*s).cloned()).collect()
    }

    /// The memories still hold what they held before.
    fn unchanged(&self, before: &[Vec<f64>], memories: &[usize]) -> Result<(), String> {
        match memories.iter().any(|m| bits(&self.memories[*m]) != bits(&before[*m])) {
            true => Err("a tensor of the caller's was written to".into()),
            false => Ok(()),
        }
    }

    fn handle(&self, slot: Slot) -> Result<&Handle, String> {
        self.slots[slot.index()]
            .as_ref()
            .ok_or(format!("{slot} is used without a value"))
    }

    fn read(&self, handle: &Handle) -> Tensor {
        let memory = &self.memories[handle.memory];
        let values = handle.addresses.to_i64().iter().map(|a| memory[*a as usize]).collect();
        Tensor::from_f64(handle.kind, handle.addresses.shape(), values)
    }

    fn load(&self, slot: Slot) -> Result<Tensor, String> {
        self.handle(slot).map(|h| self.read(h))
    }

    fn allocate(&mut self, value: &Tensor) -> Handle {
        let addresses = (0..value.numel() as i64).collect();
        self.memories.push(value.to_f64());
        Handle {
            memory: self.memories.len() - 1,
            addresses: Tensor::from_i64(Kind::I64, value.shape(), addresses),
            kind: value.kind(),
        }
    }

    fn store(&mut self, slot: Slot, value: &Tensor) {
        self.slots[slot.index()] = Some(self.allocate(value));
    }

    fn release(&mut self, slots: &[Slot]) -> Result<(), String> {
        for s in slots {
            self.slots[s.index()].take().ok_or(format!("{s} is released twice"))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        if step.op.facts.view && !(step.op.name == "reshape" && self.reshapes == Reshapes::Copy) {
            return self.view(step);
        }
        let values = self.run(step.op, &step.args)?;
        match (step.in_place, &step.args[0]) {
            (true, Arg::Value(target)) => self.write(*target, &values[0]),
            _ => {
                step.results.iter().zip(values).for_each(|(r, v)| self.store(*r, &v));
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
