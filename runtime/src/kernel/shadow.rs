//! Shadows of the memory that arguments reach, and the walk that makes or finds them.

use crate::differentiable::{LeafKind, Place, leaves};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// A piece of the caller's memory, with its shadow. Native code reads the table of them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    start: *const u8,
    size: usize,
    shadow: *mut u8,
    align: usize,
}

/// Leaves of one type that lie one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Index of the parameter they belong to, or that of the result.
    pub(crate) param: usize,
    /// The first of them.
    pub(crate) place: Place,
    /// How many there are.
    pub(crate) count: usize,
    /// The shadow of the first; null if they are inactive.
    pub(crate) shadow: *mut u8,
}

impl Run {
    /// The places of the leaves.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = Place> + use<> {
        let place = self.place;
        (0..self.count).map(move |i| place.further(i))
    }
}

/// Whether a shadow address stands for "no shadow".
fn inactive(shadow: *mut u8) -> bool {
    shadow.addr() >= 1 << 62
}

/// So many bytes before the shadow of an allocation, as before one in the arena, stands its size: where the function
/// reallocates a block that it was given, the pass asks for it. Such shadows are aligned to as much, and others are not.
const HEADER: usize = 16;

/// The bytes before a shadow.
#[inline]
fn header(align: usize) -> usize {
    if align < HEADER { 0 } else { align }
}

/// The block for a shadow and its header.
#[inline]
fn block(size: usize, align: usize) -> Layout {
    Layout::from_size_align(header(align) + size, align).expect("the piece is in memory")
}

/// From so many floats on, the shadow of a slice becomes its cotangent as it is.
const WORTH_TAKING: usize = 256;

/// The shadows of a call, which go with it.
#[derive(Debug, Default)]
pub(crate) struct Table {
    objects: Vec<Object>,
    /// How many of them, at the start, are those that a walk starts from.
    roots: usize,
    /// Which floats are among the leaves: bits 1 `f64`, 2 `f32`.
    widths: u64,
}

impl Table {
    /// The objects that a call starts from: what native code looks up.
    pub(crate) fn roots(&self) -> &[Object] {
        &self.objects[..self.roots]
    }

    /// Which floats are among the leaves.
    #[inline]
    pub(super) fn widths(&self) -> u64 {
        self.widths
    }

    /// A zeroed shadow for a piece of memory; with a header, if the piece is an allocation.
    #[inline]
    fn add(&mut self, start: *const u8, layout: Layout, allocation: bool) -> *mut u8 {
        let least = if allocation { HEADER } else { 1 };
        let (size, align) = (layout.size(), layout.align().max(least));
        let block = block(size, align);
        // SAFETY: the size is not zero, and the block has room for the header.
        let shadow = unsafe {
            let at = alloc_zeroed(block);
            if at.is_null() {
                handle_alloc_error(block);
            }
            let shadow = at.add(header(align));
            if align >= HEADER {
                shadow.sub(HEADER).cast::<usize>().write(size);
            }
            shadow
        };
        self.objects.push(Object {
            start,
            size,
            shadow,
            align,
        });
        shadow
    }

    /// Sorts the roots, so that addresses can be looked up: a few, by plain code.
    #[inline]
    fn sort(&mut self) {
        for end in 1..self.roots {
            let mut at = end;
            while at > 0 && self.objects[at].start < self.objects[at - 1].start {
                self.objects.swap(at, at - 1);
                at -= 1;
            }
        }
    }

    /// The shadow of an address, or null. Shared slices may overlap: then it is that of one of them.
    fn shadow_of(&self, address: *const u8) -> *mut u8 {
        let offset = |object: &Object| address.addr().wrapping_sub(object.start.addr());
        match self.objects.iter().find(|object| offset(object) < object.size) {
            Some(object) => object.shadow.wrapping_add(offset(object)),
            None => std::ptr::null_mut(),
        }
    }

    /// The shadow as a vector of so many floats, if it is one, which then is no part of the table any more.
    fn take<T: leaves::Float>(&mut self, shadow: *const u8, count: usize) -> Option<Vec<T>> {
        let layout = Layout::array::<T>(count).ok()?;
        let fits = |object: &Object| {
            object.shadow.cast_const() == shadow && object.size == layout.size() && object.align == layout.align()
        };
        let at = self.objects[self.roots..].iter().position(fits)?;
        let Object { shadow, .. } = self.objects.swap_remove(self.roots + at);
        // SAFETY: the shadow was allocated with this layout, as its alignment says without a header.
        Some(unsafe { Vec::from_raw_parts(shadow.cast(), count, count) })
    }

