//! The result of a forward, for the entry points: what turns seeds into cotangents, or tangents into tangents.

use super::backward::Owner;
use super::code::Datum;
use super::mask::Mask;
use super::pass::Pass;
use crate::differentiable::{Leaf, LeafKind, Number};
use crate::error::Error;
use crate::torch::Handle;
use cotangent_graph::ir::Type;
use std::fmt;
use std::sync::Arc;

/// A forward pass that was run.
pub struct Run {
    name: Arc<str>,
    work: Work,
    /// The differentiated leaves: their type, and which active values they are.
    wrt: Vec<(LeafKind, Vec<usize>)>,
    /// For each output leaf, the output of the derivative that it is.
    seeds: Vec<Option<usize>>,
}

enum Work {
    /// The compiled function ran.
    Compiled {
        pass: Arc<Pass>,
        /// Addresses of what can be seeded, with the number of the output.
        places: Vec<(u64, usize)>,
    },
    /// The original function ran instead, because of this, and returned.
    Original { because: String },
}

impl Run {
    pub(super) fn compiled(
        name: Arc<str>,
        pass: Arc<Pass>,
        places: Vec<(u64, usize)>,
        wrt: Vec<(LeafKind, Vec<usize>)>,
    ) -> Self {
        Self {
            name,
            work: Work::Compiled { pass, places },
            wrt,
            seeds: vec![],
        }
    }

    pub(super) fn original(name: Arc<str>, because: String, wrt: &[Leaf]) -> Self {
        Self {
            name,
            work: Work::Original { because },
            wrt: wrt.iter().map(|leaf| (leaf.place.kind(), vec![])).collect(),
            seeds: vec![],
        }
    }

    /// Says which leaves the seeds belong to, in order. Their places are looked at now only.
    ///
    /// # Errors
    /// If the original function had to run and gave a result: its derivative is not known.
    pub fn outputs(&mut self, leaves: &[Leaf]) -> Result<(), Error> {
        match &mut self.work {
            Work::Compiled { places, .. } => {
                let output = |leaf: &Leaf| {
                    let at = leaf.place.address();
                    places.iter().rev().find(|(a, _)| *a == at).map(|(_, k)| *k)
                };
                self.seeds = leaves.iter().map(output).collect();
                *places = vec![];
                Ok(())
            }
            Work::Original { because } if leaves.iter().any(|l| l.param == Leaf::RETURN) => {
                Err(unexpected(&self.name, because))
            }
            Work::Original { .. } => Ok(()),
        }
    }

    /// One seed per output leaf in, one cotangent per differentiated leaf out.
    ///
    /// # Errors
    /// If a seed has not the shape and kind of its output, if a saved tensor was written to since, or in LibTorch.
    pub fn pullback(&self, given: Vec<Number>) -> Result<Vec<Number>, Error> {
        let Work::Compiled { pass, .. } = &self.work else {
            return Ok(nothing(&self.wrt));
        };
        let derivative = pass.derivative();
        let mut seeds: Vec<Option<Datum>> = (0..derivative.varies.len()).map(|_| None).collect();
        for (number, output) in given.into_iter().zip(&self.seeds) {
            let (Some(seed), Some(k)) = (seed(number), output) else {
                continue;
            };
            self.check("seed", "output", &seed, derivative.output(*k))?;
            seeds[*k] = Some(match (seeds[*k].take(), seed) {
                (None, seed) => seed,
                (Some(first), second) => add(first, second)?,
            });
        }
        let cotangents = pass.pullback(&seeds, &everything(pass), Owner::User);
        numbers(&self.wrt, cotangents?)
    }

    /// One cotangent per differentiated leaf, for a seed of one on the first output leaf. `one` makes that seed, if it is
    /// needed; `None` where there is nothing to seed. Uses up what the call saved.
    ///
    /// # Errors
    /// As [`Run::pullback`], and if `one` fails.
    pub fn pullback_of_one(self, one: Option<impl FnOnce() -> Result<Number, Error>>) -> Result<Vec<Number>, Error> {
        let output = self.seeds.first().copied().flatten();
        let (Work::Compiled { pass, .. }, Some(output), Some(one)) = (self.work, output, one) else {
            return Ok(nothing(&self.wrt));
        };
        let needs = everything(&pass);
        let pass = own(pass)?;
        let one = || seed(one()?).ok_or_else(|| Error::new("the seed of one is undefined"));
        numbers(&self.wrt, pass.pullback_of_one(output, needs, one)?)
    }

