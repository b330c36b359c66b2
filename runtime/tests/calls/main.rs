//! Calls of hand-made programs, with LibTorch's own autograd as the oracle.
#![allow(unreachable_pub, reason = "a test is no library")]

#[macro_use]
mod support;
mod aliases;
mod attached;
mod autocast;
mod direct;
mod failures;
mod forward;
mod functions;
mod higher;
mod mutated;
mod once;
mod operators;
