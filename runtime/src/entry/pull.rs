//! A forward pass that was run: what turns seeds into cotangents.

use crate::differentiable::{Differentiable, Leaf, LeafKind, Leaves, Number, Place, Source};
use crate::engine::Run;
use crate::error::Error;
use std::sync::{Mutex, PoisonError};
use tch::Tensor;

/// The run, and the shape that cotangents have.
pub struct Pull<C> {
    name: String,
    run: Run,
    /// A cotangent in which every leaf is "none": `C` need not be `Sync`, and a pullback is.
    shape: Mutex<C>,
    /// Owner and type of each output leaf.
    outputs: Vec<(usize, LeafKind)>,
    /// The result is `None` or `Err`, so that its seed has no effect.
    absent: bool,
}

impl<C> std::fmt::Debug for Pull<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the pullback of `{}`", self.name)
    }
}

impl<C: Differentiable<Cotangent = C>> Pull<C> {
    pub(super) fn new(name: String, run: Run, shape: C, outputs: &[Leaf], absent: bool) -> Pull<C> {
        let outputs = outputs.iter().map(|leaf| (leaf.param, leaf.place.kind())).collect();
        Pull {
            name,
            run,
            shape: Mutex::new(shape),
            outputs,
            absent,
        }
    }

    /// The cotangents for the seed whose leaves `seed` lists: those of the result as [`Leaf::RETURN`], the others by
    /// parameter.
    pub fn call(&self, seed: impl FnOnce(&mut Leaves)) -> Result<C, Error> {
        let mut leaves = Leaves::default();
        seed(&mut leaves);
        let mut leaves = leaves.into_vec();
        if self.absent {
            leaves.retain(|leaf| leaf.param != Leaf::RETURN);
        }
        let given = leaves.iter().map(|leaf| (leaf.param, leaf.place.kind()));
        if !given.eq(self.outputs.iter().copied()) {
            return Err(Error::new(format!(
                "the seed of `{}` has not the structure of its output: the seed is made of {}, the output of {}",
                self.name,
                describe(leaves.iter().map(|leaf| leaf.place.kind())),
                describe(self.outputs.iter().map(|(_, kind)| *kind)),
            )));
        }
        self.pull(leaves.iter().map(|leaf| read(leaf.place)).collect())
    }

    /// The cotangents for a seed of one on a result that is one number.
    pub(super) fn call_with_one<R: Differentiable>(&self, result: &R) -> Result<C, Error> {
        let mut leaves = Leaves::default();
        leaves.of(Leaf::RETURN, result);
        let leaves = leaves.into_vec();
        let one = match leaves.as_slice() {
            [] if self.absent => None,
            [leaf] => Some(self.one(leaf.place)?),
            _ => return Err(self.not_scalar(&format!("it is made of {} tensors and floats", leaves.len()))),
        };
        let others = self
            .outputs
            .iter()
            .skip(leaves.len())
            .map(|(_, kind)| Number::none(*kind));
        self.pull(one.into_iter().chain(others).collect())
    }

    fn one(&self, place: Place) -> Result<Number, Error> {
        match place {
            Place::F64(_) => Ok(Number::F64(1.0)),
            Place::F32(_) => Ok(Number::F32(1.0)),
            Place::Tensor(tensor) => {
                // SAFETY: the leaf of a result that is borrowed.
                let tensor = unsafe { &*tensor };
                if !tensor.defined() {
                    return Err(self.not_scalar("it is undefined"));
                }
                if tensor.numel() != 1 {
                    return Err(self.not_scalar(&format!("its shape is {:?}", tensor.size())));
                }
                Ok(Number::Tensor(
                    tch::no_grad(|| tensor.f_ones_like()).map_err(Error::from)?,
                ))
            }
        }
    }

    fn not_scalar(&self, what: &str) -> Error {
        Error::new(format!(
            "`{0}::value_and_grad` and `{0}::grad` need one scalar output, but {what}: use `{0}::vjp` and give a seed",
            self.name
        ))
    }

    fn pull(&self, seeds: Vec<Number>) -> Result<C, Error> {
        let numbers = self.run.pullback(seeds)?;
        let shape = self.shape.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(shape.cotangent(&mut Source::Numbers(numbers.into_iter())))
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

fn describe(kinds: impl Iterator<Item = LeafKind>) -> String {
    let names: Vec<&str> = kinds
        .map(|kind| match kind {
            LeafKind::Tensor => "Tensor",
            LeafKind::F64 => "f64",
            LeafKind::F32 => "f32",
        })
        .collect();
    format!("({})", names.join(", "))
}
