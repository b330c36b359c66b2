//! The ways through a call of several regions: back, with one cotangent per slot, and forward, with one tangent.

use super::backward::Owner;
use super::code::Datum;
use super::derivative::Derivative;
use super::mask::Mask;
use super::pass::Pass;
use super::rule::Called;
use super::run::add;
use crate::error::Error;
use cotangent_graph::ir::Type;
use cotangent_graph::specialize::Slot;
use std::collections::HashMap;

/// One step of a call.
pub(super) enum Link {
    Region {
        pass: Pass,
        /// Slots of what it is differentiated for.
        inputs: Vec<Slot>,
        /// Slots of its outputs.
        outputs: Vec<Slot>,
    },
    Rule(Called),
}

/// What a call did before its last region, for the ways back and forth.
pub(super) struct Before {
    pub(super) links: Vec<Link>,
    /// Slots of what the last region is differentiated for.
    pub(super) inputs: Vec<Slot>,
    /// Slots of what the call is differentiated for.
    pub(super) roots: Vec<Slot>,
    pub(super) same: HashMap<Slot, Slot>,
}

/// The cotangents on the way back, by slot.
pub(super) struct Bars<'a> {
    bars: HashMap<Slot, Datum>,
    same: &'a HashMap<Slot, Slot>,
}

impl Bars<'_> {
    fn of(&self, slot: Slot) -> Slot {
        self.same.get(&slot).copied().unwrap_or(slot)
    }

    pub(super) fn add(&mut self, slot: Slot, bar: Datum) -> Result<(), Error> {
        let slot = self.of(slot);
        let total = match self.bars.remove(&slot) {
            None => bar,
            Some(sum) => add(sum, bar)?,
        };
        self.bars.insert(slot, total);
        Ok(())
    }

    pub(super) fn take(&mut self, slot: Slot) -> Option<Datum> {
        let slot = self.of(slot);
        self.bars.remove(&slot)
    }
}

impl Before {
    /// The cotangents of what the call is differentiated for, from the seeds of its last region.
    pub(super) fn pullback(
        &self,
        last: &Pass,
        seeds: &[Option<Datum>],
        needs: &Mask,
    ) -> Result<Vec<Option<Datum>>, Error> {
        let mut bars = Bars {
            bars: HashMap::new(),
            same: &self.same,
        };
        pull(last, seeds, &self.inputs, &mut bars)?;
        for link in self.links.iter().rev() {
            match link {
                Link::Region { pass, inputs, outputs } => {
                    let seeds: Vec<Option<Datum>> = outputs.iter().map(|slot| bars.take(*slot)).collect();
                    pull(pass, &seeds, inputs, &mut bars)?;
                }
                Link::Rule(called) => called.pull(&mut bars)?,
            }
        }
        let roots = self.roots.iter().enumerate();
        Ok(roots
            .map(|(k, slot)| bars.take(*slot).filter(|_| needs.has(k)))
            .collect())
    }

    /// The tangents of the last region's outputs, from those of what the call is differentiated for.
    pub(super) fn push(self, last: Pass, tangents: &[Option<Datum>]) -> Result<Vec<Option<Datum>>, Error> {
        let mut moving = HashMap::new();
        let of = |slot: &Slot| self.same.get(slot).copied().unwrap_or(*slot);
        for (slot, tangent) in self.roots.iter().zip(tangents) {
            if let Some(tangent) = tangent {
                moving.insert(of(slot), tangent.share());
            }
        }
        let read = |slots: &[Slot], moving: &HashMap<Slot, Datum>| -> Vec<Option<Datum>> {
            slots
                .iter()
                .map(|slot| moving.get(&of(slot)).map(Datum::share))
                .collect()
        };
        for link in self.links {
            match link {
                Link::Region { pass, inputs, outputs } => {
                    let made = pass.push(&read(&inputs, &moving))?;
                    for (slot, tangent) in outputs.iter().zip(made) {
                        match tangent {
                            Some(tangent) => moving.insert(of(slot), tangent),
                            None => moving.remove(&of(slot)),
                        };
                    }
                }
                Link::Rule(called) => called.refuse_tangents(&|slot| moving.contains_key(&of(&slot)))?,
            }
        }
        last.push(&read(&self.inputs, &moving))
    }

    /// The type of a value that the call is differentiated for, if it is differentiable and read.
    pub(super) fn input<'a>(&'a self, i: usize, last: &'a Derivative) -> Option<&'a Type> {
        let root = self.roots[i];
        let place = |inputs: &[Slot]| inputs.iter().position(|slot| *slot == root);
        let earlier = self.links.iter().find_map(|link| match link {
            Link::Region { pass, inputs, .. } => Some(pass.derivative().input(place(inputs)?)),
            Link::Rule(_) => None,
        });
        earlier.or_else(|| Some(last.input(place(&self.inputs)?)))
    }

    /// Frees what was saved.
    pub(super) fn release(&self) {
        for link in &self.links {
            match link {
                Link::Region { pass, .. } => crate::torch::node::Backward::release(pass),
                Link::Rule(called) => called.release(),
            }
        }
    }
}

fn pull(pass: &Pass, seeds: &[Option<Datum>], inputs: &[Slot], bars: &mut Bars<'_>) -> Result<(), Error> {
    let all = Mask::of(inputs.iter().map(|_| true));
    let made = pass.own(seeds, &all, Owner::User).map_err(Error::new)?;
    for (slot, bar) in inputs.iter().zip(made) {
        if let Some(bar) = bar {
            bars.add(*slot, bar)?;
        }
    }
    Ok(())
}
