//! Accesses and addresses.

use super::{Constraints, Lane};
use crate::kernel::analysis::kinds::Kinds;
use crate::kernel::analysis::shape::{Leaf, Sort, part_kind};
use crate::kernel::analysis::span::{Span, Step};
use crate::llvm::{Opcode, Type, Value};

impl<'m> Constraints<'_, 'm> {
    pub(super) fn load(&mut self, i: Value<'m>) {
        let first = self.slots_of(i);
        self.accesses.insert(i, first);
        let shape = self.shape(i);
        for leaf in &shape.leaves {
            self.access(i.operand(0), leaf, first, first, false, i);
        }
    }

    pub(super) fn store(&mut self, i: Value<'m>) {
        let value = i.operand(0);
        let shape = self.shape(value);
        let memory = self.allot(shape.slots);
        self.accesses.insert(i, memory);
        if value.is_undef() {
            return;
        }
        let first = self.slots_of(value);
        for leaf in &shape.leaves {
            self.access(i.operand(1), leaf, memory, first, true, i);
        }
    }

    /// A leaf in memory; `memory` is the first slot for what is there, `value` of what is in registers.
    fn access(&mut self, pointer: Value<'m>, leaf: &Leaf, memory: u32, value: u32, write: bool, at: Value<'m>) {
        let p = self.slots_of(pointer);
        let step = |i: u32| Span::exact(leaf.offset + 4 * i64::from(i));
        match leaf.sort {
            Sort::Float(k) => {
                for i in 0..leaf.slots {
                    let slot = memory + leaf.slot + i;
                    self.regions.note(slot, part_kind(k, i));
                    self.regions.access(p, step(i), slot, write);
                }
            }
            Sort::Pointer => {
                let cell = memory + leaf.slot;
                let slot = value + leaf.slot;
                self.regions.note(cell, Kinds::PTR);
                self.regions.access(p, step(0), cell, write);
                match write {
                    true => self.regions.flow(slot, cell, Span::exact(0)),
                    false => self.regions.flow(cell, slot, Span::exact(0)),
                }
                let tail = self.regions.slot();
                self.regions.note(tail, Kinds::PTR_TAIL);
                self.regions.access(p, step(1), tail, write);
            }
            Sort::Word => {
                for i in 0..leaf.slots {
                    let (cell, slot) = (memory + leaf.slot + i, value + leaf.slot + i);
                    self.regions.access(p, step(i), cell, write);
                    match write {
                        true => {
                            self.regions.copy(slot, cell);
                            self.sinks.push((slot, at));
                        }
                        false => {
                            self.regions.copy(cell, slot);
                            self.sources.push((slot, Some(pointer)));
                        }
                    }
                }
            }
            Sort::Byte => {
                let (cell, slot) = (memory + leaf.slot, value + leaf.slot);
                self.regions.access_byte(p, cell);
                self.regions.share(cell, slot);
                self.bytes.push((slot, pointer, write));
                match write {
                    true => self.sinks.push((slot, at)),
                    false => self.sources.push((slot, Some(pointer))),
                }
            }
        }
    }

    /// `atomicrmw` and `cmpxchg`: a load and a store of one value.
    pub(super) fn atomic(&mut self, i: Value<'m>) {
        let exchange = i.is(Opcode::LLVMAtomicCmpXchg);
        let new = i.operand(if exchange { 2 } else { 1 });
        let shape = self.shape(new);
        let memory = self.allot(shape.slots);
        self.accesses.insert(i, memory);
        let (from, to) = (self.slots_of(new), self.slots_of(i));
        for leaf in &shape.leaves {
            if !new.is_undef() {
                self.access(i.operand(0), leaf, memory, from, true, i);
            }
            self.access(i.operand(0), leaf, memory, to, false, i);
        }
    }

    pub(super) fn gep(&mut self, i: Value<'m>) {
        let step = self.step(true, i);
        let base = i.operand(0);
        let (from, to) = (self.slots_of(base), self.slots_of(i));
        let (bases, results) = (self.shape(base).slots, self.shape(i).slots);
        for k in 0..results {
            self.regions.flow(from + k.min(bases.saturating_sub(1)), to + k, step);
        }
    }

    /// What a `getelementptr` adds.
    pub(super) fn step(&mut self, inside: bool, gep: Value<'m>) -> Step {
        let mut ty = gep.gep_type();
        let mut total = Span::exact(0);
        let upward = gep.gep_never_wraps();
        for k in 1..gep.operand_count() as u32 {
            let index = gep.operand(k);
            if k > 1 {
                if ty.is_struct() {
                    let field = index.zext_value() as u32;
                    total = total.shifted(self.module.offset(ty, field) as i64);
                    ty = ty.field(field);
                    continue;
                }
                ty = ty.element();
            }
            let size = self.module.size(ty) as i64;
            total = total.plus(self.index(inside.then_some(gep), index, size, upward));
        }
        total
    }

    fn index(&mut self, at: Option<Value<'m>>, index: Value<'m>, size: i64, upward: bool) -> Step {
        if index.is_const_int() {
            return Span::exact(index.sext_value().wrapping_mul(size));
        }
        let facts = match at {
            Some(at) if !is_vector(index.ty()) => self.llvm.integer_facts(at, index),
            _ => None,
        };
        let Some(facts) = facts else {
            return Span::strided(0, size);
        };
        let stride = facts.multiple.checked_mul(size).map_or(size, i64::abs);
        let bound = |x: i64, open: i64| if x == open { None } else { x.checked_mul(size) };
        let low = bound(facts.least, i64::MIN).filter(|l| !upward || *l >= 0);
        Span {
            low: if upward { Some(low.unwrap_or(0)) } else { low },
            high: bound(facts.greatest, i64::MAX),
            ..Span::strided(0, stride)
        }
    }

    /// A copy of a small block, cell by cell.
    pub(super) fn copy_cells(&mut self, call: Value<'m>, to: Value<'m>, from: Value<'m>, bytes: u64) {
        let n = (bytes / 4) as u32;
        let first = self.allot(n.max(1));
        self.accesses.insert(call, first);
        let (p, q) = (self.slots_of(to), self.slots_of(from));
        for i in 0..n {
            let step = Span::exact(4 * i64::from(i));
            self.regions.access(q, step, first + i, false);
            self.regions.access(p, step, first + i, true);
        }
        let bytes = self.regions.slot();
        self.regions.access_byte(p, bytes);
        self.regions.access_byte(q, bytes);
    }

    /// Notes that a lane's value is changed on its way to another.
    pub(super) fn change(&mut self, from: &[Lane], to: &[Lane]) {
        for a in from {
            for b in to {
                if let (Lane::Slot(a), Lane::Slot(b)) = (a, b) {
                    self.flows.push((*a, *b, super::Flow::Change));
                }
            }
        }
    }
}

fn is_vector(t: Type<'_>) -> bool {
    t.is_vector()
}
