//! Places of leaves, and what is read from them or put in their stead.

use super::Differentiable;
use crate::kernel::shadow::{Cursor, Run, Walk};
use crate::kernel::{Flat, Nested, is_nested};
use std::alloc::Layout;
use tch::Tensor;

/// The place of one leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A tensor.
    Tensor(*const Tensor),
    /// An `f64`.
    F64(*const f64),
    /// An `f32`.
    F32(*const f32),
}

impl Place {
    /// The type of what is there.
    pub fn kind(self) -> LeafKind {
        match self {
            Place::Tensor(_) => LeafKind::Tensor,
            Place::F64(_) => LeafKind::F64,
            Place::F32(_) => LeafKind::F32,
        }
    }

    /// Its address.
    pub fn address(self) -> u64 {
        self.pointer() as u64
    }

    pub(crate) fn pointer(self) -> *const u8 {
        match self {
            Place::Tensor(at) => at.cast(),
            Place::F64(at) => at.cast(),
            Place::F32(at) => at.cast(),
        }
    }

    /// The place of the leaf that lies `i` leaves further.
    pub(crate) fn further(self, i: usize) -> Place {
        match self {
            Place::Tensor(at) => Place::Tensor(at.wrapping_add(i)),
            Place::F64(at) => Place::F64(at.wrapping_add(i)),
            Place::F32(at) => Place::F32(at.wrapping_add(i)),
        }
    }
}

/// The type of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeafKind {
    /// A tensor.
    Tensor,
    /// An `f64`.
    F64,
    /// An `f32`.
    F32,
}

/// One leaf of an argument or of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Index of the parameter the leaf belongs to, or [`Leaf::RETURN`].
    pub param: usize,
    /// Where the value is.
    pub place: Place,
}

impl Leaf {
    /// The `param` of a leaf of the returned value.
    pub const RETURN: usize = usize::MAX;
}

/// A cotangent or tangent of one leaf. For tensors, undefined means "none", as in LibTorch.
#[derive(Debug)]
pub enum Number {
    /// Of a tensor.
    Tensor(Tensor),
    /// Of an `f64`.
    F64(f64),
    /// Of an `f32`.
    F32(f32),
}

impl Number {
    /// "No derivative" for a leaf of that type.
    pub fn none(kind: LeafKind) -> Number {
        match kind {
            LeafKind::Tensor => Number::Tensor(Tensor::new()),
            LeafKind::F64 => Number::F64(0.0),
            LeafKind::F32 => Number::F32(0.0),
        }
    }

    /// The type of leaf it belongs to.
    pub fn kind(&self) -> LeafKind {
        match self {
            Number::Tensor(_) => LeafKind::Tensor,
            Number::F64(_) => LeafKind::F64,
            Number::F32(_) => LeafKind::F32,
        }
    }
}

/// Collects the leaves of values, in order; in a kernel's call, with the memory they lie in.
#[derive(Debug, Default)]
pub struct Leaves {
    param: usize,
    silent: bool,
    runs: Vec<Run>,
    walk: Option<Walk>,
    /// What stands in for all that in differentiated code.
    nested: Nested,
    is_nested: bool,
}

impl Leaves {
    /// Collects leaves together with their shadows.
    pub(crate) fn walking(walk: Walk) -> Leaves {
        Leaves {
            walk: Some(walk),
            ..Leaves::default()
        }
    }

    /// Goes through leaves where a kernel asks for a derivative itself.
    #[inline(always)]
    pub(crate) fn nested(walk: Nested) -> Leaves {
        Leaves {
            nested: walk,
            is_nested: true,
            ..Leaves::default()
        }
    }

    /// The leaves of a value, as those of a parameter.
    #[inline]
    pub fn of<T: Differentiable + ?Sized>(&mut self, param: usize, value: &T) {
        self.param = param;
        value.leaves(self);
    }

    /// Memory that a parameter reaches whose leaves nobody asks for: what a kernel writes there may carry derivatives.
    #[inline]
    pub fn beside<T: Differentiable + ?Sized>(&mut self, value: &T) {
        if is_nested() || self.walk.is_some() {
            self.silent = true;
            value.leaves(self);
            self.silent = false;
        }
    }

    /// Adds a leaf.
    #[inline]
    pub fn push(&mut self, place: Place) {
        self.run(place, 1);
    }