    /// Forward mode: one tangent per differentiated leaf in, one per output leaf out; `outputs` are the types of those.
    /// Uses up what the call saved.
    ///
    /// # Errors
    /// If a tangent has not the shape and kind of its argument, if an op has no forward mode, or in LibTorch.
    pub fn push(self, tangents: Vec<Number>, outputs: &[LeafKind]) -> Result<Vec<Number>, Error> {
        let Work::Compiled { pass, .. } = &self.work else {
            return Ok(outputs.iter().map(|kind| Number::none(*kind)).collect());
        };
        let mut moving: Vec<Option<Datum>> = (0..pass.active()).map(|_| None).collect();
        for (tangent, (_, active)) in tangents.into_iter().zip(&self.wrt) {
            let Some(tangent) = seed(tangent) else { continue };
            for i in active {
                if let Some(ty) = pass.input(*i) {
                    self.check("tangent", "argument", &tangent, ty)?;
                }
                moving[*i] = Some(tangent.share());
            }
        }
        let Work::Compiled { pass, .. } = self.work else {
            unreachable!("it was compiled just now")
        };
        let made = own(pass)?.push(&moving)?;
        let mut taken = Mask::default();
        let mut tangent = |k: usize| {
            let again = taken.has(k);
            taken.insert(k);
            match &made[k] {
                Some(Datum::Tensor(t)) if again => t.copy().map(Datum::Tensor),
                made => made.as_ref().map(Datum::share),
            }
        };
        let outputs = outputs.iter().zip(&self.seeds);
        Ok(outputs
            .map(|(kind, k)| number(*kind, k.and_then(&mut tangent)))
            .collect())
    }

    fn check(&self, what: &str, of: &str, seed: &Datum, ty: &Type) -> Result<(), Error> {
        match (seed, ty) {
            (Datum::Tensor(t), Type::Tensor(Some(ty))) if !t.is_like(ty) => Err(Error::new(format!(
                "the {what} of `{}` is [{}], but its {of} is of kind {} and shape {:?}",
                self.name,
                t.describe(),
                ty.kind.name(),
                ty.shape
            ))),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a run of `{}`", self.name)
    }
}

/// The compiled function failed, and the original did not: a mistake of ours.
pub(super) fn unexpected(name: &str, because: &str) -> Error {
    Error::new(format!(
        "internal error, please report it: the compiled form of `{name}` failed, and the function itself did not: {because}"
    ))
}

/// A seed, unless it is the undefined tensor.
fn seed(number: Number) -> Option<Datum> {
    match number {
        Number::Tensor(t) => Some(Handle::take(t)).filter(Handle::defined).map(Datum::Tensor),
        Number::F64(x) => Some(Datum::Float(x)),
        Number::F32(x) => Some(Datum::Float(x.into())),
    }
}

/// A derivative for a leaf of that type.
fn number(kind: LeafKind, datum: Option<Datum>) -> Number {
    match (kind, datum) {
        (_, Some(Datum::Tensor(t))) => Number::Tensor(t.into_tensor()),
        (LeafKind::F32, Some(Datum::Float(x))) => Number::F32(x as f32),
        (_, Some(Datum::Float(x))) => Number::F64(x),
        (kind, _) => Number::none(kind),
    }
}

/// The call, from its only owner.
fn own(pass: Arc<Pass>) -> Result<Pass, Error> {
    Arc::into_inner(pass).ok_or_else(|| Error::new("internal error, please report it: the call is in use elsewhere"))
}

/// All active values.
fn everything(pass: &Pass) -> Mask {
    Mask::of((0..pass.active()).map(|_| true))
}

/// What differentiated leaves get where no path leads from one to a seeded output.
fn nothing(wrt: &[(LeafKind, Vec<usize>)]) -> Vec<Number> {
    wrt.iter().map(|(kind, _)| Number::none(*kind)).collect()
}

/// What differentiated leaves get, from the cotangents of the active values that they are.
fn numbers(wrt: &[(LeafKind, Vec<usize>)], mut cotangents: Vec<Option<Datum>>) -> Result<Vec<Number>, Error> {
    let mut results = Vec::with_capacity(wrt.len());
    for (kind, active) in wrt {
        let mut total: Option<Datum> = None;
        for i in active {
            total = match (total, cotangents[*i].take()) {
                (Some(a), Some(b)) => Some(add(a, b)?),
                (a, b) => a.or(b),
            };
        }
        results.push(number(*kind, total));
    }
    Ok(results)
}

/// Two cotangents of one value.
pub(super) fn add(a: Datum, b: Datum) -> Result<Datum, Error> {
    match (a, b) {
        (Datum::Tensor(a), Datum::Tensor(b)) => {
            let sum = tch::no_grad(|| a.into_tensor().f_add(&b.into_tensor()))?;
            Ok(Datum::Tensor(Handle::take(sum)))
        }
        (Datum::Float(a), Datum::Float(b)) => Ok(Datum::Float(a + b)),
        _ => Err(Error::new(
            "internal error, please report it: a tensor's cotangent met a float's",
        )),
    }
}
