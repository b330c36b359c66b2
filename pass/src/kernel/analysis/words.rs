//! Words: integers that carry bits of floats or pointers.
//!
//! An integer lane (four bytes) is a word if it can come, copied bit by bit, from a float or pointer in memory or in a
//! register, and go, copied, to where it is one again. All other integers have no derivative. A lane's kinds are those
//! of the memory and registers that it shares copies with.
//!
//! **Promise.** Bits of a float that reach a float again by copies only do so through words. Bits that are changed on
//! the way (not by their sign alone) and reach a float again are reported ([`Words::laundered`]): the engine refuses
//! them where they are active.

use super::constraints::{Constraints, Flow};
use super::content::{Content, cells_within, settle, touched};
use super::kinds::Kinds;
use super::pieces;
use super::regions::Target;
use super::shape::Sort;
use crate::llvm::{Function, Opcode, Value};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// The words of a module.
#[derive(Default)]
pub struct Words<'m> {
    kinds: HashMap<Value<'m>, Vec<(u32, Kinds)>>,
    laundered: HashSet<Value<'m>>,
}

/// Is it the distance of two pointers? That is a number, whatever else than pointers there may be where they come from.
pub(crate) fn is_distance(i: Value<'_>) -> bool {
    fn is_address(x: Value<'_>, steps: u32) -> bool {
        x.is(Opcode::LLVMPtrToInt)
            || x.is(Opcode::LLVMPHI) && steps > 0 && x.operands().all(|o| is_address(o, steps - 1))
    }
    i.is(Opcode::LLVMSub) && i.operands().all(|x| is_address(x, 4))
}

impl<'m> Words<'m> {
    /// The words of the module that `content` looked at.
    pub fn new(content: &Content<'_, 'm>) -> Self {
        let c = &mut *content.inner.borrow_mut();
        let mut followed = HashSet::new();
        loop {
            let (words, moved) = Self::find(c);
            if !pieces::follow(c, &moved, &mut followed) {
                return words;
            }
            settle(c);
        }
    }

