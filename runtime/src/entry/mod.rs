//! What macro-made entry points call. Nothing here is part of the public interface: the functions are safe to call
//! only as the macros call them (the arguments are those of the function that was requested).

mod pull;
mod rule;
mod shim;
#[cfg(test)]
mod tests;

pub use pull::Pull;
pub use rule::{Ran, Rule, call_with_rule, inactive, op, rule_of};
pub use shim::{Arguments, Callable, MOST_PARAMETERS, Shim, instance_of, request, shim_of};

use crate::differentiable::{Differentiable, Leaf, Leaves, Source};
use crate::engine::Function;
use crate::error::Error;
use std::mem::{ManuallyDrop, MaybeUninit};

/// Calls the function: its result, and what turns seeds into cotangents.
///
/// `wrt` lists the leaves of the differentiated parameters, `shape` makes a cotangent from the arguments, and `finals`
/// lists the leaves of `&mut` parameters.
pub fn vjp<A, R, C>(
    function: &'static Function,
    args: A,
    wrt: impl FnOnce(&A, &mut Leaves),
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
    wrt(&args, &mut inputs);
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
    let outputs = outputs.into_vec();
    let bound = run.outputs(&outputs);
    // SAFETY: as above; the leaves are not read any more.
    let result = unsafe { out.assume_init() };
    bound?;
    Ok((
        result,
        Pull::new(function.name().to_owned(), run, shape, &outputs, absent),
    ))
}

/// Calls the function and pulls back a seed of one.
pub fn value_and_grad<A, R, C>(
    function: &'static Function,
    args: A,
    wrt: impl FnOnce(&A, &mut Leaves),
    shape: impl FnOnce(&A, &mut Source) -> C,
    finals: impl FnOnce(&A, &mut Leaves),
) -> Result<(R, C), Error>
where
    A: Arguments,
    R: Differentiable,
    C: Differentiable<Cotangent = C>,
{
    let (result, pull) = vjp::<A, R, C>(function, args, wrt, shape, finals)?;
    let cotangents = pull.call_with_one(&result)?;
    Ok((result, cotangents))
}

/// Calls the function with its outputs attached to LibTorch's graph.
pub fn autograd<A: Arguments, R>(
    function: &'static Function,
    args: A,
    wrt: impl FnOnce(&A, &mut Leaves),
) -> Result<R, Error> {
    function.ready()?;
    // By-value arguments are moved out by the callee.
    let args = ManuallyDrop::new(args);
    let mut inputs = Leaves::default();
    wrt(&args, &mut inputs);
    let mut out = MaybeUninit::<R>::uninit();
    let place = out.as_mut_ptr().cast();
    // SAFETY: the addresses are those of arguments of the requested function, and of a place for its result.
    args.addresses(|args| unsafe { function.autograd(args, place, &inputs.into_vec()) })?;
    // SAFETY: the call succeeded, so it wrote the result.
    Ok(unsafe { out.assume_init() })
}

/// Forward mode. The engine has none yet, so a function that was built with the pass says so.
pub fn jvp<T>(function: &'static Function) -> Result<T, Error> {
    function.ready()?;
    Err(Error::new(format!(
        "`{}::jvp`: forward mode is not available yet; use `vjp`",
        function.name()
    )))
}

/// The value, or a panic with the error's message.
#[track_caller]
pub fn unwrap<T>(result: Result<T, Error>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => error.raise(),
    }
}
