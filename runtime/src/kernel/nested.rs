//! Calls of kernels within kernels, where derivatives of derivatives are asked for.
//!
//! All that stands here is differentiated with the code around it. So there are no lists of memory, in which pieces of all
//! sorts would meet: shadows of the values stand on the stack, those of what lies behind them in an arena, and the way to
//! each of them is walked by the type of the value ([`Nested`]), before the call to make them and after it to read them.
//! Between the walks the numbers stand one after the other ([`Flat`]). Nothing here needs a drop, so that all of it, but for
//! the memory of shadows, becomes registers.
//!
//! After the call a by-value argument may be gone: of what it owned its own bytes tell the length, and no more.

use super::shadow::Piece;
use super::{Arena, Kernel};
use crate::differentiable::leaves::{Float, misfit};
use crate::differentiable::{Differentiable, Leaf, LeafKind, Leaves, Place, Source};
use crate::entry::Arguments;
use crate::error::Error;
use std::alloc::Layout;
use std::mem::{ManuallyDrop, MaybeUninit};

/// Is this differentiated code, in which a call of an entry point is a call within a kernel? The pass knows.
#[inline(always)]
pub(crate) fn is_nested() -> bool {
    // SAFETY: a byte of the program that nobody writes. It is read without a call, which the pass looks for.
    unsafe { *(&raw const cotangent_is_nested as *const u8) != 0 }
}

/// A byte of which the compiler does not think that it knows what it is.
#[repr(transparent)]
struct Byte(std::cell::UnsafeCell<u8>);

// SAFETY: nobody writes to it.
unsafe impl Sync for Byte {}

/// The pass has a variable of its own in the code that it differentiates, which says yes.
#[allow(non_upper_case_globals, reason = "the pass looks for this symbol")]
#[unsafe(no_mangle)]
static cotangent_is_nested: Byte = Byte(std::cell::UnsafeCell::new(0));

/// A derivative that is given the shadows of the arguments' values and of the place for the result.
type Whole = unsafe extern "C-unwind" fn(
    args: *const *const (),
    shadows: *const *const (),
    out: *mut (),
    out_shadow: *mut (),
    arena: *mut Arena,
);

/// What the pass tells of a kernel that differentiated code asks for, beside [`Kernel`]. Derivatives are null where they
/// were not asked for.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Functions {
    /// Takes zeroed memory for a shadow from an arena.
    shadow: unsafe extern "C-unwind" fn(arena: *mut Arena, size: usize) -> *mut u8,
    /// Frees what was taken.
    release: unsafe extern "C-unwind" fn(arena: *mut Arena),
    pub(super) grad: Option<Whole>,
    pub(super) jvp: Option<Whole>,
}

/// Frees what was taken from an arena. Only the arena itself has its address known elsewhere: of the rest it is plain what
/// it is after the call, too.
struct Room {
    arena: *mut Arena,
    functions: &'static Functions,
}

impl Room {
    /// Zeroed memory.
    #[inline(always)]
    fn take(&self, size: usize) -> *mut u8 {
        // SAFETY: the arena is there as long as the room.
        unsafe { (self.functions.shadow)(self.arena, size) }
    }
}

impl Drop for Room {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: what was taken from the arena is not used any more.
        unsafe { (self.functions.release)(self.arena) };
    }
}

/// Numbers of one type, one after the other, in an arena.
#[derive(Clone, Copy, Debug)]
struct List<T> {
    start: *mut T,
    count: usize,
    /// How many were written, or read.
    done: usize,
}

impl<T> Default for List<T> {
    #[inline(always)]
    fn default() -> Self {
        let start = std::ptr::null_mut();
        List {
            start,
            count: 0,
            done: 0,
        }
    }
}

impl<T: Float> List<T> {
    /// The place for the next so many.
    #[inline(always)]
    fn next(&mut self, count: usize) -> *mut T {
        if count > self.count - self.done {
            misfit(T::KIND);
        }
        let at = self.start.wrapping_add(self.done);
        self.done += count;
        at
    }
}

/// The floats of leaves, one after the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flat {
    f64s: List<f64>,
    f32s: List<f32>,
}

impl Flat {
    /// The next number.
    #[inline(always)]
    pub(crate) fn f64(&mut self) -> f64 {
        // SAFETY: there is one more.
        unsafe { self.f64s.next(1).read() }
    }

