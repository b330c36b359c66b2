//! A forward pass that was run: what turns seeds into cotangents.

use super::structure;
use crate::differentiable::{Differentiable, Leaf, Leaves, Place, Source};
use crate::error::Error;
use crate::kernel::Held;
use crate::kernel::shadow::Run;
use std::sync::{Mutex, PoisonError};

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
    Program(Box<dyn Program>),
    /// A kernel.
    Kernel(Mutex<Held>),
}

/// A program over tensors that ran.
pub(super) trait Program: Send + Sync {
    /// The cotangents for seeds on the first outputs.
    fn pullback(&self, seeds: &[Run], outputs: &[Run]) -> Result<Source, Error>;

    /// The cotangents for a seed of one on the leaf of the result at `place`, if it is there. Uses up what was saved.
    fn pullback_of_one(
        self: Box<Self>,
        place: Option<Place>,
        not_scalar: &dyn Fn(&str) -> Error,
    ) -> Result<Source, Error>;
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
    pub(super) fn of_program(name: &str, run: Box<dyn Program>, shape: C, outputs: Vec<Run>, absent: bool) -> Pull<C> {
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
            _ => {
                return Err(not_scalar(
                    &self.name,
                    &format!("it is made of {} tensors and floats", leaves.len()),
                ));
            }
        };
        let name = self.name;
        let shape = self.shape.into_inner().unwrap_or_else(PoisonError::into_inner);
        match self.work {
            Work::Program(run) => {
                let mut cotangents = run.pullback_of_one(place, &|what| not_scalar(&name, what))?;
                Ok(shape.cotangent(&mut cotangents))
            }
            Work::Kernel(held) => {
                let mut held = held.into_inner().unwrap_or_else(PoisonError::into_inner);
                let one = match place {
                    Some(Place::F32(_)) => Some(Place::F32(&1.0)),
                    place => place.map(|_| Place::F64(&1.0)),
                };
                let (param, count, shadow) = (Leaf::RETURN, 1, std::ptr::null_mut());
                let seed = |place| Run {
                    param,
                    place,
                    count,
                    shadow,
                };
                let seeds: Vec<Run> = one.into_iter().map(seed).collect();
                Ok(held.pull(&seeds, &self.outputs.0[..seeds.len()], &shape))
            }
        }
    }

    /// The cotangents for seeds on the first outputs.
    fn pull(&self, seeds: &[Run], outputs: &[Run]) -> Result<C, Error> {
        let shape = || self.shape.lock().unwrap_or_else(PoisonError::into_inner);
        match &self.work {
            Work::Kernel(held) => {
                let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(held.pull(seeds, outputs, &*shape()))
            }
            Work::Program(run) => Ok(shape().cotangent(&mut run.pullback(seeds, &self.outputs.0)?)),
        }
    }
}

fn not_scalar(name: &str, what: &str) -> Error {
    Error::new(format!(
        "`{name}::value_and_grad` and `{name}::grad` need one scalar output, but {what}: use `{name}::vjp` and give a seed"
    ))
}
