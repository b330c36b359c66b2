//! What specialization gives.

use super::cut::Cut;
use super::host::TensorFacts;
use super::prologue::{Prologue, Slot};
use crate::ir::{Graph, Loc, Value};
use crate::program::{Allocation, How, Refusal};

/// The result of [`super::specialize`].
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// A closed graph for calls like this one.
    Closed(Box<Specialized>),
    /// The original function fails on these arguments: call it, and let it fail in its own words.
    Replay,
    /// The function cannot be raised on the way that these arguments take.
    Refused(Vec<Refusal>),
    /// The tree has not grown this far: evaluate the program on along this path, then specialize again. Per decision
    /// from the root: the value whose arm is taken (of a branch that is exact perhaps one without an arm), or `None`
    /// for "otherwise".
    Grow(Vec<Option<i64>>),
}

/// A closed graph, and what a call needs to use it.
#[derive(Clone, Debug, PartialEq)]
pub struct Specialized {
    /// Which leaf of the program this is.
    pub leaf: usize,
    /// The closed graph. It may still write in place: `functionalize` is next. Its inputs are tensors and floats. Its
    /// outputs are the tensors that the image mentions, then the floats that it mentions.
    pub graph: Graph,
    /// What is known of each input of the graph, in the same order.
    pub inputs: Vec<InputInfo>,
    /// What a later call checks and fetches.
    pub prologue: Prologue,
    /// What the function leaves in memory.
    pub image: ClosedImage,
    /// Arguments of the function with floats that an op takes as a constant: there is no derivative for them.
    pub constants: Vec<usize>,
    /// Where this is not the function's last region: what comes between it and the next. Its outputs are then what the
    /// next regions read, tensors first, and its image is empty.
    pub cut: Option<Box<Cut>>,
}

/// An input of a closed graph.
#[derive(Clone, Debug, PartialEq)]
pub struct InputInfo {
    /// The value in the graph.
    pub value: Value,
    /// Where the prologue puts the tensor's C handle or the float's bits.
    pub slot: Slot,
    /// Where the handle or the float lies in the program's memory; `None` for a float that the prologue computes.
    pub place: Option<Place>,
    /// Facts about a tensor as this call saw it; `None` for floats. Only kind, shape, device and definedness are
    /// checked again by the prologue as it stands (see `functionalize` for the others).
    pub facts: Option<TensorFacts>,
    /// Was it made by an earlier region of the call?
    pub internal: bool,
}

/// Where an input was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The argument of the function through which it was reached.
    pub argument: usize,
    /// Its address.
    pub pointer: Pointer,
}

/// An address of the running program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// What the prologue put into this slot …
    pub slot: Slot,
    /// … plus so many bytes.
    pub offset: i64,
}

/// [`crate::program::Image`], with every scalar known or traced to a slot or an output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClosedImage {
    /// Blocks to take from the program's allocator.
    pub allocations: Vec<Allocation>,
    /// Writes, in order.
    pub writes: Vec<ClosedWrite>,
    /// C handles to free with `at_free` after the writes.
    pub dropped: Vec<Pointer>,
    /// Host memory to give back: address, size, alignment.
    pub freed: Vec<(Pointer, u64, u64)>,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedWrite {
    /// The block.
    pub base: ClosedBase,
    /// Byte offset in it.
    pub offset: i64,
    /// What is written.
    pub datum: ClosedDatum,
    /// How it is combined with what stands there.
    pub how: How,
}

/// Where a block of memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosedBase {
    /// The place for the function's result.
    Out,
    /// A block of [`ClosedImage::allocations`].
    Allocation(usize),
    /// Host memory.
    Host(Pointer),
    /// A constant of the program, by symbol number.
    Symbol(u32),
}

/// What a write puts into memory.
#[derive(Clone, Debug, PartialEq)]
pub enum ClosedDatum {
    /// Constant bytes.
    Bytes(Vec<u8>),
    /// An integer or address that the prologue has: its low bytes.
    Word {
        /// Where it is.
        from: Pointer,
        /// How many bytes.
        bytes: u8,
    },
    /// A float: output `output` of the graph, in 4 or 8 bytes.
    Float {
        /// Which output.
        output: usize,
        /// How many bytes.
        bytes: u8,
    },
    /// A C handle of its own to a tensor: output `k` of the graph.
    Tensor(usize),
    /// The address of a block, plus an offset.
    Address(ClosedBase, i64),
}

/// Why a graph could not be closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", at.as_ref().map(|l| format!(" (at {l})")).unwrap_or_default())]
pub struct SpecializeError {
    /// What is in the way, and what to do.
    pub message: String,
    /// Where.
    pub at: Option<Loc>,
}
