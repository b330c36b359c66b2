//! Calls of programs over tensors.

pub(super) mod rules;

use super::pull::{Program, Pull};
use super::{Arguments, structure};
use crate::differentiable::{Differentiable, Leaf, LeafKind, Leaves, Number, Place, Source};
use crate::engine::{self, Function};
use crate::error::Error;
use crate::kernel::shadow::Run;
use std::mem::{ManuallyDrop, MaybeUninit};
use tch::Tensor;

/// Calls the function: its result, and what turns seeds into cotangents.
pub(super) fn vjp<A, R, C>(
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
    let bound = run.outputs(&leaves(&outputs));
    // SAFETY: as above; the leaves are not read any more.
    let result = unsafe { out.assume_init() };
    bound?;
    Ok((
        result,
        Pull::of_program(function.name(), Box::new(run), shape, outputs, absent),
    ))
}

/// Calls the function and pulls back a seed of one.
pub(super) fn value_and_grad<A, R, C>(
    function: &'static Function,
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
    let (result, pull) = vjp::<A, R, C>(function, args, reach, shape, finals)?;
    let cotangents = pull.once_with_one(&result)?;
    Ok((result, cotangents))
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

/// Forward mode.
pub(super) fn jvp<A, R, T>(
    function: &'static Function,
    args: A,
    reach: impl FnOnce(&A, &mut Leaves),
    tangents: impl Fn(&mut Leaves),
    finals: impl FnOnce(&A, &mut Leaves),
    output: impl FnOnce(&A, &R, &mut Source) -> Option<T>,
) -> Result<(R, T), Error>
where
    A: Arguments,
    R: Differentiable,
{
    function.ready()?;
    let name = function.name();
    let (mut inputs, mut given) = (Leaves::default(), Leaves::default());
    reach(&args, &mut inputs);
    tangents(&mut given);
    let ((inputs, _), (given, _)) = (inputs.into_parts(), given.into_parts());
    if let Some(difference) = structure::difference(&given, &inputs) {
        return Err(Error::new(format!(
            "the tangents of `{name}` have not the structure of its arguments: the tangents are made of {difference}"
        )));
    }
    let given = given.iter().flat_map(Run::leaves).map(read).collect();
    // By-value arguments are moved out by the callee.
    let args = ManuallyDrop::new(args);
    let mut out = MaybeUninit::<R>::uninit();
    let place = out.as_mut_ptr().cast();
    // SAFETY: the addresses are those of arguments of the requested function, and of a place for its result.
    let mut run = args.addresses(|args| unsafe { function.forward(args, place, &leaves(&inputs)) })?;
    // SAFETY: the call succeeded, so it wrote the result.
    let result = unsafe { out.assume_init_ref() };
    let mut outputs = Leaves::default();
    outputs.of(Leaf::RETURN, result);
    finals(&args, &mut outputs);
    let outputs = leaves(&outputs.into_parts().0);
    let kinds: Vec<LeafKind> = outputs.iter().map(|leaf| leaf.place.kind()).collect();
    let numbers = run.outputs(&outputs).and_then(|()| run.push(given, &kinds));
    let tangent = numbers.map(|numbers| output(&args, result, &mut Source::numbers(numbers)));
    // SAFETY: as above; the leaves are not read any more.
    let result = unsafe { out.assume_init() };
    let none = || {
        Error::new(format!(
            "`{name}::jvp`: the call gave no result, so that it has no tangent"
        ))
    };
    Ok((result, tangent?.ok_or_else(none)?))
}

/// Runs of leaves, one by one.
fn leaves(runs: &[Run]) -> Vec<Leaf> {
    let leaf = |param, place| Leaf { param, place };
    runs.iter()
        .flat_map(|run| run.leaves().map(move |place| leaf(run.param, place)))
        .collect()
}

impl Program for engine::Run {
    fn pullback(&self, seeds: &[Run], outputs: &[Run]) -> Result<Source, Error> {
        let mut numbers: Vec<Number> = seeds.iter().flat_map(Run::leaves).map(read).collect();
        let unseeded = outputs.iter().flat_map(Run::leaves).skip(numbers.len());
        numbers.extend(unseeded.map(|place| Number::none(place.kind())));
        engine::Run::pullback(self, numbers).map(Source::numbers)
    }

    fn pullback_of_one(
        self: Box<Self>,
        place: Option<Place>,
        not_scalar: &dyn Fn(&str) -> Error,
    ) -> Result<Source, Error> {
        if let Some(Place::Tensor(tensor)) = place {
            // SAFETY: the leaf of a result that is borrowed.
            let tensor = unsafe { &*tensor };
            if !tensor.defined() {
                return Err(not_scalar("it is undefined"));
            }
            if tensor.numel() != 1 {
                return Err(not_scalar(&format!("its shape is {:?}", tensor.size())));
            }
        }
        engine::Run::pullback_of_one(*self, place.map(|place| move || one(place))).map(Source::numbers)
    }
}

/// One, like the number in that place.
fn one(place: Place) -> Result<Number, Error> {
    Ok(match place {
        Place::F64(_) => Number::F64(1.0),
        Place::F32(_) => Number::F32(1.0),
        // SAFETY: the leaf of a result that is borrowed.
        Place::Tensor(tensor) => Number::Tensor(tch::no_grad(|| unsafe { &*tensor }.f_ones_like())?),
    })
}

/// The number at a place.
pub(super) fn read(place: Place) -> Number {
    // SAFETY: the leaves of a seed that the caller still holds.
    unsafe {
        match place {
            Place::Tensor(tensor) => Number::Tensor(share(&*tensor)),
            Place::F64(value) => Number::F64(*value),
            Place::F32(value) => Number::F32(*value),
        }
    }
}

/// Another handle; of the undefined tensor, too.
fn share(tensor: &Tensor) -> Tensor {
    if tensor.defined() {
        tensor.shallow_clone()
    } else {
        Tensor::new()
    }
}
