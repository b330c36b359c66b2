//! A forward half that ran: what its reverse needs.

use super::Arena;
use super::Reverse;
use super::shadow::{Cursor, Run, Table};
use crate::differentiable::{Differentiable, Source};
use crate::entry::structure;

/// What a pullback holds: frames, shadows, and where seeds go and cotangents come from.
pub(crate) struct Held {
    reverse: Reverse,
    frame: *mut (),
    arena: Box<Arena>,
    table: Table,
    /// The words of the shadows that are not zero after the forward half.
    pointers: Vec<(*mut u64, u64)>,
    /// No reverse has run yet, so that shadows are as the forward half left them.
    fresh: bool,
    wrt: Vec<Run>,
    outputs: Vec<Run>,
}

// SAFETY: all it points to is its own, shadows and frames; what the function itself allocated is not touched. One thread
// at a time calls the reverse, since that needs `&mut`.
unsafe impl Send for Held {}

impl Held {
    pub(super) fn new(
        reverse: Reverse,
        frame: *mut (),
        arena: Box<Arena>,
        table: Table,
        wrt: Vec<Run>,
        outputs: Vec<Run>,
    ) -> Held {
        let pointers = table.pointers();
        Held {
            reverse,
            frame,
            arena,
            table,
            pointers,
            fresh: true,
            wrt,
            outputs,
        }
    }

    /// The outputs that take seeds.
    pub(crate) fn outputs(&self) -> &[Run] {
        &self.outputs
    }

    /// Cotangents of the structure of `shape`, for seeds that have the structure of the outputs.
    pub(crate) fn pull<C: Differentiable>(&mut self, seeds: &[Run], outputs: &[Run], shape: &C) -> C::Cotangent {
        if !std::mem::replace(&mut self.fresh, false) {
            self.table.clear();
            for (at, word) in &self.pointers {
                // SAFETY: a word of a shadow of the table.
                unsafe { at.write(*word) };
            }
        }
        structure::zero(outputs);
        structure::add(seeds, outputs);
        let mark = self.arena.mark();
        // SAFETY: the frame is that of the forward half, and the arena is the one it had.
        unsafe { (self.reverse)(self.frame, &mut *self.arena) };
        self.arena.take_back(mark);
        shape.cotangent(&mut Source::Shadows(Cursor::new(self.wrt.clone())))
    }
}