    /// The next number.
    #[inline(always)]
    pub(crate) fn f32(&mut self) -> f32 {
        // SAFETY: there is one more.
        unsafe { self.f32s.next(1).read() }
    }

    /// Room for so many.
    #[inline(always)]
    fn of(self, room: &Room) -> Flat {
        let (f64s, f32s) = (self.f64s.count, self.f32s.count);
        let make = |size: usize| match size {
            0 => std::ptr::null_mut(),
            size => room.take(size),
        };
        Flat {
            f64s: List {
                start: make(8 * f64s).cast(),
                count: f64s,
                done: 0,
            },
            f32s: List {
                start: make(4 * f32s).cast(),
                count: f32s,
                done: 0,
            },
        }
    }

    /// The same numbers, from the first one on.
    #[inline(always)]
    fn again(self) -> Flat {
        Flat {
            f64s: List { done: 0, ..self.f64s },
            f32s: List { done: 0, ..self.f32s },
        }
    }

    #[inline(always)]
    fn is_done(&self) -> bool {
        self.f64s.count == self.f64s.done && self.f32s.count == self.f32s.done
    }
}

/// What a walk does at leaves and pieces of memory.
#[derive(Clone, Copy, Debug, Default)]
enum Task {
    /// Counts the leaves.
    #[default]
    Count,
    /// Puts the numbers of the leaves into the list.
    Collect,
    /// Makes shadows, and counts the leaves.
    Make,
    /// Makes shadows, with the numbers of the list in them.
    Fill,
    /// Puts the numbers of the shadows into the list.
    Read,
}

/// A walk from values through the memory they reach.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nested {
    task: Task,
    /// Where shadows are taken from.
    memory: Option<(*mut Arena, &'static Functions)>,
    here: Piece,
    /// The piece may be gone: its addresses may be used, and what stands there may not.
    gone: bool,
    /// What pieces owned by this one may be.
    owned_go: bool,
    /// Bits 1 `f64`, 2 `f32`: the floats among the leaves.
    widths: u64,
    flat: Flat,
}

/// What a walk goes back to.
type Outside = (Piece, bool, bool);

impl Nested {
    /// Leaves of one type, one after the other.
    #[inline(always)]
    pub(crate) fn run(&mut self, place: Place, count: usize) {
        self.saw(place.kind());
        let at = match self.task {
            Task::Count => std::ptr::null_mut(),
            Task::Collect => place.pointer().cast_mut(),
            _ => self.here.shadow_of(place.pointer()),
        };
        // SAFETY: so many numbers stand at the place of the leaves, and at its shadow.
        unsafe {
            match place {
                Place::F64(_) => numbers(self.task, at.cast(), count, &mut self.flat.f64s),
                Place::F32(_) => numbers(self.task, at.cast(), count, &mut self.flat.f32s),
                Place::Tensor(_) => misfit(LeafKind::Tensor),
            }
        }
    }

    /// Says that there are leaves of a kind.
    #[inline(always)]
    pub(crate) fn saw(&mut self, kind: LeafKind) {
        self.widths |= match kind {
            LeafKind::F64 => 1,
            LeafKind::F32 => 2,
            LeafKind::Tensor => 0,
        };
    }

    /// Enters the piece that the pointer at `link` leads to.
    #[inline(always)]
    pub(crate) fn enter(&mut self, link: *const u8, start: *const u8, layout: Layout, owned: bool) -> Outside {
        let outside = (self.here, self.gone, self.owned_go);
        self.looks_at_values();
        (self.gone, self.owned_go) = (owned && self.owned_go, false);
        let word = self.here.shadow_of(link).cast::<*mut u8>();
        let shadow = match self.task {
            Task::Count | Task::Collect => std::ptr::null_mut(),
            Task::Make | Task::Fill => {
                if layout.align() > 16 {
                    refuse("takes memory that is aligned to more than 16 bytes");
                }
                let shadow = match self.memory {
                    // SAFETY: the arena is that of the call.
                    Some((arena, functions)) => unsafe { (functions.shadow)(arena, layout.size()) },
                    None => std::ptr::null_mut(),
                };
                if !word.is_null() {
                    // SAFETY: the shadow of a pointer has room for one.
                    unsafe { word.write(shadow) };
                }
                shadow
            }
            Task::Read if word.is_null() => word.cast(),
            // SAFETY: as above.
            Task::Read => unsafe { word.read() },
        };
        self.here = Piece::known(start, shadow);
        outside
    }

