//! What the engine knows about the code that it differentiates.
//!
//! Every analysis reads a module that has been prepared, changes nothing, has a text form (its printer) and filetests in
//! `tests/analysis/`. What an answer promises stands with the function that gives it. None is needed for a right
//! derivative to be right: where an analysis does not know, it says so, and the engine decides at run time or refuses.

pub mod activity;
pub mod allocations;
mod constraints;
pub mod content;
mod crossing;
mod kinds;
pub mod loops;
mod pieces;
mod regions;
mod shape;
mod span;
mod start;
pub mod unwritten;
pub mod words;

pub use allocations::{Allocation, Size, allocation};
pub use content::{Content, Field, Holds};
pub use kinds::Kinds;
pub use start::Start;