    /// Adds leaves of one type that lie one behind the other.
    #[inline]
    pub fn run(&mut self, place: Place, count: usize) {
        if is_nested() {
            if !self.is_nested {
                not_nested();
            }
            return match self.silent || count == 0 {
                true => self.nested.saw(place.kind()),
                false => self.nested.run(place, count),
            };
        }
        if let Some(walk) = &mut self.walk {
            walk.saw(place.kind());
        }
        if self.silent || count == 0 {
            return;
        }
        let shadow = match &self.walk {
            Some(walk) => walk.shadow_of(place.pointer()),
            None => std::ptr::null_mut(),
        };
        self.runs.push(Run {
            param: self.param,
            place,
            count,
            shadow,
        });
    }

    /// Lists what lies in memory that others own: `link` is the place of the pointer to it, `start` where it begins.
    #[inline]
    pub(super) fn behind(&mut self, link: *const u8, start: *const u8, layout: Layout, list: impl FnOnce(&mut Leaves)) {
        self.inside(link, start, layout, false, list);
    }

    /// Lists what lies in an allocation.
    #[inline]
    pub(super) fn allocated(
        &mut self,
        link: *const u8,
        start: *const u8,
        layout: Layout,
        list: impl FnOnce(&mut Leaves),
    ) {
        self.inside(link, start, layout, true, list);
    }

    /// The same for an allocation with several owners, which is one object for all of them.
    pub(super) fn shared(&mut self, link: *const u8, start: *const u8, layout: Layout, list: impl FnOnce(&mut Leaves)) {
        if is_nested() {
            self.nested.shares();
        }
        if let Some(walk) = &mut self.walk {
            walk.share();
        }
        self.inside(link, start, layout, true, list);
    }

    #[inline]
    fn inside(
        &mut self,
        link: *const u8,
        start: *const u8,
        layout: Layout,
        allocation: bool,
        list: impl FnOnce(&mut Leaves),
    ) {
        if is_nested() {
            if !self.is_nested {
                not_nested();
            }
            if layout.size() > 0 {
                let outside = self.nested.enter(link, start, layout, allocation);
                list(self);
                self.nested.leave(outside);
            }
            return;
        }
        let outside = match &mut self.walk {
            Some(walk) if layout.size() > 0 => Some(walk.enter(link, start, layout, allocation)),
            _ => None,
        };
        list(self);
        if let (Some(walk), Some(outside)) = (&mut self.walk, outside) {
            walk.leave(outside);
        }
    }

    /// Says that values are looked at where they stand, not only their addresses.
    #[inline(always)]
    pub(super) fn looking(&self) {
        if is_nested() {
            self.nested.looks_at_values();
        }
    }

    /// What was collected.
    pub fn into_vec(self) -> Vec<Leaf> {
        let leaf = |run: &Run| {
            let param = run.param;
            run.leaves().map(move |place| Leaf { param, place })
        };
        self.runs.iter().flat_map(leaf).collect()
    }

    /// What was collected, and the walk through its memory.
    pub(crate) fn into_parts(self) -> (Vec<Run>, Option<Walk>) {
        (self.runs, self.walk)
    }

    /// How far a walk came.
    #[inline(always)]
    pub(crate) fn where_nested(&self) -> Nested {
        self.nested
    }

    pub(crate) fn walk(&mut self) -> Option<&mut Walk> {
        self.walk.as_mut()
    }
}

/// Where the leaves of a cotangent come from.
#[derive(Debug)]
pub enum Source {
    /// Every leaf is "none".
    Nothing,
    /// One number for each leaf, in order. What has no tensors in it does not see them behind the trait.
    Numbers(Box<dyn Numbers>),
    /// Shadows of the leaves, in order.
    Shadows(Cursor),
    /// The floats of the leaves, one after the other.
    Flat(Flat),
}

/// One number for each leaf, in order.
pub trait Numbers: std::fmt::Debug {
    /// The next number, which is a tensor.
    fn tensor(&mut self) -> Tensor;
    /// The next number, which is an `f64`.
    fn f64(&mut self) -> f64;
    /// The next number, which is an `f32`.
    fn f32(&mut self) -> f32;
}

