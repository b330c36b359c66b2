//! Integers that carry bits of floats and pointers through registers.

use super::{Constraints, Lane};
use crate::kernel::analysis::kinds::Kinds;
use crate::kernel::analysis::span::Span;
use crate::kernel::analysis::words::is_distance;
use crate::llvm::{Opcode, Value};

/// Vectors wider than this many lanes are not followed lane by lane.
const LANES: usize = 64;

/// The sign of the float that ends with a lane.
const SIGN: u32 = 1 << 31;

impl<'m> Constraints<'_, 'm> {
    pub(super) fn integer(&mut self, i: Value<'m>) {
        use Opcode::*;
        let ty = i.ty().scalar();
        let op = i.opcode();
        match op {
            LLVMBitCast => {
                let (from, to) = (self.lanes(i.operand(0)), self.lanes(i));
                for (a, b) in from.into_iter().zip(to) {
                    self.copy_lane(a, b, i);
                }
            }
            LLVMPtrToInt | LLVMPtrToAddr => {
                let to = self.lanes(i);
                if let (false, Some(Lane::Slot(to))) = (i.operand(0).is_undef(), to.first()) {
                    let from = self.slots_of(i.operand(0));
                    self.regions.note(*to, Kinds::PTR);
                    self.regions.flow(from, *to, Span::exact(0));
                    self.sources.push((*to, None));
                }
                if let Some(Lane::Slot(tail)) = to.get(1) {
                    self.regions.note(*tail, Kinds::PTR_TAIL);
                    self.sources.push((*tail, None));
                }
            }
            LLVMIntToPtr => {
                let from = self.lanes(i.operand(0));
                if let Some(Lane::Slot(from)) = from.first() {
                    let to = self.slots_of(i);
                    self.regions.note(*from, Kinds::PTR);
                    self.regions.flow(*from, to, Span::exact(0));
                    self.sinks.push((*from, i));
                }
                if let Some(Lane::Slot(tail)) = from.get(1) {
                    self.regions.note(*tail, Kinds::PTR_TAIL);
                    self.sinks.push((*tail, i));
                }
            }
            LLVMAddrSpaceCast => {
                let to = self.slots_of(i);
                self.copy_value(i.operand(0), to);
            }
            _ if !ty.is_int() && !ty.is_pointer() => {}
            LLVMTrunc | LLVMZExt | LLVMSExt if !i.ty().is_vector() => {
                let (from, to) = (self.lanes(i.operand(0)), self.lanes(i));
                for (a, b) in from.iter().zip(&to) {
                    self.copy_lane(*a, *b, i);
                }
                // What a sign fills in is not a copy.
                if op == LLVMSExt && to.len() > from.len() {
                    self.change(&from, &to[from.len()..]);
                }
            }
            LLVMShl | LLVMLShr if self.lane_shift(i).is_some() => {
                let by = self.lane_shift(i).unwrap_or(0);
                let (from, to) = (self.lanes(i.operand(0)), self.lanes(i));
                for k in 0..to.len().saturating_sub(by) {
                    let (a, b) = if op == LLVMShl { (k, k + by) } else { (k + by, k) };
                    if let (Some(a), Some(b)) = (from.get(a), to.get(b)) {
                        self.copy_lane(*a, *b, i);
                    }
                }
            }
            LLVMAnd | LLVMOr | LLVMXor => self.bits(i),
            LLVMExtractElement => self.extract_element(i),
            LLVMInsertElement => self.insert_element(i),
            LLVMShuffleVector => self.shuffle(i),
            LLVMAdd | LLVMSub | LLVMMul | LLVMUDiv | LLVMSDiv | LLVMURem | LLVMSRem | LLVMShl | LLVMLShr | LLVMAShr
            | LLVMTrunc | LLVMZExt | LLVMSExt => self.arithmetic(i),
            _ => {}
        }
    }

    /// By how many lanes does the shift move?
    fn lane_shift(&self, i: Value<'m>) -> Option<usize> {
        let by = i.operand(1);
        let bits = if by.is_const_int() && by.ty().int_width() <= 64 {
            by.zext_value()
        } else {
            1
        };
        bits.is_multiple_of(32).then_some(bits as usize / 32)
    }

    /// The result is another number; where an operand is a pointer's bits, it still points into its object.
    fn arithmetic(&mut self, i: Value<'m>) {
        let to = self.lanes(i);
        for a in i.operands().filter(|a| !a.is_constant()).collect::<Vec<_>>() {
            let from = self.lanes(a);
            if from.len() <= LANES && to.len() <= LANES && !is_distance(i) {
                self.change(&from, &to);
            }
            if let (Some(Lane::Slot(from)), Some(Lane::Slot(to))) = (from.first(), to.first()) {
                self.regions.flow(*from, *to, Span::strided(0, 1));
            }
        }
    }

    /// Lane `k` of an integer constant.
    fn constant_lane(&self, v: Value<'m>, k: usize) -> Option<u32> {
        if v.ty().is_vector() {
            let width = v.ty().element().int_width();
            return match width {
                32 | 64 => {
                    let per = width as usize / 32;
                    self.constant_lane(v.element((k / per) as u32)?, k % per)
                }
                _ => None,
            };
        }
        let wide = v.ty().int_width() > 64;
        match v.is_const_int() && !wide {
            true => Some(v.zext_value().checked_shr(32 * k as u32).unwrap_or(0) as u32),
            false => v.is_null().then_some(0),
        }
    }

    /// Is lane `k` of the value zero for sure?
    fn is_zero_lane(&self, v: Value<'m>, k: usize, depth: u32) -> bool {
        if v.is_constant() {
            return self.constant_lane(v, k) == Some(0);
        }
        if depth == 0 || !v.is_instruction() || v.ty().is_vector() {
            return false;
        }
        let zero = |n: u32, k: usize| self.is_zero_lane(v.operand(n), k, depth - 1);
        match v.opcode() {
            Opcode::LLVMZExt => k >= v.operand(0).ty().int_width().div_ceil(32) as usize,
            Opcode::LLVMShl => self.lane_shift(v).is_some_and(|by| k < by || zero(0, k - by)),
            Opcode::LLVMLShr => {
                let lanes = v.ty().int_width().div_ceil(32) as usize;
                self.lane_shift(v).is_some_and(|by| k + by >= lanes || zero(0, k + by))
            }
            Opcode::LLVMAnd => zero(0, k) || zero(1, k),
            Opcode::LLVMOr => zero(0, k) && zero(1, k),
            _ => false,
        }
    }

    /// `and`, `or`, `xor`: lanes that pass unchanged, or whose sign alone changes, are copies.
    fn bits(&mut self, i: Value<'m>) {
        let to = self.lanes(i);
        let (x, y) = (i.operand(0), i.operand(1));
        let and = i.is(Opcode::LLVMAnd);
        for (a, b) in [(x, y), (y, x)] {
            if a.is_constant() {
                continue;
            }
            let from = self.lanes(a);
            for k in 0..to.len() {
                let mask = if b.is_constant() {
                    self.constant_lane(b, k)
                } else {
                    None
                };
                let passes = match mask {
                    Some(m) if and && m == 0 => continue,
                    Some(m) if and => m == u32::MAX || m == !SIGN,
                    Some(m) => m == 0 || m == SIGN,
                    None => !and && self.is_zero_lane(b, k, 4),
                };
                match passes {
                    true => {
                        self.copy_lane(from[k], to[k], i);
                        if let (true, Lane::Slot(to)) = (mask.is_some_and(|m| m == SIGN || m == !SIGN), to[k]) {
                            self.signs.push((to, i));
                        }
                    }
                    false if !and && self.is_zero_lane(a, k, 4) => {}
                    false => self.change(&from[k..=k], &to[k..=k]),
                }
            }
            if let (Some(Lane::Slot(from)), Some(Lane::Slot(to))) = (from.first(), to.first()) {
                self.regions.flow(*from, *to, Span::strided(0, 1));
            }
        }
    }

    /// Lanes of an element of the vector; `None` where elements are not whole lanes.
    fn per_element(&self, vector: Value<'m>) -> Option<usize> {
        let size = self.module.store_size(vector.ty().element());
        size.is_multiple_of(4).then_some(size as usize / 4)
    }

    fn extract_element(&mut self, i: Value<'m>) {
        let (vector, index) = (i.operand(0), i.operand(1));
        let (from, to) = (self.lanes(vector), self.lanes(i));
        let Some(per) = self.per_element(vector) else {
            return self.change(&from, &to);
        };
        for e in 0..vector.ty().length() as usize {
            if !index.is_const_int() || index.zext_value() as usize == e {
                for k in 0..per.min(to.len()) {
                    self.copy_lane(from[e * per + k], to[k], i);
                }
            }
        }
    }

    fn insert_element(&mut self, i: Value<'m>) {
        let (vector, part, index) = (i.operand(0), i.operand(1), i.operand(2));
        let (old, new, to) = (self.lanes(vector), self.lanes(part), self.lanes(i));
        let Some(per) = self.per_element(vector) else {
            self.change(&old, &to);
            return self.change(&new, &to);
        };
        for e in 0..vector.ty().length() as usize {
            let here = !index.is_const_int() || index.zext_value() as usize == e;
            for k in 0..per {
                if here && !part.is_undef() {
                    self.copy_lane(new[k], to[e * per + k], i);
                }
                if (!here || !index.is_const_int()) && !vector.is_undef() {
                    self.copy_lane(old[e * per + k], to[e * per + k], i);
                }
            }
        }
    }

    fn shuffle(&mut self, i: Value<'m>) {
        let (x, y) = (i.operand(0), i.operand(1));
        let (a, b, to) = (self.lanes(x), self.lanes(y), self.lanes(i));
        let Some(per) = self.per_element(x) else {
            self.change(&a, &to);
            return self.change(&b, &to);
        };
        let n = x.ty().length() as usize;
        for (e, from) in i.shuffle_mask().into_iter().enumerate() {
            let Some(from) = from.map(|f| f as usize) else { continue };
            let (lanes, value, from) = if from < n { (&a, x, from) } else { (&b, y, from - n) };
            for k in 0..per {
                if !value.is_undef() {
                    self.copy_lane(lanes[from * per + k], to[e * per + k], i);
                }
            }
        }
    }
}
