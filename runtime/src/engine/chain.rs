//! A call of several regions: where only running tells how to go on, a region ends, and the call finds the next one.
//!
//! Each region runs compiled, with what it leaves for its backward. What it made for those after it has slots of the
//! call's table, so that the next region's prologue finds it there, beside what the host has. The [way back](super::route)
//! goes through the same steps. To LibTorch the whole is one node.

use super::call::Failure;
use super::code::{Datum, Operand};
use super::derivative::{Derivative, Source};
use super::function::{Active, FAILS, Function};
use super::host::Memory;
use super::mask::Mask;
use super::pass::Pass;
use super::route::{Before, Link};
use super::rule::call;
use super::saved::Saved;
use super::special::{After, Path, Special};
use crate::error::Error;
use crate::exec::Meta;
use crate::torch::{Handle, Raw, facts};
use cotangent_graph::ir::Type;
use cotangent_graph::specialize::{Action, Inputs, Slot};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The last region of a call.
pub(super) struct Way {
    pub(super) special: Arc<Special>,
    pub(super) table: Inputs,
    /// What the call did before, if this is not its first region.
    pub(super) before: Option<Frame>,
}

/// Why a call ends before its last region.
pub(super) enum Stopped {
    /// The original function runs instead, because of this.
    Replay(String),
    /// The call fails.
    Error(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// What a call has done so far.
#[derive(Default)]
pub(super) struct Frame {
    links: Vec<Link>,
    /// Tensors that regions and rules made.
    owned: BTreeMap<Slot, Handle>,
    /// Slots that vary with what the call is differentiated for, besides the caller's own.
    varying: HashSet<Slot>,
    /// Slots that hold another handle to the tensor of a slot.
    same: HashMap<Slot, Slot>,
    /// Storages that were written to, with the slot.
    written: Vec<(u64, Slot)>,
}

impl Function {
    /// Runs all regions but the last. `active` tells which of the caller's values each is differentiated for.
    ///
    /// # Safety
    /// `args` are the addresses of the function's arguments, for which `table` was read by the prologue of `special`.
    pub(super) unsafe fn regions(
        &self,
        mut special: Arc<Special>,
        mut table: Inputs,
        args: &[*const ()],
        path: Path,
        active: &Active<'_>,
    ) -> Result<Way, Stopped> {
        let mut before: Option<Frame> = None;
        while let Some(after) = &special.after {
            let frame = before.get_or_insert_default();
            let mut mask = active(&special, &table)?;
            special.also(&frame.varying, &mut mask);
            let derivative = special.derivative(path, &mask, &Meta)?;
            if path == Path::Attached {
                special.refuse_unrecorded(after, &derivative)?;
            }
            // SAFETY: the caller's promise.
            let ran = unsafe { frame.region(&special, after, &derivative, &mask, &mut table) };
            ran.map_err(|failure| match failure {
                Failure::Before(because) if frame.written.is_empty() => Stopped::Replay(because),
                Failure::Before(text) | Failure::After(text) => Stopped::Error(Error::new(text)),
            })?;
            frame.act(&after.action, &mut table)?;
            // SAFETY: the caller's promise.
            let memory = unsafe { Memory::of(args) };
            let found = self.next(after, &table, &memory)?;
            let Some((next, known)) = found else {
                if frame.written.is_empty() {
                    return Err(Stopped::Replay(FAILS.into()));
                }
                let text = format!("`{}` fails after it has written to an argument", special.name);
                return Err(Error::new(text).into());
            };
            frame.enter(&next, &known)?;
            (special, table) = (next, known);
        }
        Ok(Way { special, table, before })
    }
}

impl Way {
    /// What the last region is differentiated for, and what stands before it; whether the call has had an effect; and
    /// what must live as long as the call.
    pub(super) fn last(
        before: Option<Frame>,
        special: &Special,
        active: &mut Mask,
        ranks: &[usize],
    ) -> (Option<Before>, bool, BTreeMap<Slot, Handle>) {
        let Some(frame) = before else {
            return (None, false, BTreeMap::new());
        };
        let roots = ranks.iter().map(|i| special.inputs[*i].slot).collect();
        special.also(&frame.varying, active);
        let before = Before {
            links: frame.links,
            inputs: special.active_slots(active),
            roots,
            same: frame.same,
        };
        (Some(before), !frame.written.is_empty(), frame.owned)
    }
}

impl Special {
    /// LibTorch's record of a write to an argument would have to be a part of the call's one node.
    fn refuse_unrecorded(&self, after: &After, derivative: &Derivative) -> Result<(), Error> {
        let finals = self.finals.iter().zip(&derivative.varies[after.outputs.len()..]);
        match finals
            .into_iter()
            .any(|(i, varies)| *varies && !self.inputs[*i].internal)
        {
            false => Ok(()),
            true => Err(Error::new(format!(
                "`{}` writes to an argument before it reads a tensor's element or calls a function with a rule of its own, \
                 which its `autograd` cannot record; use `vjp`",
                self.name
            ))),
        }
    }

    /// Adds the inputs in these slots.
    fn also(&self, slots: &HashSet<Slot>, active: &mut Mask) {
        for (i, info) in self.inputs.iter().enumerate() {
            if slots.contains(&info.slot) && self.differentiable(i) {
                active.insert(i);
            }
        }
    }

    fn active_slots(&self, active: &Mask) -> Vec<Slot> {
        let inputs = self.inputs.iter().enumerate();
        inputs
            .filter(|(i, _)| active.has(*i))
            .map(|(_, info)| info.slot)
            .collect()
    }
}

impl Frame {
    /// Runs a region.
    ///
    /// # Safety
    /// The handles in the table are alive.
    unsafe fn region(
        &mut self,
        special: &Special,
        after: &After,
        derivative: &Arc<Derivative>,
        active: &Mask,
        table: &mut Inputs,
    ) -> Result<(), Failure> {
        let given = special.given(table);
        let tensor = |i: usize| match given[i] {
            Operand::Tensor(raw) => raw,
            _ => unreachable!("only tensors are written to"),
        };
        for i in &special.finals {
            // SAFETY: the function itself writes to this tensor.
            unsafe { facts::check_write(tensor(*i), false) }.map_err(Failure::Before)?;
        }
        let made = derivative.run(&given).map_err(Failure::Before)?;
        let mut made: Vec<Option<Datum>> = made.into_iter().map(Some).collect();
        // SAFETY: the caller's promise.
        let mut saved = unsafe { Saved::keep(derivative, &given, &mut made) };
        for i in &special.finals {
            // SAFETY: as above.
            let storage = unsafe { facts::storage(tensor(*i)) };
            saved.part_from(storage).map_err(Failure::Before)?;
        }
        let count = after.outputs.len();
        let source = |k: usize| match derivative.made[k] {
            Source::Given(i) => given[i],
            Source::Made(i) => made[i].as_ref().expect("an output stays among what was made").lend(),
        };
        for (n, i) in special.finals.iter().enumerate() {
            let Operand::Tensor(value) = source(count + n) else {
                unreachable!("a final value is a tensor")
            };
            let fail = if n == 0 { Failure::Before } else { Failure::After };
            // SAFETY: both handles are alive.
            unsafe { facts::write(tensor(*i), value, false) }.map_err(fail)?;
            // SAFETY: as above.
            let storage = unsafe { facts::storage(tensor(*i)) };
            self.written.push((storage, self.canonical(special.inputs[*i].slot)));
        }
        for (k, slot) in after.outputs.iter().enumerate() {
            let same = after.same.iter().find(|(output, _)| *output == k);
            if let Some((_, input)) = same {
                let of = self.canonical(special.inputs[*input].slot);
                self.same.insert(*slot, of);
            }
            let operand = same.map_or_else(|| source(k), |(_, input)| given[*input]);
            let word = match operand {
                Operand::Tensor(raw) => {
                    // SAFETY: the handle is alive.
                    let handle = unsafe { Handle::share_raw(raw) };
                    let word = handle.raw() as u64;
                    self.owned.insert(*slot, handle);
                    word
                }
                Operand::Float(x) => match derivative.output(k) {
                    Type::Float(32) => u64::from((x as f32).to_bits()),
                    _ => x.to_bits(),
                },
                Operand::Tape(_) => unreachable!("a tape stays in its region"),
            };
            set(table, *slot, word);
        }
        let finals = special.finals.iter().map(|i| special.inputs[*i].slot);
        let outputs: Vec<Slot> = after.outputs.iter().copied().chain(finals).collect();
        let varies = outputs.iter().zip(&derivative.varies).filter(|(_, varies)| **varies);
        self.varying.extend(varies.map(|(slot, _)| *slot));
        self.varying.extend(special.active_slots(active));
        self.links.push(Link::Region {
            pass: Pass::new(derivative.clone(), saved, vec![], None),
            inputs: special.active_slots(active),
            outputs,
        });
        Ok(())
    }

    /// Does what stands between two regions.
    fn act(&mut self, action: &Action, table: &mut Inputs) -> Result<(), Error> {
        match action {
            Action::Numbers => {}
            Action::Element { tensor, to } => {
                // SAFETY: the handle is alive during the call.
                let tensor = unsafe { Handle::share_raw(table.word(*tensor) as Raw) }.into_tensor();
                let element = tensor.f_int64_value(&[])?;
                set(table, *to, element as u64);
            }
            Action::Rule(rule) => {
                // SAFETY: the handles are alive during the call.
                let (called, results) = unsafe { call(rule, table, &self.varying) }?;
                for (slot, datum) in results {
                    let word = match datum {
                        Datum::Tensor(handle) => {
                            let word = handle.raw() as u64;
                            self.owned.insert(slot, handle);
                            word
                        }
                        Datum::Float(x) => match called.is_single(slot) {
                            true => u64::from((x as f32).to_bits()),
                            false => x.to_bits(),
                        },
                        Datum::Tape(_) => unreachable!("a rule gives tensors and floats"),
                    };
                    set(table, slot, word);
                    if called.varies() {
                        self.varying.insert(slot);
                    }
                }
                if called.varies() {
                    self.links.push(Link::Rule(called));
                }
            }
        }
        Ok(())
    }

    /// Goes on with a region: gives up what neither it nor those after it read.
    fn enter(&mut self, next: &Special, table: &Inputs) -> Result<(), Error> {
        self.owned.retain(|slot, _| next.inputs.iter().any(|i| i.slot == *slot));
        for info in next.inputs.iter().filter(|i| i.facts.is_some()) {
            // SAFETY: the handle is alive during the call.
            let storage = unsafe { facts::storage(table.word(info.slot) as Raw) };
            let slot = self.canonical(info.slot);
            if self.written.iter().any(|(s, by)| *s == storage && *by != slot) {
                return Err(Error::new(format!(
                    "`{}` writes to an argument that shares memory with another, before it reads a tensor's element or \
                     calls a function with a rule of its own; pass a `copy()` of one of them",
                    next.name
                )));
            }
        }
        Ok(())
    }

    fn canonical(&self, slot: Slot) -> Slot {
        self.same.get(&slot).copied().unwrap_or(slot)
    }
}

fn set(table: &mut Inputs, slot: Slot, word: u64) {
    let at = slot as usize;
    if table.0.len() <= at {
        table.0.resize(at + 1, 0);
    }
    table.0[at] = word;
}