    /// Words of the shadows that are not zero, which after a forward half are those of pointers.
    pub(super) fn pointers(&self) -> Vec<(*mut u64, u64)> {
        let mut pointers = vec![];
        let roomy = self.objects.iter().filter(|object| object.align >= align_of::<u64>());
        for object in roomy {
            let words = object.shadow.cast::<u64>();
            for i in 0..object.size / size_of::<u64>() {
                // SAFETY: the shadow has so many words, and their alignment.
                let (at, word) = unsafe { (words.add(i), words.add(i).read()) };
                if word != 0 {
                    pointers.push((at, word));
                }
            }
        }
        pointers
    }

    /// Makes all shadows zero.
    pub(super) fn clear(&mut self) {
        for object in &self.objects {
            // SAFETY: the shadow has so many bytes.
            unsafe { object.shadow.write_bytes(0, object.size) };
        }
    }
}

impl Drop for Table {
    #[inline]
    fn drop(&mut self) {
        for object in &self.objects {
            // SAFETY: `add` allocated it so.
            unsafe {
                dealloc(
                    object.shadow.sub(header(object.align)),
                    block(object.size, object.align),
                )
            };
        }
    }
}

/// The piece of memory whose leaves are listed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Piece {
    start: *const u8,
    /// Null if the piece is inactive.
    shadow: *mut u8,
}

/// A walk from values through the memory they reach.
#[derive(Debug)]
pub(crate) struct Walk {
    table: Table,
    here: Piece,
    /// Whether shadows are made; else those that a call left are followed.
    makes: bool,
    /// Whether the next piece may have been entered before.
    next_is_shared: bool,
    /// Shadows of pieces that have several owners, by the addresses of these. Differentiated code makes walks, too: all of
    /// it is plain.
    shared: Vec<(usize, *mut u8)>,
}

impl Walk {
    /// A walk that makes shadows.
    #[inline]
    pub(crate) fn making() -> Walk {
        let objects = Vec::with_capacity(16);
        let table = Table {
            objects,
            ..Table::default()
        };
        Walk::new(table, true)
    }

    /// A walk that follows the shadows which a call left.
    #[inline]
    pub(crate) fn following(table: Table) -> Walk {
        Walk::new(table, false)
    }

    #[inline]
    fn new(table: Table, makes: bool) -> Walk {
        let nowhere = Piece {
            start: std::ptr::null(),
            shadow: std::ptr::null_mut(),
        };
        Walk {
            table,
            here: nowhere,
            makes,
            next_is_shared: false,
            shared: Vec::new(),
        }
    }

    /// A piece of memory that a walk starts from.
    #[inline]
    pub(crate) fn root(&mut self, start: *const u8, layout: Layout) -> Piece {
        let layout = layout.align_to(align_of::<usize>()).expect("the piece is in memory");
        let shadow = match layout.size() {
            0 => std::ptr::null_mut(),
            _ => {
                self.table.roots += 1;
                self.table.add(start, layout, false)
            }
        };
        Piece { start, shadow }
    }

    /// Starts from there.
    #[inline]
    pub(crate) fn start(&mut self, piece: Piece) {
        self.here = piece;
    }

    /// Says that there is a leaf of a kind.
    #[inline]
    pub(crate) fn saw(&mut self, kind: LeafKind) {
        self.table.widths |= match kind {
            LeafKind::F64 => 1,
            LeafKind::F32 => 2,
            LeafKind::Tensor => 0,
        };
    }

    /// The shadow of an address in the piece that is walked through.
    #[inline]
    pub(crate) fn shadow_of(&self, address: *const u8) -> *mut u8 {
        self.here.shadow_of(address)
    }

    /// Enters the piece that the pointer at `link` leads to; gives the one that was left.
    #[inline]
    pub(crate) fn enter(&mut self, link: *const u8, start: *const u8, layout: Layout, allocation: bool) -> Piece {
        let word = self.here.shadow_of(link).cast::<*mut u8>();
        let shared = std::mem::take(&mut self.next_is_shared);
        let shadow = if self.makes {
            let shadow = match shared {
                true => self.shadow_of_shared(start, layout, allocation),
                false => self.table.add(start, layout, allocation),
            };
            if !word.is_null() {
                // SAFETY: the shadow of a pointer has room for one.
                unsafe { word.write(shadow) };
            }
            shadow
        } else {
            let shadow = match word.is_null() {
                true => std::ptr::null_mut(),
                // SAFETY: as above.
                false => unsafe { word.read() },
            };
            match shadow {
                shadow if shadow.is_null() => self.table.shadow_of(start),
                shadow if inactive(shadow) => std::ptr::null_mut(),
                shadow => shadow,
            }
        };
        std::mem::replace(&mut self.here, Piece { start, shadow })
    }

