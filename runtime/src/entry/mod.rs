//! What macro-made entry points call. Nothing here is part of the public interface: the functions are safe to call
//! only as the macros call them (the arguments are those of the function that was requested).
//!
//! A function is a kernel, whose derivatives the pass wrote as native code ([`crate::kernel`]), or a program over tensors
//! ([`crate::engine`]): each entry point asks for the kernel first.

mod pull;
mod rule;
mod shim;
pub(crate) mod structure;
mod tensors;
#[cfg(test)]
mod tests;

pub use pull::Pull;
pub use rule::{
    Ran, Rule, TangentRule, call_with_rule, call_with_tangent_rule, inactive, op, rule_of, tangent_rule_of,
};
pub(crate) use shim::item;
pub use shim::{Arguments, Callable, MOST_PARAMETERS, Shim, instance_of, kernel, request, shim_of};
pub use tensors::{Edge, Element, Given, Name, Part, Returned, Scalar, Tensor, attached};

use crate::differentiable::{Differentiable, Leaf, Leaves, Source};
use crate::engine::Function;
use crate::error::Error;
use crate::kernel::{self as kernels, Kernel};
use std::mem::{ManuallyDrop, MaybeUninit};
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
    reach: impl FnOnce(&A, &mut Leaves),
    shape: impl FnOnce(&A, &mut Source) -> C,
    finals: impl FnOnce(&A, &mut Leaves),
) -> Result<(R, Pull<C>), Error>
where
    A: Arguments,
    R: Differentiable,
    C: Differentiable<Cotangent = C>,
{
    match kernel {
        Some(kernel) => kernels::vjp(kernel, args, reach, shape, finals),
        None => program_vjp(function(), args, reach, shape, finals),
    }
}

/// The same for a program.
fn program_vjp<A, R, C>(
    function: &'static Function,
    args: A,
    reach: impl FnOnce(&A, &mut Leaves),
    shape: impl FnOnce(&A, &mut Source) -> C,
    finals: impl FnOnce(&A, &mut Leaves),
) -> Result<(R, Pull<C>), Error>
where
    A: Arguments,
    R: Differentiable,
    C: Differentiable<Cotangent = C>,
{
    function.ready()?;
    // By-value arguments are moved out by the callee.
    let args = ManuallyDrop::new(args);
    let mut inputs = Leaves::default();
    reach(&args, &mut inputs);
    let shape = shape(&args, &mut Source::Nothing);
    let mut out = MaybeUninit::<R>::uninit();
    let place = out.as_mut_ptr().cast();
    // SAFETY: the addresses are those of arguments of the requested function, and of a place for its result.
    let mut run = args.addresses(|args| unsafe { function.forward(args, place, &inputs.into_vec()) })?;
    // SAFETY: the call succeeded, so it wrote the result.
    let result = unsafe { out.assume_init_ref() };
    let absent = result.absent();
    let mut outputs = Leaves::default();
    outputs.of(Leaf::RETURN, result);
    finals(&args, &mut outputs);
    let (outputs, _) = outputs.into_parts();
    let leaf = |param, place| Leaf { param, place };
    let leaves: Vec<Leaf> = outputs
        .iter()
        .flat_map(|run| run.leaves().map(move |place| leaf(run.param, place)))
        .collect();
    let bound = run.outputs(&leaves);
    // SAFETY: as above; the leaves are not read any more.
    let result = unsafe { out.assume_init() };
    bound?;
    Ok((result, Pull::of_program(function.name(), run, shape, outputs, absent)))
}

/// Calls the function and pulls back a seed of one.
#[inline]
pub fn value_and_grad<A, R, C>(
    kernel: Option<&'static Kernel>,
    function: impl FnOnce() -> &'static Function,
    args: A,
    reach: impl FnOnce(&A, &mut Leaves),
    shape: impl FnOnce(&A, &mut Source) -> C,
    finals: impl FnOnce(&A, &mut Leaves),
) -> Result<(R, C), Error>
where
    A: Arguments,
    R: Differentiable,
    C: Differentiable<Cotangent = C>,
{
    match kernel {
        Some(kernel) => kernels::value_and_grad(kernel, args, reach, shape, finals),
        None => {
            let (result, pull) = program_vjp::<A, R, C>(function(), args, reach, shape, finals)?;
            let cotangents = pull.once_with_one(&result)?;
            Ok((result, cotangents))
        }
    }
}

/// Calls the function with its outputs attached to LibTorch's graph.
pub fn autograd<A: Arguments, R>(
    function: &'static Function,
    args: A,
    reach: impl FnOnce(&A, &mut Leaves),
) -> Result<R, Error> {
    function.ready()?;
    // By-value arguments are moved out by the callee.
    let args = ManuallyDrop::new(args);
    let mut inputs = Leaves::default();
    reach(&args, &mut inputs);
    let mut out = MaybeUninit::<R>::uninit();
    let place = out.as_mut_ptr().cast();
    // SAFETY: the addresses are those of arguments of the requested function, and of a place for its result.
    args.addresses(|args| unsafe { function.autograd(args, place, &inputs.into_vec()) })?;
    // SAFETY: the call succeeded, so it wrote the result.
    Ok(unsafe { out.assume_init() })
}

/// Forward mode: `tangents` lists the leaves of the tangents, `output` makes those of the outputs. Programs over tensors
/// have none yet, and say so.
#[inline]
pub fn jvp<A, R, T>(
    kernel: Option<&'static Kernel>,
    function: impl FnOnce() -> &'static Function,
    args: A,
    reach: impl FnOnce(&A, &mut Leaves),
    tangents: impl FnOnce(&mut Leaves),
    finals: impl FnOnce(&A, &mut Leaves),
    output: impl FnOnce(&A, &R, &mut Source) -> Option<T>,
) -> Result<(R, T), Error>
where
    A: Arguments,
    R: Differentiable,
{
    match kernel {
        Some(kernel) => kernels::jvp(kernel, args, reach, tangents, finals, output),
        None => Err(no_program_jvp(function())),
    }
}

fn no_program_jvp(function: &'static Function) -> Error {
    function.ready().err().unwrap_or_else(|| {
        let name = function.name();
        Error::new(format!(
            "`{name}::jvp`: forward mode is not available for functions over tensors yet; use `vjp`"
        ))
    })
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
