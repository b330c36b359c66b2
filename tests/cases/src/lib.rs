//! Recorded operator cases: one call of one LibTorch function each, with inputs, cotangents, outputs and gradients.
//!
//! [`load`] reads a folder of cases (`cases.jsonl`, `ops.jsonl`, `tensors.safetensors`); [`Case::graph`] is the closed
//! graph of the call; [`compare`] holds a result against the recorded one. [`interpret()`] runs a case through this
//! project's own pipeline and the reference interpreter; other drivers run the same cases through compiled code.
//! [`excerpt()`] copies a selection of cases to a folder of the same format.

mod case;
mod compare;
mod excerpt;
mod format;
mod graph;
mod interpret;
mod load;
mod report;
mod selection;

pub use case::{Case, CaseArg, Flag, Input, Layout, Stored};
pub use compare::compare;
pub use excerpt::{excerpt, selection};
pub use graph::CaseGraph;
pub use interpret::interpret;
pub use load::load;
pub use report::{Outcome, Report};
pub use selection::Selection;
