//! Layout of frames: what the forward sweep leaves for the reverse, per execution of a region.

use crate::llvm::{Block, Value};
use std::collections::HashMap;

/// What a field of a frame holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Slot<'m> {
    /// A value of the primal.
    Primal(Value<'m>),
    /// The shadow of a value.
    Shadow(Value<'m>),
    /// The shadow memory of an `alloca`.
    Memory(Value<'m>),
    /// Frame of a call, or the address of it.
    Callee(Value<'m>),
    /// Which words a copy found to be pointers.
    Mask(Value<'m>),
    /// Which predecessor a block was entered from.
    Predecessor(Block<'m>),
    /// Which return was taken.
    Exit,
    /// Frame of the last iteration of the loop that is this region.
    Last(usize),
    /// In a loop's own frame: frame of the iteration before.
    Previous,
}

/// Fields of all regions of a function.
#[derive(Default)]
pub struct Frames<'m> {
    sizes: Vec<u64>,
    fields: HashMap<(usize, Slot<'m>), (u64, u64)>,
}

impl<'m> Frames<'m> {
    /// No fields.
    pub fn new(regions: usize) -> Self {
        Self {
            sizes: vec![0; regions],
            fields: HashMap::new(),
        }
    }

    /// Adds a field, once.
    pub fn reserve(&mut self, region: usize, slot: Slot<'m>, size: u64, alignment: u64) {
        if self.fields.contains_key(&(region, slot)) {
            return;
        }
        // A field may become an array: its size keeps the next one aligned.
        let alignment = alignment.clamp(1, 16);
        let size = size.next_multiple_of(alignment);
        let offset = self.sizes[region].next_multiple_of(alignment);
        self.sizes[region] = offset + size;
        self.fields.insert((region, slot), (offset, size));
    }

    /// Has the region that field?
    pub fn has(&self, region: usize, slot: Slot<'m>) -> bool {
        self.fields.contains_key(&(region, slot))
    }

    /// Where a field is: bytes from the start. In the frames of a counted loop, field after field is an array, so that
    /// offset and distance of elements count in numbers of iterations.
    pub fn place(&self, region: usize, slot: Slot<'m>) -> Option<(u64, u64)> {
        self.fields.get(&(region, slot)).copied()
    }

    /// Bytes of a frame of the region.
    pub fn size(&self, region: usize) -> u64 {
        // Of a counted loop this is the share of an iteration; what is shared out is aligned by the allocation.
        self.sizes[region].next_multiple_of(4)
    }
}
