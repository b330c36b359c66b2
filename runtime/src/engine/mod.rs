//! The call path: from a requested function to its result and its pullback.
//!
//! A [`function::Function`] has a list of specializations ([`special`]), most recently used first. A call runs their
//! prologues until one fits (or makes a new one), runs the compiled forward ([`call`]), and leaves a [`pass`]: what was
//! saved, and the pullback. `derivative` makes the code of both from the graph.

mod backward;
mod call;
mod chain;
mod code;
mod compiled;
mod counters;
mod derivative;
mod function;
mod growth;
mod host;
mod mask;
mod operators;
mod outputs;
mod pass;
mod request;
mod route;
mod rule;
mod run;
mod saved;
mod special;
mod update;

pub use code::set_plan_options;
#[cfg(feature = "jit")]
pub use compiled::save_compiled;
pub use compiled::{compiled_hits, load_compiled};
pub use cotangent_graph::plan::Options as PlanOptions;
pub use counters::{materializations, residual_bytes, specializations};
pub use function::{Description, Function, Param};
pub(crate) use operators::{define, given_away};
pub use operators::{dispatch, not_registrable, register, register_function};
pub use request::cotangent_request;
pub(crate) use request::key;
pub use run::Run;
