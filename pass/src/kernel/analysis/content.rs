//! Types of memory: what the bytes that a pointer leads to can hold.
//!
//! **Promise.** If a float or pointer is ever loaded or stored at a byte by code of the module, then every answer about
//! that byte, asked through any pointer, names it; provided pointers reach memory only by the ways that [`constraints`]
//! follows: offsets, copies through memory and registers (integers included), calls, and code outside, which may only
//! store what it was given in what it was given. A pointer made from an integer of another source has no known object
//! ([`Content::is_wild`]); the engine must not take such memory for inactive. Floats and pointers are taken to lie at
//! multiples of four bytes from each other.
//!
//! So integers beside floats do no harm (their shadow is zero), and what is named beyond need costs time, not
//! correctness. Memory from outside that the module never touches by type is *unknown*.
//!
//! [`constraints`]: super::constraints

use super::constraints::Constraints;
use super::crossing;
use super::kinds::Kinds;
use super::regions::{Origin, Target};
use super::span::{Span, gcd};
use super::start::Start;
use crate::llvm::{Analyses, Function, Mod, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Windows of up to this many bytes are looked at four by four.
const WINDOW: u64 = 4096;

/// The content of the memory of a module.
pub struct Content<'a, 'm> {
    pub(super) inner: RefCell<Constraints<'a, 'm>>,
}

/// One value in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// `double`.
    F64,
    /// `float`.
    F32,
    /// `long double`.
    F80,
    /// Four bytes of the caller's memory that no code touches as what they are: of a float, or of an integer.
    Part,
    /// A pointer.
    Pointer,
}

/// What a range of memory holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Holds {
    /// Integers; no float and no pointer.
    Integers,
    /// Values at these offsets from the start, and integers; repeated every `period` bytes, if that is not zero.
    Fields {
        /// Distance of repetitions.
        period: u64,
        /// Offsets and what is there, ascending.
        fields: Vec<(u64, Field)>,
    },
    /// What is where differs from time to time, or is not known.
    Undecided {
        /// May there be pointers?
        pointers: bool,
        /// May there be `double`s?
        f64: bool,
        /// May there be `float`s?
        f32: bool,
        /// May there be floats of other widths?
        other: bool,
        /// May there be what code outside put there, and no code of the module touches?
        unknown: bool,
        /// Where may they begin?
        words: Start,
    },
}

impl Holds {
    const UNKNOWN: Self = Self::Undecided {
        pointers: true,
        f64: true,
        f32: true,
        other: true,
        unknown: true,
        words: Start::Aligned,
    };
}