    /// Goes back to a piece that was left.
    #[inline(always)]
    pub(crate) fn leave(&mut self, outside: Outside) {
        (self.here, self.gone, self.owned_go) = outside;
    }

    /// Refuses to look at values in a piece that may be gone.
    #[inline(always)]
    pub(crate) fn looks_at_values(&self) {
        if self.gone {
            refuse("takes by value memory of more than plain floats: pass a reference");
        }
    }

    /// Refuses memory with several owners, which needs one shadow for all of them.
    #[inline(always)]
    pub(crate) fn shares(&self) {
        refuse("takes a shared value (`Rc`, `Arc`): pass a reference to what it holds");
    }
}

#[cold]
#[inline(never)]
fn refuse(what: &str) -> ! {
    panic!("a derivative that a differentiated function asks for {what}")
}

/// # Safety
/// There are so many numbers at the address, if it is one.
#[inline(always)]
unsafe fn numbers<T: Float>(task: Task, at: *mut T, count: usize, list: &mut List<T>) {
    match task {
        Task::Count | Task::Make => list.count += count,
        // SAFETY: the caller's promise; a list is apart from all that is walked through, and has room.
        Task::Collect | Task::Read => unsafe {
            let to = list.next(count);
            if !at.is_null() {
                copy(at, to, count);
            }
        },
        // SAFETY: as above.
        Task::Fill => unsafe {
            let from = list.next(count);
            if !at.is_null() {
                copy(from, at, count);
            }
        },
    }
}

/// Copies numbers one by one: a copy of memory does not say what it copies.
///
/// # Safety
/// There are so many at either address.
#[inline(always)]
unsafe fn copy<T: Copy>(from: *const T, to: *mut T, count: usize) {
    let mut i = 0;
    while i < count {
        // SAFETY: the caller's promise.
        unsafe { to.wrapping_add(i).write(from.wrapping_add(i).read()) };
        i += 1;
    }
}

/// Walks through values.
#[inline(always)]
fn walk(start: Nested, list: impl FnOnce(&mut Leaves)) -> Nested {
    let mut leaves = ManuallyDrop::new(Leaves::nested(start));
    list(&mut leaves);
    leaves.where_nested()
}

/// A walk that begins there, with a list.
#[inline(always)]
fn at(task: Task, room: &Room, here: Piece, flat: Flat) -> Nested {
    Nested {
        task,
        memory: Some((room.arena, room.functions)),
        here,
        flat,
        owned_go: matches!(task, Task::Read),
        ..Nested::default()
    }
}

/// Calls the function and pulls back a seed of one.
#[inline(always)]
pub(super) fn gradient<A, R, C>(
    functions: &'static Functions,
    grad: Whole,
    kind: LeafKind,
    args: A,
    reach: impl Fn(&A, &mut Leaves),
    shape: impl FnOnce(&A, &mut Source) -> C,
) -> (R, C)
where
    A: Arguments,
    C: Differentiable<Cotangent = C>,
{
    // By-value arguments are moved out by the callee.
    let args = ManuallyDrop::new(args);
    let shape = shape(&args, &mut ManuallyDrop::new(Source::Nothing));
    let (mut out, mut out_shadow) = (MaybeUninit::<R>::uninit(), MaybeUninit::<R>::zeroed());
    let mut shadows = MaybeUninit::<A>::zeroed();
    let here = Piece::known((&raw const *args).cast(), shadows.as_mut_ptr().cast());
    let mut arena = ManuallyDrop::new(Arena::empty());
    let arena = &raw mut *arena;
    let room = Room { arena, functions };
    let made = walk(at(Task::Make, &room, here, Flat::default()), |leaves| {
        reach(&args, leaves)
    });
    // SAFETY: the arena is there.
    unsafe { (*arena).set_widths(made.widths) };
    // SAFETY: the result is a float of that type, and so its shadow. The addresses are those of arguments of the function,
    // of a place for its result, and of their shadows.
    unsafe {
        match kind {
            LeafKind::F32 => out_shadow.as_mut_ptr().cast::<f32>().write(1.0),
            _ => out_shadow.as_mut_ptr().cast::<f64>().write(1.0),
        }
        let places = (out.as_mut_ptr().cast(), out_shadow.as_mut_ptr().cast());
        call(grad, &*args, &mut shadows, places, arena);
    }
    let list = made.flat.of(&room);
    let read = walk(at(Task::Read, &room, here, list), |leaves| reach(&args, leaves));
    let cotangents = shape.cotangent(&mut ManuallyDrop::new(Source::Flat(read.flat.again())));
    // SAFETY: the call returned, so it wrote the result.
    (unsafe { out.assume_init() }, cotangents)
}

