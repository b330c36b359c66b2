//! Reverse mode: a function becomes a forward sweep that leaves a frame, and a reverse sweep that reads it.
//!
//! [`plan`] decides what the reverse needs and where it gets it; [`augment`] emits the forward sweep, [`sweep`] the
//! reverse. [`construct`] tells the sorts of instructions apart; each has a file that does its part in all three.

pub mod alloc;
pub mod arithmetic;
mod atomic;
pub mod augment;
pub mod byvalue;
pub mod call;
pub mod choice;
pub mod construct;
pub mod control;
pub mod copy;
pub mod counted;
pub mod custom;
mod cut;
pub mod directions;
pub mod dispatch;
pub mod edges;
pub mod frame;
mod given;
pub mod leaves;
pub mod memory;
pub mod moves;
pub mod plan;
mod recipe;
pub mod shape;
mod spine;
pub mod sweep;
mod varied;
pub mod words;
