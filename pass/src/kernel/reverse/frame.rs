//! Layout of frames: what the forward sweep leaves for the reverse, per execution of a region.

use crate::llvm::{Block, Value};
use std::collections::HashMap;

/// What a field of a frame holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Slot<'m> {
    /// A value of the primal.
    Primal(Value<'m>),
    /// The shadow of a value, in a direction.
    Shadow(Value<'m>, u32),
    /// How far a pointer is from its object.
    Offset(Value<'m>),
    /// The shadow memory of an `alloca`, in a direction.
    Memory(Value<'m>, u32),
    /// Frame of a call, or the address of it.
    Callee(Value<'m>),
    /// Which words a copy found to be pointers, in a direction.
    Mask(Value<'m>, u32),
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
    fields: HashMap<(usize, Slot<'m>), Field>,
    /// In the order in which they were asked for.
    order: Vec<(usize, Slot<'m>)>,
}

#[derive(Clone, Copy)]
struct Field {
    offset: u64,
    size: u64,
    alignment: u64,
}

impl<'m> Frames<'m> {
    /// No fields.
    pub fn new(regions: usize) -> Self {
        Self {
            sizes: vec![0; regions],
            ..Self::default()
        }
    }

    /// Adds a field, once.
    pub fn reserve(&mut self, region: usize, slot: Slot<'m>, size: u64, alignment: u64) {
        if self.fields.contains_key(&(region, slot)) {
            return;
        }
        let alignment = alignment.clamp(1, 16);
        // A field may become an array.
        let size = size.next_multiple_of(alignment);
        let field = Field {
            offset: 0,
            size,
            alignment,
        };
        self.sizes[region] += size;
        self.fields.insert((region, slot), field);
        self.order.push((region, slot));
    }

    /// Gives every field its place, when all are known: the most aligned ones come first, so that there are no gaps.
    pub fn lay_out(&mut self) {
        self.sizes.fill(0);
        let mut order = self.order.clone();
        order.sort_by_key(|key| std::cmp::Reverse(self.fields[key].alignment));
        for key in order {
            if let Some(field) = self.fields.get_mut(&key) {
                field.offset = self.sizes[key.0];
                self.sizes[key.0] += field.size;
            }
        }
    }

    /// Has the region that field?
    pub fn has(&self, region: usize, slot: Slot<'m>) -> bool {
        self.fields.contains_key(&(region, slot))
    }

    /// Where a field is: bytes from the start, and bytes of the field. In the frames of a counted loop, field after field
    /// is an array, so that both count in numbers of iterations.
    pub fn place(&self, region: usize, slot: Slot<'m>) -> Option<(u64, u64)> {
        self.fields.get(&(region, slot)).map(|f| (f.offset, f.size))
    }

    /// Bytes of a frame of the region; of a counted loop, the share of an iteration.
    pub fn size(&self, region: usize) -> u64 {
        self.sizes[region]
    }

    /// All fields of a region, with their bytes.
    pub fn fields(&self, region: usize) -> impl Iterator<Item = (Slot<'m>, u64)> {
        let own = self.order.iter().filter(move |(r, _)| *r == region);
        own.map(|key| (key.1, self.fields[key].size))
    }
}
