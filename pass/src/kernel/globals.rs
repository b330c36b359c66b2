//! Shadows of global variables: one block per call of a derivative, whose address stands in the arena.
//!
//!     block = { i64 number, i64 offset of the shadows, { ptr variable, i64 size, ptr shadow } .., shadows .. }
//!
//! Of several directions at once each has all shadows, at the same distance from those of the one before it; the entries
//! tell those of the first.
//!
//! A variable has a shadow if an active access may meet it (`analysis/activity.rs`). Every call begins with zeros: what a
//! variable holds then depends on nothing that the call is given. So derivatives are re-entrant, threads have shadows of
//! their own, and nothing of one call is left for the next. In code the shadow of a variable's address is computed from
//! the block; an address that came through memory without shadows is looked up in it (`cotangent.shadow`).

use super::reverse::leaves::{UNKNOWN, inactive_shadow};
use crate::llvm::{Builder, Function, Mod, Value};
use std::collections::HashMap;

/// Where the arena holds the address of the block.
const AT: u64 = 48;
/// Bytes of an entry.
const ENTRY: u64 = 24;

/// Bytes of what tells of so many variables.
fn entries(variables: usize) -> u64 {
    (16 + ENTRY * variables as u64).next_multiple_of(16)
}

/// The global variables of a module that have shadows.
pub struct Globals<'m> {
    module: Mod<'m>,
    variables: Vec<Value<'m>>,
    /// Offsets of the shadows in the block.
    places: HashMap<Value<'m>, u64>,
    /// Bytes of the shadows of one direction.
    bytes: u64,
}

impl<'m> Globals<'m> {
    /// Gives these variables shadows, except those of which the size is not known.
    pub fn new(module: Mod<'m>, variables: &[Value<'m>]) -> Self {
        let size = |g: &Value<'m>| module.size(g.value_type());
        let variables: Vec<_> = variables
            .iter()
            .copied()
            .filter(|g| g.value_type().is_sized() && size(g) > 0)
            .collect();
        let (mut bytes, mut places) = (0, HashMap::new());
        for g in &variables {
            places.insert(*g, entries(variables.len()) + bytes);
            bytes += size(g).next_multiple_of(16);
        }
        Self {
            module,
            variables,
            places,
            bytes,
        }
    }

    /// Has no variable a shadow?
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty()
    }

    /// Is it an address in a variable that has a shadow?
    pub fn has(&self, address: Value<'m>) -> bool {
        address.is_constant() && self.place(address).is_some()
    }

    fn place(&self, address: Value<'m>) -> Option<(Value<'m>, u64)> {
        if self.is_empty() || !address.ty().is_pointer() {
            return None;
        }
        let variable = address.underlying_object();
        Some((variable, *self.places.get(&variable)?))
    }

    /// Does a constant hold an address in a variable that has a shadow?
    pub fn reaches(&self, constant: Value<'m>) -> bool {
        if self.is_empty() || !constant.is_constant() {
            return false;
        }
        let ty = constant.ty();
        if ty.is_struct() || ty.is_array() || ty.is_vector() {
            let parts = 0..ty.parts().len() as u32;
            return parts.filter_map(|k| constant.element(k)).any(|part| self.reaches(part));
        }
        self.place(constant).is_some()
    }

    /// How far the shadows of a direction are from those of the first.
    pub fn distance(&self, direction: u32) -> u64 {
        self.bytes * u64::from(direction)
    }

    /// The shadow of a constant in a direction. What it takes is emitted where the builder stands: the function's entry.
    pub fn shadow(&self, b: &Builder<'m>, arena: Value<'m>, constant: Value<'m>, direction: u32) -> Value<'m> {
        let ty = constant.ty();
        if !self.reaches(constant) {
            return inactive_shadow(ty, UNKNOWN);
        }
        let word = self.module.context().int(64);
        if let Some((variable, place)) = self.place(constant) {
            let block = b.load(ty, b.offset(arena, word.int(AT)));
            let shadow = b.offset(block, word.int(place + self.distance(direction)));
            return match constant == variable {
                true => shadow,
                false => b.offset(shadow, b.sub(b.ptrtoint(constant, word), b.ptrtoint(variable, word))),
            };
        }
        let index = self.module.context().int(32);
        (0..ty.parts().len() as u32).fold(inactive_shadow(ty, UNKNOWN), |whole, k| {
            let Some(part) = constant.element(k).filter(|part| self.reaches(*part)) else {
                return whole;
            };
            let part = self.shadow(b, arena, part, direction);
            match ty.is_vector() {
                true => b.insert_element(whole, part, index.int(u64::from(k))),
                false => b.insert_value(whole, part, k),
            }
        })
    }

    /// Makes the block of a call in so many directions, at its beginning.
    pub fn open(&self, b: &Builder<'m>, alloc: Function<'m>, arena: Value<'m>, width: u32) {
        if self.is_empty() {
            return;
        }
        let word = self.module.context().int(64);
        let bytes = entries(self.variables.len()) + self.distance(width);
        let block = b.call(alloc, &[arena, word.int(bytes)]);
        let at = |offset: u64| b.offset(block, word.int(offset));
        b.store(block, b.offset(arena, word.int(AT)));
        b.store(word.int(self.variables.len() as u64), block);
        b.store(word.int(self.places[&self.variables[0]]), at(8));
        for (k, g) in self.variables.iter().enumerate() {
            let entry = 16 + ENTRY * k as u64;
            b.store(*g, at(entry));
            b.store(word.int(self.module.size(g.value_type())), at(entry + 8));
            b.store(at(self.places[g]), at(entry + 16));
        }
    }
}