    /// The words, and which slots carry what.
    fn find(c: &mut Constraints<'_, 'm>) -> (Self, Vec<bool>) {
        let (bytes, single) = bytes(c);
        // Bytes of memory in which there is nothing but integers share a class with pieces of floats elsewhere.
        let accessed: HashSet<u32> = c.bytes.iter().map(|(s, _, _)| *s).collect();
        let of_integers = |s: &u32| accessed.contains(s) && !bytes.contains(s);
        let slots = c.regions.slot_count();
        let (mut copies, mut backward, mut changes) = (vec![vec![]; slots], vec![vec![]; slots], vec![vec![]; slots]);
        for (a, b, flow) in &c.flows {
            match flow {
                Flow::Copy => {
                    copies[*a as usize].push(*b);
                    backward[*b as usize].push(*a);
                }
                Flow::Change => changes[*a as usize].push(*b),
            }
        }
        let (mut carried, mut foreign, mut floats) = (vec![], vec![], vec![]);
        for (s, from) in c.sources.clone() {
            match c.regions.kinds(s) {
                Kinds::PARTIAL if of_integers(&s) => {}
                Kinds::NONE if single.contains(&s) => {}
                Kinds::NONE if from.is_none_or(|p| c.is_open(p)) => foreign.push(s),
                Kinds::NONE => {}
                kinds => {
                    carried.push(s);
                    if kinds.meets(Kinds::FLOATS) {
                        floats.push(s);
                    }
                }
            }
        }
        let (mut wanted, mut outward) = (vec![], vec![]);
        for (s, at) in c.sinks.clone() {
            match c.regions.kinds(s) {
                Kinds::PARTIAL if of_integers(&s) => {}
                Kinds::NONE if single.contains(&s) => {}
                Kinds::NONE if at.is(Opcode::LLVMStore) && c.is_open(at.operand(1)) => outward.push(s),
                Kinds::NONE => {}
                _ => wanted.push(s),
            }
        }
        let from = reach(slots, &carried, &[&copies]);
        let to = reach(slots, &wanted, &[&backward]);
        let (foreign, outward) = (reach(slots, &foreign, &[&copies]), reach(slots, &outward, &[&backward]));
        // Distances of pointers and the like are numbers: only bits of floats count as changed.
        let of_float = reach(slots, &floats, &[&copies]);
        let mut changed: Vec<u32> = vec![];
        for s in (0..slots).filter(|s| of_float[*s]) {
            changed.extend(&changes[s]);
        }
        for (s, _) in c.signs.clone() {
            // The sign of a lane that does not end a float is no sign.
            if of_float[s as usize] && c.regions.kinds(s).meets(Kinds::F64 | Kinds::PTR | Kinds::PTR_TAIL) {
                changed.push(s);
            }
        }
        // What was changed once stays so.
        let changed = reach(slots, &changed, &[&copies, &changes]);
        let mut words = Self::default();
        for (s, at) in c.sinks.clone() {
            if changed[s as usize] && c.regions.kinds(s).meets(Kinds::FLOATS) {
                words.laundered.insert(at);
            }
        }
        let kinds = |c: &mut Constraints<'_, 'm>, s: u32| match (from[s as usize] && to[s as usize], c.regions.kinds(s))
        {
            (true, k) => k,
            (false, Kinds::NONE) if foreign[s as usize] && outward[s as usize] => c.foreign(),
            _ => Kinds::NONE,
        };
        let values: Vec<(Value<'m>, u32)> = c.values.iter().map(|(v, s)| (*v, *s)).collect();
        for (v, first) in values.into_iter().filter(|(v, _)| !v.is_constant()) {
            let shape = c.shapes.of(v.ty());
            let integers = shape
                .leaves
                .iter()
                .filter(|l| matches!(l.sort, Sort::Word | Sort::Byte));
            let slots = integers.flat_map(|l| {
                let slot = move |i| {
                    (
                        l.offset as u32 + 4 * i,
                        first + l.slot + i,
                        matches!(l.sort, Sort::Word),
                    )
                };
                (0..l.slots).map(slot)
            });
            // That its bytes are looked at one by one elsewhere says nothing of a whole lane.
            let whole = |k: Kinds| {
                if k.without(Kinds::PARTIAL).is_none() {
                    k
                } else {
                    k.without(Kinds::PARTIAL)
                }
            };
            let lanes: Vec<_> = slots
                .map(|(o, s, word)| (o, if word { whole(kinds(c, s)) } else { kinds(c, s) }))
                .filter(|(_, k)| !k.is_none())
                .collect();
            if !lanes.is_empty() {
                words.kinds.insert(v, lanes);
            }
        }
        let moved = from.into_iter().zip(to).map(|(from, to)| from && to).collect();
        (words, moved)
    }

    /// What the lanes of a value carry: offsets of four bytes each in its layout. Empty if the integers in the value
    /// are just that. The tail of a `double` or pointer is a lane of its own.
    pub fn of(&self, v: Value<'m>) -> &[(u32, Kinds)] {
        self.kinds.get(&v).map_or(&[], Vec::as_slice)
    }

    /// Does the instruction (a store, or a cast to float) take for a float what may be changed bits of another?
    pub fn laundered(&self, i: Value<'m>) -> bool {
        self.laundered.contains(&i)
    }

    /// Text form: the words of a function, and what is laundered.
    pub fn print(&self, f: Function<'m>) -> String {
        let mut text = format!("@{}\n", f.name());
        for v in f.params().into_iter().chain(f.instructions()) {
            let lanes = self.of(v);
            if !lanes.is_empty() {
                let lanes: Vec<_> = lanes.iter().map(|(o, k)| format!("{o}: {k}")).collect();
                let _ = writeln!(text, "  %{}: {}", v.name(), lanes.join(", "));
            }
            if self.laundered(v) {
                let _ = writeln!(text, "  laundered: {}", v.text().trim());
            }
        }
        text
    }
}

/// Lanes of less than four bytes that may be part of a float or pointer, which is noted; and those of a byte at a fixed
/// place of its own (a tag), which are of nothing unknown. What such pieces are put together to, four bytes that nobody
/// touches as what they are, is in pieces, too.
fn bytes(c: &mut Constraints<'_, '_>) -> (HashSet<u32>, HashSet<u32>) {
    let (mut within, mut single) = (HashSet::new(), HashSet::new());
    let mut open = vec![];
    for (s, pointer, _) in c.bytes.clone() {
        let p = c.slots_of(pointer);
        open.extend(c.regions.target(p).map(|t| (s, t)));
    }
    loop {
        let before = open.len();
        let mut left = vec![];
        for (s, t) in open {
            if touched(c, t, 2).is_none() {
                left.push((s, t));
            } else {
                c.regions.note(s, Kinds::PARTIAL);
                within.insert(s);
            }
        }
        open = left;
        let mut noted = false;
        for (s, t) in &open {
            if c.regions.kinds(*s).has(Kinds::PARTIAL) {
                noted |= note_words(c, *t);
            }
        }
        if open.len() == before && !noted {
            break;
        }
    }
    for (s, t) in open {
        if t.span.is_exact() {
            single.insert(s);
        }
        let cells = c.regions.cells(t.node).0;
        if cells.into_iter().all(|(_, cell)| c.regions.kinds(cell).is_none()) {
            // Memory that is accessed by bytes only can hold them, too.
            within.insert(s);
        }
    }
    (within, single)
}

/// Notes that four bytes that are touched by pieces are made of such; was it not known?
fn note_words(c: &mut Constraints<'_, '_>, t: Target) -> bool {
    let cells = cells_within(c, t, Some(2));
    for cell in &cells {
        c.regions.note(*cell, Kinds::PARTIAL);
    }
    !cells.is_empty()
}

fn reach(n: usize, from: &[u32], edges: &[&Vec<Vec<u32>>]) -> Vec<bool> {
    let mut seen = vec![false; n];
    let mut work: Vec<u32> = from.to_vec();
    while let Some(s) = work.pop() {
        if !std::mem::replace(&mut seen[s as usize], true) {
            for e in edges {
                work.extend(e[s as usize].iter().filter(|t| !seen[**t as usize]));
            }
        }
    }
    seen
}
