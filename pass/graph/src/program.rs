//! What the build hands to the run: per function, a tree of decisions over open graphs.
//!
//! The pass evaluates a function abstractly. Where a branch depends on what only run time knows, the tree has a
//! [`Tree::Branch`]; every leaf below it repeats the instructions above it, with the same value numbers, so that a
//! condition means the same in all leaves of its subtree. The run walks the tree (see `specialize`) and ends at one
//! leaf: one straight-line graph and the [`Image`] of what the function leaves in memory.

use crate::ir::{Arg, Graph, Loc, Value};
use crate::kernel::KernelNote;
use serde::{Deserialize, Serialize};

/// What one build embeds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its functions.
    pub programs: Vec<Program>,
    /// Decoded code, for trees that grow at run time; empty if there are none. Only the evaluator reads it.
    pub code: Vec<u8>,
    /// Symbols of the program whose addresses the run needs, in the order of the table that the build links in.
    pub symbols: Vec<Named>,
    /// Its kernels, for people to read.
    pub kernels: Vec<KernelNote>,
}

/// A symbol whose address the run needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Named {
    /// The symbol.
    pub symbol: String,
    /// Of a thread-local, which module of the link defines it. It has an address in each thread: the table has that of a
    /// function that gives it.
    pub thread_local: Option<usize>,
}

impl Named {
    /// A symbol with one address.
    pub fn constant(symbol: impl Into<String>) -> Self {
        Self {
            symbol: symbol.into(),
            thread_local: None,
        }
    }
}

/// A function that was raised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// Key of the request: path of the function, and its instance in angle brackets if it is generic.
    pub key: String,
    /// The request's description as the macro wrote it (JSON).
    pub description: String,
    /// Symbol of the request's shim: where the run evaluates on from (see [`Tree::Grow`]).
    pub shim: String,
    /// How a leaf is chosen.
    pub tree: Tree,
    /// The leaves.
    pub leaves: Vec<Leaf>,
    /// Of a kernel: why it has no native derivatives. Evaluation may still succeed; where it fails, these are the reasons.
    pub unlowered: Vec<Refusal>,
}

/// A tree of decisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Tree {
    /// A leaf of [`Program::leaves`].
    Leaf(usize),
    /// The original function panics on this path: call it and let it.
    Replay,
    /// The function does something here that cannot be raised. The build fails on it unless it was told to go on; then
    /// a call that takes this way fails with the first of the reasons.
    Refused(Vec<Refusal>),
    /// Not evaluated yet: the run evaluates on from here once it knows that this way is taken.
    Grow,
    /// A decision on a scalar.
    Branch {
        /// Any leaf below this node: its graph defines `on`.
        leaf: usize,
        /// The scalar that decides.
        on: Value,
        /// Every value has a way of its own; those not in `arms` yet still have to grow.
        exact: bool,
        /// What follows each value that has its own branch.
        arms: Vec<(i64, Tree)>,
        /// What follows any other value.
        otherwise: Box<Tree>,
    },
}

/// One path through a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Leaf {
    /// The open graph of the path. Its inputs are empty: arguments are read by `host.arg` and `host.load`. Its outputs
    /// are the tensors that the image mentions, in the image's order.
    pub graph: Graph,
    /// What the function leaves in memory.
    pub image: Image,
}

/// Memory after the call: what the function allocated and did not free, and what it wrote that others can see.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// Blocks to take from the program's allocator.
    pub allocations: Vec<Allocation>,
    /// Writes, in order.
    pub writes: Vec<Write>,
    /// C handles of host tensors that the function dropped (a by-value argument, an overwritten `&mut Tensor`): each
    /// is a pointer value of the graph, to free with `at_free` after the writes.
    pub dropped: Vec<Value>,
    /// Host memory that the function freed: pointer value, size, alignment.
    pub freed: Vec<(Value, u64, u64)>,
}

/// A block from the program's allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
}

/// Where a block of memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Base {
    /// The place for the function's result.
    Out,
    /// A block of [`Image::allocations`].
    Allocation(usize),
    /// Host memory at a pointer value of the graph.
    Host(Value),
    /// A constant of the program, by symbol name (resolved in the running program).
    Symbol(u32),
}

/// One write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// The block.
    pub base: Base,
    /// Byte offset in it.
    pub offset: i64,
    /// What is written.
    pub datum: Datum,
    /// How it is combined with what stands there.
    pub how: How,
}

/// How a write combines what it writes with what stands there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum How {
    /// It takes its place.
    #[default]
    Store,
    /// In one atomic step that other threads see.
    Atomic(Update),
}

/// An atomic update of an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Update {
    /// Takes its place.
    Exchange,
    /// Wrapping sum.
    Add,
    /// Wrapping difference.
    Sub,
    /// Bits in both.
    And,
    /// Bits in either.
    Or,
    /// Bits in one of both.
    Xor,
    /// The larger, signed.
    Max,
    /// The smaller, signed.
    Min,
    /// The larger, unsigned.
    UMax,
    /// The smaller, unsigned.
    UMin,
}

impl Update {
    /// The update that LLVM's `atomicrmw` calls so.
    pub fn named(op: &str) -> Option<Self> {
        Some(match op {
            "xchg" => Self::Exchange,
            "add" => Self::Add,
            "sub" => Self::Sub,
            "and" => Self::And,
            "or" => Self::Or,
            "xor" => Self::Xor,
            "max" => Self::Max,
            "min" => Self::Min,
            "umax" => Self::UMax,
            "umin" => Self::UMin,
            _ => return None,
        })
    }
}

/// What a write puts into memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Datum {
    /// Constant bytes.
    Bytes(Vec<u8>),
    /// A scalar (constant or value), in so many bytes.
    Scalar {
        /// The scalar.
        value: Arg,
        /// Its size in memory.
        bytes: u8,
    },
    /// A C handle of its own to a tensor: output `k` of the graph.
    Tensor(usize),
    /// The address of a block, plus an offset.
    Address(Base, i64),
}

/// Why a function could not be raised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What is in the way, and what to do.
    pub message: String,
    /// Where, innermost first: the construct itself, then the calls that led to it.
    pub at: Vec<Loc>,
}
