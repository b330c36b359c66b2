//! A forward pass that was run: what turns seeds into cotangents.

use super::structure;
use crate::differentiable::{Differentiable, Leaf, Leaves, Number, Place, Source};
use crate::engine;
use crate::error::Error;
use crate::kernel::Held;
use crate::kernel::shadow::Run;
use std::sync::{Mutex, PoisonError};
use tch::Tensor;

/// The run, and the shape that cotangents have.
pub struct Pull<C> {
    name: String,
    work: Work,
    /// A cotangent in which every leaf is "none": `C` need not be `Sync`, and a pullback is.
    shape: Mutex<C>,
    /// The leaves of the outputs. Their places are not read any more.
    outputs: Outputs,
    /// The result is `None` or `Err`, so that its seed has no effect.
    absent: bool,
}

/// What ran.
enum Work {
    /// A program over tensors.
    Program(engine::Run),
    /// A kernel.
    Kernel(Mutex<Held>),
}

struct Outputs(Vec<Run>);

// SAFETY: the places of outputs are compared and described only; the numbers at their shadows belong to `work`.
unsafe impl Send for Outputs {}
// SAFETY: as above.
unsafe impl Sync for Outputs {}

impl<C> std::fmt::Debug for Pull<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the pullback of `{}`", self.name)
    }
}

impl<C: Differentiable<Cotangent = C>> Pull<C> {
    pub(super) fn of_program(name: &str, run: engine::Run, shape: C, outputs: Vec<Run>, absent: bool) -> Pull<C> {
        Pull::new(name, Work::Program(run), shape, outputs, absent)
    }

    pub(crate) fn of_kernel(name: &str, held: Held, shape: C, absent: bool) -> Pull<C> {
        let outputs = held.outputs().to_vec();
        Pull::new(name, Work::Kernel(Mutex::new(held)), shape, outputs, absent)
    }

    fn new(name: &str, work: Work, shape: C, outputs: Vec<Run>, absent: bool) -> Pull<C> {
        Pull {
            name: name.to_owned(),
            work,
            shape: Mutex::new(shape),
            outputs: Outputs(outputs),
            absent,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The cotangents for the seed whose leaves `seed` lists: those of the result as [`Leaf::RETURN`], the others by
    /// parameter.
    pub fn call(&self, seed: impl FnOnce(&mut Leaves)) -> Result<C, Error> {
        let mut leaves = Leaves::default();
        seed(&mut leaves);
        let (mut seeds, _) = leaves.into_parts();
        if self.absent {
            seeds.retain(|seed| seed.param != Leaf::RETURN);
        }
        if let Some(difference) = structure::difference(&seeds, &self.outputs.0) {
            let name = &self.name;
            return Err(Error::new(format!(
                "the seed of `{name}` has not the structure of its output: the seed is made of {difference}"
            )));
        }
        self.pull(&seeds, &self.outputs.0)
    }

    /// The cotangents for a seed of one on a result that is one number. Uses up what the call saved.
    pub(crate) fn once_with_one<R: Differentiable>(self, result: &R) -> Result<C, Error> {
        let mut leaves = Leaves::default();
        leaves.of(Leaf::RETURN, result);
        let leaves = leaves.into_vec();
        let place = match leaves.as_slice() {
            [] if self.absent => None,
            [leaf] => Some(leaf.place),
            _ => return Err(self.not_scalar(&format!("it is made of {} tensors and floats", leaves.len()))),
        };
        if let Some(Place::Tensor(tensor)) = place {
            // SAFETY: the leaf of a result that is borrowed.
            let tensor = unsafe { &*tensor };
            if !tensor.defined() {
                return Err(self.not_scalar("it is undefined"));
            }
            if tensor.numel() != 1 {
                return Err(self.not_scalar(&format!("its shape is {:?}", tensor.size())));
            }
        }
        let shape = self.shape.into_inner().unwrap_or_else(PoisonError::into_inner);
        match self.work {
            Work::Program(run) => {
                let numbers = run.pullback_of_one(place.map(|place| move || one(place)))?;
                Ok(shape.cotangent(&mut Source::Numbers(numbers.into_iter())))
            }
            Work::Kernel(held) => {
                let mut held = held.into_inner().unwrap_or_else(PoisonError::into_inner);
                let one = place.map(one).transpose()?;
                let seeds: Vec<Run> = one.iter().map(seed_of).collect();
                Ok(held.pull(&seeds, &self.outputs.0[..seeds.len()], &shape))
            }
        }
    }

    fn not_scalar(&self, what: &str) -> Error {
        Error::new(format!(
            "`{0}::value_and_grad` and `{0}::grad` need one scalar output, but {what}: use `{0}::vjp` and give a seed",
            self.name
        ))
    }

    /// The cotangents for seeds on the first outputs.
    fn pull(&self, seeds: &[Run], outputs: &[Run]) -> Result<C, Error> {
        let shape = || self.shape.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.work {
            Work::Kernel(held) => {
                let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(held.pull(seeds, outputs, &*shape()))
            }
            Work::Program(run) => {
                let mut numbers: Vec<Number> = seeds.iter().flat_map(Run::leaves).map(read).collect();
                let unseeded = self.outputs.0.iter().flat_map(Run::leaves).skip(numbers.len());
                numbers.extend(unseeded.map(|place| Number::none(place.kind())));
                let numbers = run.pullback(numbers)?;
                Ok(shape().cotangent(&mut Source::Numbers(numbers.into_iter())))
            }
        }
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

/// The number as a seed of the result.
fn seed_of(number: &Number) -> Run {
    Run {
        param: Leaf::RETURN,
        place: match number {
            Number::Tensor(x) => Place::Tensor(x),
            Number::F64(x) => Place::F64(x),
            Number::F32(x) => Place::F32(x),
        },
        count: 1,
        shadow: std::ptr::null_mut(),
    }
}

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