impl Numbers for std::vec::IntoIter<Number> {
    fn tensor(&mut self) -> Tensor {
        match self.next() {
            Some(Number::Tensor(number)) => number,
            _ => misfit(LeafKind::Tensor),
        }
    }
    fn f64(&mut self) -> f64 {
        match self.next() {
            Some(Number::F64(number)) => number,
            _ => misfit(LeafKind::F64),
        }
    }
    fn f32(&mut self) -> f32 {
        match self.next() {
            Some(Number::F32(number)) => number,
            _ => misfit(LeafKind::F32),
        }
    }
}

impl Source {
    /// One number for each leaf, in order.
    pub fn numbers(numbers: Vec<Number>) -> Source {
        Source::Numbers(Box::new(numbers.into_iter()))
    }

    pub(super) fn tensor(&mut self) -> Tensor {
        match self {
            Source::Nothing => Tensor::new(),
            Source::Numbers(numbers) => numbers.tensor(),
            Source::Shadows(_) | Source::Flat(_) => misfit(LeafKind::Tensor),
        }
    }

    #[inline]
    pub(super) fn f64(&mut self) -> f64 {
        if is_nested() {
            return self.flat().map_or(0.0, Flat::f64);
        }
        match self {
            Source::Nothing => 0.0,
            Source::Shadows(cursor) => cursor.next(),
            Source::Numbers(numbers) => numbers.f64(),
            Source::Flat(_) => misfit(LeafKind::F64),
        }
    }

    #[inline]
    pub(super) fn f32(&mut self) -> f32 {
        if is_nested() {
            return self.flat().map_or(0.0, Flat::f32);
        }
        match self {
            Source::Nothing => 0.0,
            Source::Shadows(cursor) => cursor.next(),
            Source::Numbers(numbers) => numbers.f32(),
            Source::Flat(_) => misfit(LeafKind::F32),
        }
    }

    /// What there is in differentiated code, but for nothing.
    #[inline(always)]
    fn flat(&mut self) -> Option<&mut Flat> {
        match self {
            Source::Flat(flat) => Some(flat),
            Source::Nothing => None,
            Source::Numbers(_) | Source::Shadows(_) => not_nested(),
        }
    }

    /// The next so many floats of one type.
    #[inline]
    pub(super) fn floats<T: Float>(&mut self, count: usize) -> Vec<T> {
        if is_nested() {
            let mut floats = T::zeros(count);
            if let Some(flat) = self.flat() {
                T::fill(flat, &mut floats);
            }
            return floats;
        }
        match self {
            Source::Nothing => T::zeros(count),
            Source::Shadows(cursor) => cursor.several(count),
            Source::Flat(_) | Source::Numbers(_) => (0..count).map(|_| T::next(self)).collect(),
        }
    }
}

/// The types of floats.
pub(crate) trait Float: Copy + std::ops::Add<Output = Self> {
    /// As a leaf.
    const KIND: LeafKind;
    /// Zero.
    const ZERO: Self;
    /// A vector of zeros.
    fn zeros(count: usize) -> Vec<Self>;
    /// The next one of a source.
    fn next(source: &mut Source) -> Self;
    /// The next ones of a list.
    fn fill(from: &mut Flat, to: &mut [Self]);
}

macro_rules! float {
    ($($type:ident: $variant:ident),*) => {$(
        impl Float for $type {
            const KIND: LeafKind = LeafKind::$variant;
            const ZERO: $type = 0.0;
            #[inline]
            fn zeros(count: usize) -> Vec<$type> {
                vec![0.0; count]
            }
            fn next(source: &mut Source) -> $type {
                source.$type()
            }
            #[inline(always)]
            fn fill(from: &mut Flat, to: &mut [$type]) {
                to.iter_mut().for_each(|to| *to = from.$type());
            }
        }
    )*};
}
float!(f64: F64, f32: F32);

/// Differentiated code meets what is not made for it. The pass keeps the two apart, where it sees all of either.
#[cold]
#[inline(never)]
fn not_nested() -> ! {
    panic!("a rule of the user's and a derivative within a kernel share code that the compiler did not take apart")
}

#[cold]
#[inline(never)]
pub(crate) fn misfit(kind: LeafKind) -> ! {
    panic!("cotangents do not fit the value they belong to, at a leaf of type {kind:?}")
}