impl<'a, 'm> Content<'a, 'm> {
    /// Looks at all functions of a module. `roots` are those that are called from outside, `constant` says which of their
    /// arguments have no derivative in any call.
    pub fn new(
        module: Mod<'m>,
        llvm: &'a Analyses<'m>,
        roots: &[Function<'m>],
        constant: &dyn Fn(Value<'m>) -> bool,
    ) -> Self {
        let mut c = Constraints::solve(module, llvm, roots, constant);
        settle(&mut c);
        Self { inner: RefCell::new(c) }
    }

    /// What `size` bytes from a pointer (`None`: any number) hold.
    pub fn region(&self, pointer: Value<'m>, size: Option<u64>) -> Holds {
        let c = &mut *self.inner.borrow_mut();
        let slot = c.slots_of(pointer);
        match c.regions.target(slot) {
            Some(t) => holds(c, t, size, true),
            None => Holds::UNKNOWN,
        }
    }

    /// What a copy of `size` bytes moves. Memory at one end that code outside knows is no unknown, if the other end is
    /// the module's own: what is never read there by type needs nothing.
    pub fn copied(&self, to: Value<'m>, from: Value<'m>, size: Option<u64>) -> Holds {
        let c = &mut *self.inner.borrow_mut();
        let (to, from) = (c.slots_of(to), c.slots_of(from));
        match (c.regions.target(to), c.regions.target(from)) {
            (Some(to), Some(from)) => {
                let open = c.regions.origin(to.node).given && c.regions.origin(from.node).given;
                let (a, b) = (holds(c, to, size, open), holds(c, from, size, open));
                // Both ends share their cells; the end that is known in more detail tells.
                if matches!(a, Holds::Undecided { .. }) { b } else { a }
            }
            _ => Holds::UNKNOWN,
        }
    }

    /// Does run time tell which floats memory from outside holds, and are its shadows zero in the forward sweep?
    pub fn is_told(&self) -> bool {
        self.inner.borrow().told
    }

    /// May shadows of floats be other than zero in the forward sweep, where the pointer leads?
    pub fn may_hold_seeds(&self, pointer: Value<'m>) -> bool {
        let c = &mut *self.inner.borrow_mut();
        let slot = c.slots_of(pointer);
        let target = c.regions.target(slot);
        !c.told && target.is_none_or(|t| c.regions.origin(t.node).given || c.regions.origin(t.node).is_none())
    }

    /// Is it unknown what object a pointer leads to?
    pub fn is_wild(&self, pointer: Value<'m>) -> bool {
        let c = &mut *self.inner.borrow_mut();
        let slot = c.slots_of(pointer);
        let target = c.regions.target(slot);
        target.is_none_or(|t| c.regions.origin(t.node).is_none())
    }

    /// May code outside of the module read or write where the pointer leads?
    pub fn is_open(&self, pointer: Value<'m>) -> bool {
        self.inner.borrow_mut().is_open(pointer)
    }

    /// Text form: where pointers lead, then what is there.
    pub fn print(&self, f: Function<'m>) -> String {
        let c = &mut *self.inner.borrow_mut();
        let mut nodes: Vec<u32> = vec![];
        let mut text = format!("@{}\n", f.name());
        for v in f
            .params()
            .into_iter()
            .chain(f.instructions())
            .filter(|v| v.ty().is_pointer())
        {
            let slot = c.slots_of(v);
            let Some(t) = c.regions.target(slot) else { continue };
            let number = nodes.iter().position(|n| *n == t.node).unwrap_or_else(|| {
                nodes.push(t.node);
                nodes.len() - 1
            });
            let _ = writeln!(text, "  %{} -> #{number}{}", v.name(), at(t.span));
        }
        let mut i = 0;
        while i < nodes.len() {
            let node = nodes[i];
            let _ = write!(text, "  #{i} {}:", origin(c.regions.origin(node)));
            let (mut cells, fold) = c.regions.cells(node);
            cells.sort_by_key(|(s, _)| (s.base, s.stride));
            for (span, slot) in cells {
                let kinds = c.regions.kinds(slot);
                if kinds == Kinds::F64_TAIL || kinds == Kinds::PTR_TAIL || kinds.is_none() {
                    continue;
                }
                let _ = write!(text, "{} {kinds}", at(span));
                if let Some(t) = c.regions.target(slot) {
                    let number = nodes.iter().position(|n| *n == t.node).unwrap_or_else(|| {
                        nodes.push(t.node);
                        nodes.len() - 1
                    });
                    let _ = write!(text, " -> #{number}{}", at(t.span));
                }
                text.push(',');
            }
            if text.ends_with(',') {
                text.pop();
            }
            if fold != 0 {
                let _ = write!(text, " (every {fold})");
            }
            text.push('\n');
            i += 1;
        }
        text
    }
}

fn at(s: Span) -> String {
    let mut text = format!(" +{}", s.base);
    if s.stride != 0 {
        let _ = write!(text, "+{}k", s.stride);
        let bound = |b: Option<i64>| b.map_or(String::new(), |b| b.to_string());
        let _ = write!(text, " [{}..{}]", bound(s.low), bound(s.high));
    }
    text
}

fn origin(o: Origin) -> String {
    let names = [
        (o.stack, "stack"),
        (o.heap, "heap"),
        (o.global, "global"),
        (o.open, "open"),
    ];
    let names: Vec<_> = names.iter().filter(|(b, _)| *b).map(|(_, n)| *n).collect();
    if names.is_empty() {
        "wild".into()
    } else {
        names.join(" ")
    }
}

/// What follows from the constraints when they are solved.
pub(super) fn settle(c: &mut Constraints<'_, '_>) {
    spread_open(c);
    crossing::note(c);
}

/// What open memory points to is open, and what given memory points to is given.
fn spread_open(c: &mut Constraints<'_, '_>) {
    let open = Origin {
        open: true,
        ..Origin::default()
    };
    let given = Origin { given: true, ..open };
    for (from, mark) in [(|o: Origin| o.given) as fn(Origin) -> bool, |o| o.open]
        .into_iter()
        .zip([given, open])
    {
        let nodes = 0..c.regions.node_count() as u32;
        let marked = nodes.filter(|n| from(c.regions.origin(*n))).collect();
        for node in c.regions.reach(marked) {
            c.regions.add_origin(node, mark);
        }
    }
}

/// All that can be in any of `size` bytes from a target.
pub(super) fn touched(c: &mut Constraints<'_, '_>, t: Target, size: u64) -> Kinds {
    let cells = cells_within(c, t, Some(size));
    cells
        .into_iter()
        .fold(Kinds::NONE, |all, cell| all | c.regions.kinds(cell))
}

/// Classes of the cells that may be among `size` bytes from a pointer (`None`: any number).
pub(super) fn classes<'m>(c: &mut Constraints<'_, 'm>, pointer: Value<'m>, size: Option<u64>) -> Vec<u32> {
    let p = c.slots_of(pointer);
    let Some(t) = c.regions.target(p) else { return vec![] };
    let cells = cells_within(c, t, size);
    cells.into_iter().map(|cell| c.regions.class(cell)).collect()
}

/// The cells that may be among `size` bytes from a target.
pub(super) fn cells_within(c: &mut Constraints<'_, '_>, t: Target, size: Option<u64>) -> Vec<u32> {
    let (cells, fold) = c.regions.cells(t.node);
    let end = |h: i64| h.checked_add(i64::try_from(size?).ok()? - 1);
    let window = Span {
        low: t.span.low.and_then(|l| l.checked_sub(3)),
        high: t.span.high.and_then(end),
        ..Span::strided(0, 1)
    };
    let met = cells.into_iter().filter(|(s, _)| fold != 0 || s.meets(window));
    met.map(|(_, cell)| cell).collect()
}

/// What a window from a target holds; `open`: untouched memory from outside is unknown, unless no one outside sees its
/// shadow.
fn holds(c: &mut Constraints<'_, '_>, t: Target, size: Option<u64>, open: bool) -> Holds {
    let origin = c.regions.origin(t.node);
    let unknown = open && (origin.given || origin.is_none());
    let (cells, fold) = c.regions.cells(t.node);
    let span = t.span;
    let small = size.filter(|s| span.is_exact() && fold == 0 && *s <= WINDOW);
    // Cells that the window may meet, those of which it cuts off the beginning included.
    let window = Span {
        low: span.low.and_then(|l| l.checked_sub(3)),
        high: span.high.and_then(|h| h.checked_add(i64::try_from(size?).ok()? - 1)),
        ..Span::strided(0, 1)
    };
    let met: Vec<(Span, Kinds)> = cells
        .into_iter()
        .filter(|(s, _)| fold != 0 || s.meets(window))
        .map(|(s, slot)| (s, c.regions.kinds(slot)))
        .filter(|(_, k)| unknown || !k.is_none())
        .collect();
    let (length, period) = match small {
        Some(n) => (n as i64, 0),
        None => {
            let stride = met.iter().fold(gcd(span.stride, fold), |g, (s, _)| gcd(g, s.stride));
            let stride = if stride == 0 { 8 } else { stride };
            (stride, stride as u64)
        }
    };
    let all = met.iter().fold(Kinds::NONE, |a, (_, k)| a | *k);
    let undecided = Holds::Undecided {
        pointers: all.has_pointer(),
        f64: all.meets(Kinds::F64 | Kinds::F64_TAIL),
        f32: all.meets(Kinds::F32),
        other: all.meets(Kinds::OTHER_FLOAT | Kinds::F80 | Kinds::F80_TAIL),
        unknown: all.meets(Kinds::UNKNOWN | Kinds::PART),
        words: Start::of(&met, span, fold),
    };
    if all.is_none() && (!unknown || c.told) {
        return if unknown { TOLD_NOTHING } else { Holds::Integers };
    }
    if length > 4 * WINDOW as i64 {
        return undecided;
    }
    // A window behind a small field of a struct begins where no float does.
    let held = match period {
        0 => places(&met, span.base, length),
        p => turns(&met, span.base, p as i64),
    };
    let first = held.first_key_value().map_or(0, |(at, _)| at.rem_euclid(4));
    if held.first_key_value().is_some_and(|(at, _)| *at < 0) {
        return undecided;
    }
    if period % 4 != 0 || held.keys().any(|at| at.rem_euclid(4) != first) {
        // Structs without padding, one behind another.
        let scattered = unknown || met.iter().any(|(s, _)| (1..4).contains(&s.stride));
        let fields = if scattered { None } else { apart(held, length, period) };
        return fields.unwrap_or(undecided);
    }
    let mut lanes = vec![Kinds::NONE; ((length - if period == 0 { first } else { 0 }).max(0) as usize).div_ceil(4)];
    let mut known = vec![false; lanes.len()];
    for (s, k) in &met {
        for (i, lane) in lanes.iter_mut().enumerate() {
            let here = span.base + first + 4 * i as i64;
            let hit = match period {
                0 => s.contains(here),
                p => (s.base - here).rem_euclid(p as i64) == 0,
            };
            if hit {
                *lane |= *k;
                known[i] = true;
            } else if s.is_exact() && period == 0 && (s.base - here).abs() < 4 && !k.is_none() {
                return undecided;
            }
        }
    }
    // Parts of memory from outside that no code of the module touches.
    if unknown && known.contains(&false) {
        if c.told
            && let Holds::Undecided { f64, f32, other, .. } = undecided
        {
            return Holds::Undecided {
                pointers: true,
                f64,
                f32,
                other,
                unknown: true,
                words: Start::Aligned,
            };
        }
        for (lane, _) in lanes.iter_mut().zip(known).filter(|(_, known)| !known) {
            *lane = Kinds::PART;
        }
    }
    // Less than four bytes are no part of a float.
    if period == 0 && length % 4 != 0 && lanes.last().is_some_and(|l| *l == Kinds::PART) {
        lanes.pop();
    }
    fields(&lanes, first as u64, period).unwrap_or(undecided)
}

/// What memory from outside holds that no code of the module touches, if run time tells which floats there are.
const TOLD_NOTHING: Holds = Holds::Undecided {
    pointers: true,
    f64: false,
    f32: false,
    other: false,
    unknown: true,
    words: Start::Aligned,
};

/// Where in a window there is what of the cells, by its distance from the start.
fn places(met: &[(Span, Kinds)], start: i64, length: i64) -> BTreeMap<i64, Kinds> {
    let mut all = BTreeMap::new();
    for (s, kinds) in met.iter().filter(|(_, k)| !k.is_none()) {
        let step = s.stride.max(4);
        let mut at = match s.is_exact() {
            true => s.base,
            false => start - 3 + (s.base - start + 3).rem_euclid(step),
        };
        while at < start + length {
            if s.contains(at) {
                *all.entry(at - start).or_insert(Kinds::NONE) |= *kinds;
            }
            at += if s.is_exact() { length + 4 } else { step };
        }
    }
    all
}

/// The same, of what is repeated.
fn turns(met: &[(Span, Kinds)], start: i64, period: i64) -> BTreeMap<i64, Kinds> {
    let mut all = BTreeMap::new();
    for (s, kinds) in met.iter().filter(|(_, k)| !k.is_none()) {
        *all.entry((s.base - start).rem_euclid(period)).or_insert(Kinds::NONE) |= *kinds;
    }
    all
}

/// The fields of a window, or of one turn of it, that do not lie at multiples of four bytes from each other.
fn apart(places: BTreeMap<i64, Kinds>, length: i64, period: u64) -> Option<Holds> {
    let mut all = vec![];
    let mut end = 0;
    let mut places = places.into_iter().peekable();
    while let Some((at, kinds)) = places.next() {
        let mut lanes = vec![kinds];
        let mut next = at + 4;
        while let Some((_, tail)) = places.next_if(|(place, _)| *place == next) {
            lanes.push(tail);
            next += 4;
        }
        if at < end || next > length {
            return None;
        }
        end = next;
        let Holds::Fields { fields, .. } = fields(&lanes, at as u64, period)? else {
            return None;
        };
        all.extend(fields);
    }
    Some(Holds::Fields { period, fields: all })
}

fn fields(lanes: &[Kinds], first: u64, period: u64) -> Option<Holds> {
    let mut fields = vec![];
    let mut i = 0;
    while i < lanes.len() {
        let offset = first + 4 * i as u64;
        let tail = lanes.get(i + 1).copied();
        let field = match lanes[i] {
            Kinds::NONE => None,
            Kinds::F32 => Some(Field::F32),
            Kinds::PART => Some(Field::Part),
            Kinds::F80 if lanes.get(i + 1..i + 3) == Some(&[Kinds::F80_TAIL; 2]) => Some(Field::F80),
            Kinds::F64 if tail == Some(Kinds::F64_TAIL) => Some(Field::F64),
            Kinds::PTR if tail == Some(Kinds::PTR_TAIL) => Some(Field::Pointer),
            _ => return None,
        };
        fields.extend(field.map(|f| (offset, f)));
        i += match field {
            Some(Field::F80) => 3,
            Some(Field::F64 | Field::Pointer) => 2,
            _ => 1,
        };
    }
    Some(Holds::Fields { period, fields })
}
