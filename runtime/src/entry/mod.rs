//! What macro-made entry points call. Nothing here is part of the public interface: the functions are safe to call
//! only as the macros call them (the arguments are those of the function that was requested).
//!
//! A function is a kernel, whose derivatives the pass wrote as native code ([`crate::kernel`]), or a program over tensors
//! ([`crate::engine`]): each entry point asks for the kernel first. All that belongs to programs stands in [`program`]: where a
//! differentiated function calls an entry point, the pass follows the rest, and not that.

mod operator;
mod program;
mod pull;
mod rule;
mod shim;
pub(crate) mod structure;
mod tensors;
#[cfg(test)]
mod tests;

pub use operator::{Listed, Values, register};
pub use program::autograd;
pub use pull::Pull;
pub use rule::{Ran, Rule, TangentRule, call_with_rule, call_with_tangent_rule, inactive, rule_of, tangent_rule_of};
pub(crate) use shim::item;
pub use shim::{Arguments, Callable, MOST_PARAMETERS, Shim, instance_of, kernel, request, shim_of};
pub use tensors::{Edge, Element, Given, Name, Part, Returned, Scalar, Tensor, attached};

use crate::differentiable::{Differentiable, Leaves, Source};
use crate::engine::Function;
use crate::error::Error;
use crate::kernel::{self as kernels, Kernel};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls the function: its result, and what turns seeds into cotangents.
///
/// `reach` lists the leaves of the differentiated parameters and what lies beside them, `shape` makes a cotangent from
/// the arguments, and `finals` lists the leaves of `&mut` parameters.
#[inline]
pub fn vjp<A, R, C>(
    kernel: Option<&'static Kernel>,
    function: impl FnOnce() -> &'static Function,
    args: A,
    reach: impl Fn(&A, &mut Leaves),
    shape: impl FnOnce(&A, &mut Source) -> C,
    finals: impl Fn(&A, &mut Leaves),
) -> Result<(R, Pull<C>), Error>
where
    A: Arguments,
    R: Differentiable,
    C: Differentiable<Cotangent = C>,
{
    match kernel {
        Some(kernel) => kernels::vjp(kernel, args, reach, shape, finals),
        None => program::vjp(function(), args, reach, shape, finals),
    }
}

/// Calls the function and pulls back a seed of one.
#[inline]
pub fn value_and_grad<A, R, C>(
    kernel: Option<&'static Kernel>,
    function: impl FnOnce() -> &'static Function,
    args: A,
    reach: impl Fn(&A, &mut Leaves),
    shape: impl FnOnce(&A, &mut Source) -> C,
    finals: impl Fn(&A, &mut Leaves),
) -> Result<(R, C), Error>
where
    A: Arguments,
    R: Differentiable,
    C: Differentiable<Cotangent = C>,
{
    match kernel {
        Some(kernel) => kernels::value_and_grad(kernel, args, reach, shape, finals),
        None => program::value_and_grad(function(), args, reach, shape, finals),
    }
}

/// Forward mode: `tangents` lists the leaves of the tangents, `output` makes those of the outputs.
#[inline]
pub fn jvp<A, R, T>(
    kernel: Option<&'static Kernel>,
    function: impl FnOnce() -> &'static Function,
    args: A,
    reach: impl Fn(&A, &mut Leaves),
    tangents: impl Fn(&mut Leaves),
    finals: impl Fn(&A, &mut Leaves),
    output: impl FnOnce(&A, &R, &mut Source) -> Option<T>,
) -> Result<(R, T), Error>
where
    A: Arguments,
    R: Differentiable,
{
    match kernel {
        Some(kernel) => kernels::jvp(kernel, args, reach, tangents, finals, output),
        None => program::jvp(function(), args, reach, tangents, finals, output),
    }
}

/// What the entry point gives, or the panic of the function as an error.
pub fn caught<T>(call: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|payload| Err(Error::panicked(payload)))
}

/// The value, or a panic with the error's message.
#[inline]
#[track_caller]
pub fn unwrap<T>(result: Result<T, Error>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => error.raise(),
    }
}
