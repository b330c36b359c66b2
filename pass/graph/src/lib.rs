//! The tensor-graph middle end of Cotangent.
//!
//! One type, [`ir::Graph`], and a list of stages over it. This crate knows no LLVM and no LibTorch; everything here
//! is a pure function on graphs and can be tested in milliseconds.
#![forbid(unsafe_code)]

pub mod alias;
pub mod artifact;
pub mod canonicalize;
pub mod differentiate;
pub mod explain;
pub mod extract;
pub mod functionalize;
pub mod interp;
pub mod ir;
pub mod kernel;
pub mod ops;
pub mod partition;
pub mod plan;
pub mod program;
pub mod scalar;
pub mod simplify;
pub mod specialize;
pub mod text;
pub mod verify;