/// # Safety
/// The derivative is that of a function of these arguments.
#[inline(always)]
unsafe fn call<A: Arguments>(
    derivative: Whole,
    args: &A,
    shadows: &mut MaybeUninit<A>,
    (out, out_shadow): (*mut (), *mut ()),
    arena: *mut Arena,
) {
    // SAFETY: both are places of such a tuple; the rest is the caller's promise.
    args.addresses(|list| unsafe {
        A::places(shadows.as_ptr(), |shadows| {
            derivative(list.as_ptr(), shadows.as_ptr(), out, out_shadow, arena)
        });
    });
}

/// Calls the function with tangents: its result, and what `output` makes of the tangents of its outputs.
#[inline(always)]
pub(super) fn jvp<A, R, T>(
    functions: &'static Functions,
    kernel: &'static Kernel,
    args: A,
    reach: impl Fn(&A, &mut Leaves),
    tangents: impl Fn(&mut Leaves),
    finals: impl Fn(&A, &mut Leaves),
    output: impl FnOnce(&A, &R, &mut Source) -> Option<T>,
) -> Result<(R, T), Error>
where
    A: Arguments,
    R: Differentiable,
{
    let Some(jvp) = functions.jvp else {
        return Err(kernel.missing("jvp"));
    };
    // By-value arguments are moved out by the callee.
    let args = ManuallyDrop::new(args);
    let (mut out, mut out_shadow) = (MaybeUninit::<R>::uninit(), MaybeUninit::<R>::zeroed());
    let mut shadows = MaybeUninit::<A>::zeroed();
    let here = Piece::known((&raw const *args).cast(), shadows.as_mut_ptr().cast());
    let mut arena = ManuallyDrop::new(Arena::empty());
    let arena = &raw mut *arena;
    let room = Room { arena, functions };
    let list = walk(Nested::default(), &tangents).flat.of(&room);
    let given = walk(at(Task::Collect, &room, Piece::default(), list), &tangents);
    let filled = walk(at(Task::Fill, &room, here, given.flat.again()), |leaves| {
        reach(&args, leaves)
    });
    if !filled.flat.is_done() {
        refuse("is given tangents that have not the structure of its arguments");
    }
    // SAFETY: the arena is there.
    unsafe { (*arena).set_widths(filled.widths) };
    // SAFETY: the addresses are those of arguments of the function, of a place for its result, which the call writes, and
    // of their shadows.
    let result = unsafe {
        let places = (out.as_mut_ptr().cast(), out_shadow.as_mut_ptr().cast());
        call(jvp, &*args, &mut shadows, places, arena);
        &*out.as_ptr()
    };
    let place = Piece::known(out.as_ptr().cast(), out_shadow.as_mut_ptr().cast());
    let result_leaves = |leaves: &mut Leaves| leaves.of(Leaf::RETURN, result);
    let counted = walk(Nested::default(), result_leaves);
    let counted = walk(counted, |leaves| finals(&args, leaves));
    // The result is there, with what it owns.
    let read = Nested {
        owned_go: false,
        ..at(Task::Read, &room, place, counted.flat.of(&room))
    };
    let read = walk(read, result_leaves);
    let read = walk(at(Task::Read, &room, here, read.flat), |leaves| finals(&args, leaves));
    let tangent = output(&args, result, &mut ManuallyDrop::new(Source::Flat(read.flat.again())));
    drop(room);
    // SAFETY: the call returned, so it wrote the result.
    let result = unsafe { out.assume_init() };
    match tangent {
        Some(tangent) => Ok((result, tangent)),
        None => Err(kernel.no_result()),
    }
}
