//! The run-time half of Cotangent.
//!
//! A raised function arrives as a `cotangent_graph::program::Program`. [`exec`] turns the graphs that the middle end
//! makes of it into machine code ([`lower`], [`jit`]) that calls LibTorch's own kernels by address ([`kernels`]).

pub mod kernels;
