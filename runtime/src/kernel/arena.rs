//! Memory of one call of a derivative: what it keeps for the reverse, and shadows of what the function allocates.

use super::shadow::{Object, Table};
use std::sync::atomic::{AtomicPtr, Ordering};

/// A chunk from this size on may become the spare one. The pass knows the number.
const LARGE: usize = 4 << 20;
/// A larger one is not kept.
const LARGEST: usize = 1 << 30;

/// One large chunk without an owner, for the next derivative, whatever thread runs it: its pages are there. Native code
/// takes it (`spare.ll` of the pass says why), by this name.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "native code knows the name")]
static cotangent_spare: AtomicPtr<Chunk> = AtomicPtr::new(std::ptr::null_mut());

/// The memory of one call. Native code takes from it, knowing its layout; all of it is freed at once.
#[repr(C)]
#[derive(Debug)]
pub struct Arena {
    /// The next free byte of the newest chunk.
    next: *mut u8,
    /// Its end.
    end: *mut u8,
    /// The newest chunk.
    newest: *mut Chunk,
    objects: *const Object,
    objects_len: usize,
    /// The newest of the values that go with the arena.
    owned: *mut Owned,
    /// Shadows of global variables, which only the pass uses.
    globals: *mut u8,
    /// Which floats there are in the memory that the call is given.
    widths: u64,
}

/// A chunk begins with the address of the one before it, and its size.
#[repr(C)]
#[derive(Debug)]
struct Chunk {
    before: *mut Chunk,
    size: usize,
}

impl Chunk {
    /// Makes a chunk the spare one; that before it goes.
    ///
    /// # Safety
    /// Nothing uses the chunk, which comes from `malloc`.
    unsafe fn put(chunk: *mut Chunk) {
        // SAFETY: as the caller promises. The advice is about the chunk's whole pages, after its first words; where the
        // system does not take it, that is all. The spare chunk is nobody's, so that who takes it may free it.
        unsafe {
            let pages = chunk
                .cast::<u8>()
                .map_addr(|at| (at + size_of::<Chunk>()).next_multiple_of(4096));
            let end = (chunk.addr() + (*chunk).size) & !4095;
            libc::madvise(pages.cast(), end.saturating_sub(pages.addr()), libc::MADV_FREE);
            libc::free(cotangent_spare.swap(chunk, Ordering::AcqRel).cast());
        }
    }
}

/// A value that goes with the arena.
struct Owned {
    before: *mut Owned,
    _value: Box<dyn std::any::Any>,
}

/// How much of an arena was in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    next: *mut u8,
    end: *mut u8,
    newest: *mut Chunk,
}

impl Arena {
    /// An empty arena. The table stays where it is and as it is.
    #[inline]
    pub(crate) fn new(table: &Table) -> Arena {
        let objects = table.roots();
        Arena {
            next: std::ptr::null_mut(),
            end: std::ptr::null_mut(),
            newest: std::ptr::null_mut(),
            objects: objects.as_ptr(),
            objects_len: objects.len(),
            owned: std::ptr::null_mut(),
            globals: std::ptr::null_mut(),
            widths: table.widths(),
        }
    }

    /// An empty arena without a table.
    #[inline(always)]
    pub(super) fn empty() -> Arena {
        Arena {
            next: std::ptr::null_mut(),
            end: std::ptr::null_mut(),
            newest: std::ptr::null_mut(),
            objects: std::ptr::null(),
            objects_len: 0,
            owned: std::ptr::null_mut(),
            globals: std::ptr::null_mut(),
            widths: 0,
        }
    }

    /// Says which floats there are in the memory that the call is given.
    #[inline(always)]
    pub(super) fn set_widths(&mut self, widths: u64) {
        self.widths = widths;
    }

    /// Keeps a value until the arena goes; gives its address.
    pub(crate) fn keep<T: 'static>(&mut self, value: T) -> *mut T {
        let mut value = Box::new(value);
        let at = &raw mut *value;
        let owned = Owned {
            before: self.owned,
            _value: value,
        };
        self.owned = Box::into_raw(Box::new(owned));
        at
    }

    pub(super) fn mark(&self) -> Mark {
        let Arena { next, end, newest, .. } = *self;
        Mark { next, end, newest }
    }

    /// Takes back what was taken since.
    pub(super) fn take_back(&mut self, mark: Mark) {
        // SAFETY: chunks newer than the mark's hold nothing that was there before. What is left of the mark's chunk was
        // free then.
        unsafe {
            self.free_until(mark.newest);
            if self.next != mark.next {
                mark.next.write_bytes(0, mark.end.offset_from_unsigned(mark.next));
            }
        }
        (self.next, self.end) = (mark.next, mark.end);
    }

    /// # Safety
    /// Nothing uses chunks newer than `last`.
    unsafe fn free_until(&mut self, last: *mut Chunk) {
        while self.newest != last {
            // SAFETY: chunks are linked, and come from `malloc`.
            unsafe {
                let before = (*self.newest).before;
                libc::free(self.newest.cast());
                self.newest = before;
            }
        }
    }
}

impl Drop for Arena {
    #[inline]
    fn drop(&mut self) {
        while !self.owned.is_null() {
            // SAFETY: `keep` made it of a box.
            let owned = unsafe { Box::from_raw(self.owned) };
            self.owned = owned.before;
        }
        // SAFETY: the arena goes, and all that uses it went before. The newest chunk is the largest, or was taken again.
        unsafe {
            let newest = self.newest;
            if !newest.is_null() && (LARGE..=LARGEST).contains(&(*newest).size) {
                self.newest = (*newest).before;
                Chunk::put(newest);
            }
            self.free_until(std::ptr::null_mut());
        }
    }
}
