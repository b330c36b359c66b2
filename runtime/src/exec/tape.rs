//! An owned tape.

use crate::torch::shim::{RawTape, cotangent_tape_free};

/// LibTorch's record of one opaque op, from the forward that left it to the backwards that read it.
#[derive(Debug)]
pub struct Tape(*mut RawTape);

// SAFETY: after its op has run, a tape is only read, and LibTorch's engine may walk one graph from several threads.
unsafe impl Send for Tape {}
// SAFETY: as above.
unsafe impl Sync for Tape {}

impl Tape {
    /// Takes over a tape.
    ///
    /// # Safety
    /// `raw` must be a closed tape that nothing else frees.
    pub(super) unsafe fn from_raw(raw: *mut RawTape) -> Self {
        Self(raw)
    }

    /// Gives it away.
    pub(super) fn into_raw(self) -> *mut RawTape {
        let raw = self.0;
        std::mem::forget(self);
        raw
    }

    pub(super) fn as_raw(&self) -> *mut RawTape {
        self.0
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        // SAFETY: we own it.
        unsafe { cotangent_tape_free(self.0) };
    }
}
