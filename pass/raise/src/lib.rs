//! The abstract evaluator: runs a function of the user's program on symbols and writes down the tensor work it does.
//!
//! *Takes* decoded code ([`code`]) and the symbol of a request's shim. *Gives* a
//! [`cotangent_graph::program::Program`]: a tree of decisions over open graphs. *Promises* that everything the function
//! does is either in a leaf (tensor ops, memory it leaves behind), or left to the original (`Replay`), or refused with
//! the source line; nothing is skipped. *Not here*: derivatives, shapes.
//!
//! The evaluator executes instructions one by one. Memory that the function makes is modelled exactly ([`memory`]);
//! integers and addresses are concrete unless they come from the caller's memory or from a tensor's metadata, which
//! become scalars of the graph ([`trace`]). LibTorch's C functions become graph instructions ([`torch`]). Where control
//! depends on a scalar of the graph, the evaluation asks for a decision ([`explore`]).
#![forbid(unsafe_code)]

pub mod archive;
pub mod code;
mod data;
mod eval;
pub mod explore;
mod externs;
mod image;
mod integers;
mod intrinsics;
pub mod memory;
mod rule;
mod scalar;
mod torch;
pub mod trace;
pub mod value;

pub use eval::is_user;

/// The runtime's variable that tells its entry points whether they run within a derivative of a kernel. The evaluator is the
/// other way to a derivative: in what it runs, the variable is a constant, and says no.
pub const IS_NESTED: &str = "cotangent_is_nested";
