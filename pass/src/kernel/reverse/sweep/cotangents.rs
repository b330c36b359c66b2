//! Cotangents of values: sums in places that begin at the spine, or, within a block, values.
//!
//! A float that the code takes apart in an integer has a second sum, of pieces, until all have come.

use super::Sweep;
use crate::kernel::reverse::leaves::neutral;
use crate::llvm::{Builder, Opcode, Value};

/// A sum over the iterations of a loop has no order that anybody chose: LLVM may keep several sums of parts. Without other
/// licences it leaves out and cancels nothing, so that all that is not a number stays in the sum.
const REASSOCIATE: u32 = 1;

/// What is added to a cotangent.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// Floats.
    Whole,
    /// Pieces of such, in integers: there is one for each byte.
    Piece,
}

/// What has a sum: part of the cotangent of a value, in a direction.
pub(super) type Summed<'m> = (Value<'m>, u32, Part);

impl<'m> Sweep<'_, 'm> {
    fn summed(&self, v: Value<'m>, part: Part) -> Summed<'m> {
        (v, self.direction, part)
    }

    fn cotangent_place(&mut self, v: Value<'m>, part: Part) -> Value<'m> {
        if let Some(place) = self.cotangents.get(&self.summed(v, part)) {
            return *place;
        }
        let place = self.places.alloca(v.ty());
        match self.spine.start(&self.plan.shape, v) {
            Some(block) => {
                let start = self.starts[&block];
                let b = Builder::new(self.engine.module().context());
                match start.first() {
                    Some(first) => b.before(first),
                    None => b.at_end(start),
                }
                b.store(neutral(v.ty()), place);
            }
            None => drop(self.places.store(neutral(v.ty()), place)),
        }
        self.cotangents.insert(self.summed(v, part), place);
        place
    }

    /// Is the value used in its own block only? Then its cotangent needs no place: all that adds to it comes right before
    /// it is taken.
    fn is_local(&mut self, v: Value<'m>) -> bool {
        if let Some(known) = self.local.get(&v) {
            return *known;
        }
        let within = |user: Value<'m>| {
            let block = user.block();
            block == v.block() && !user.is(Opcode::LLVMPHI) || !self.plan.shape.is_live(block)
        };
        let local = v.is_instruction() && !v.is(Opcode::LLVMPHI) && !v.is_terminator() && v.users().all(within);
        self.local.insert(v, local);
        local
    }

    /// Takes the cotangent of a value, and leaves zero.
    pub fn take(&mut self, v: Value<'m>) -> Value<'m> {
        let whole = self.take_part(v, Part::Whole);
        let pieces = self.summed(v, Part::Piece);
        if !self.sums.contains_key(&pieces) && !self.cotangents.contains_key(&pieces) {
            return whole;
        }
        let pieces = self.take_part(v, Part::Piece);
        self.plan.leaves(v).add(self.b, whole, pieces)
    }

    fn take_part(&mut self, v: Value<'m>, part: Part) -> Value<'m> {
        if let Some(sum) = self.sums.remove(&self.summed(v, part)) {
            return sum;
        }
        if self.is_local(v) {
            return neutral(v.ty());
        }
        let place = self.cotangent_place(v, part);
        let cotangent = self.b.load(v.ty(), place);
        self.b.store(neutral(v.ty()), place);
        cotangent
    }

    /// Adds to the cotangent of a value that has one.
    pub fn accumulate(&mut self, v: Value<'m>, by: Value<'m>) {
        self.accumulate_part(v, by, Part::Whole);
    }

    /// Adds to the cotangent of an integer pieces of the floats in it, with zeros beside them.
    pub fn accumulate_piece(&mut self, v: Value<'m>, by: Value<'m>) {
        self.accumulate_part(v, by, Part::Piece);
    }

    fn accumulate_part(&mut self, v: Value<'m>, by: Value<'m>, part: Part) {
        if !self.plan.active(v) || by.is_null() {
            return;
        }
        let leaves = self.plan.leaves(v);
        let add = |b: &Builder<'m>, so_far| match part {
            Part::Whole => leaves.add(b, so_far, by),
            Part::Piece => leaves.put_together(b, so_far, by),
        };
        if self.is_local(v) {
            let so_far = self.sums.get(&self.summed(v, part)).copied();
            let sum = match (so_far, part) {
                (Some(so_far), _) => add(self.b, so_far),
                (None, Part::Whole) => add(self.b, neutral(v.ty())),
                (None, Part::Piece) => by,
            };
            self.sums.insert(self.summed(v, part), sum);
            return;
        }
        let place = self.cotangent_place(v, part);
        let sum = add(self.b, self.b.load(v.ty(), place));
        if v.ty().scalar().is_float() && self.region != self.plan.shape.region_of_value(v) {
            sum.set_fast_math(REASSOCIATE);
        }
        self.b.store(sum, place);
    }
}