    fn shadow_of_shared(&mut self, start: *const u8, layout: Layout, allocation: bool) -> *mut u8 {
        match self.shared.binary_search_by_key(&start.addr(), |(start, _)| *start) {
            Ok(at) => self.shared[at].1,
            Err(at) => {
                let shadow = self.table.add(start, layout, allocation);
                self.shared.insert(at, (start.addr(), shadow));
                shadow
            }
        }
    }

    /// Goes back to a piece that was left.
    #[inline]
    pub(crate) fn leave(&mut self, outside: Piece) {
        self.here = outside;
    }

    /// Says that the next piece has several owners.
    pub(crate) fn share(&mut self) {
        self.next_is_shared = true;
    }

    /// The shadows, sorted.
    #[inline]
    pub(crate) fn into_table(mut self) -> Table {
        if self.makes {
            self.table.sort();
        }
        self.table
    }
}

impl Piece {
    /// A piece with a shadow that is known.
    pub(crate) fn known(start: *const u8, shadow: *mut u8) -> Piece {
        let shadow = if inactive(shadow) { std::ptr::null_mut() } else { shadow };
        Piece { start, shadow }
    }

    /// The shadow of an address in the piece; null if it is inactive.
    #[inline]
    pub(crate) fn shadow_of(&self, address: *const u8) -> *mut u8 {
        if self.shadow.is_null() {
            self.shadow
        } else {
            self.shadow.wrapping_add(address.addr() - self.start.addr())
        }
    }
}

/// Reads the shadows of leaves, one after the other.
#[derive(Debug)]
pub struct Cursor {
    runs: std::vec::IntoIter<Run>,
    kind: LeafKind,
    at: *const u8,
    left: usize,
    /// Shadows that are not needed any more.
    spent: Table,
}

impl Cursor {
    /// Reads from the first leaf on.
    #[inline]
    pub(crate) fn new(runs: Vec<Run>) -> Cursor {
        Cursor::last(runs, Table::default())
    }

    /// The same, for shadows that nobody reads after it.
    #[inline]
    pub(crate) fn last(runs: Vec<Run>, spent: Table) -> Cursor {
        Cursor {
            runs: runs.into_iter(),
            kind: LeafKind::F64,
            at: std::ptr::null(),
            left: 0,
            spent,
        }
    }

    #[inline]
    pub(crate) fn next<T: leaves::Float>(&mut self) -> T {
        self.ready::<T>();
        let at = self.at.cast::<T>();
        self.advance::<T>(1);
        // SAFETY: a run holds so many numbers of its type; the table of shadows outlives the cursor.
        if at.is_null() { T::ZERO } else { unsafe { at.read() } }
    }

    /// The next so many floats.
    #[inline]
    pub(crate) fn several<T: leaves::Float>(&mut self, count: usize) -> Vec<T> {
        if count >= WORTH_TAKING {
            self.ready::<T>();
            if self.left == count
                && let Some(taken) = self.spent.take(self.at, count)
            {
                self.left = 0;
                return taken;
            }
        }
        let mut floats = Vec::with_capacity(count);
        while floats.len() < count {
            self.ready::<T>();
            let part = self.left.min(count - floats.len());
            if self.at.is_null() {
                floats.extend(std::iter::repeat_n(T::ZERO, part));
            } else {
                // SAFETY: as in `next`.
                floats.extend_from_slice(unsafe { std::slice::from_raw_parts(self.at.cast::<T>(), part) });
            }
            self.advance::<T>(part);
        }
        floats
    }

    #[inline]
    fn ready<T: leaves::Float>(&mut self) {
        while self.left == 0 {
            let Some(run) = self.runs.next() else {
                leaves::misfit(T::KIND)
            };
            (self.kind, self.at, self.left) = (run.place.kind(), run.shadow, run.count);
        }
        if self.kind != T::KIND {
            leaves::misfit(T::KIND);
        }
    }

    #[inline]
    fn advance<T>(&mut self, count: usize) {
        self.left -= count;
        if !self.at.is_null() {
            self.at = self.at.wrapping_add(count * size_of::<T>());
        }
    }
}
