//! Derivatives that users wrote, as programs over tensors call them.

use crate::differentiable::{Differentiable, Leaf, Leaves, Number, Place, Source};
use crate::entry::{Callable, item};
use std::sync::{Mutex, PoisonError};

/// A backward half with what it needs.
pub(crate) trait Backward: Send + Sync {
    /// One cotangent per leaf of the differentiated parameters.
    fn call(&self, seeds: Vec<Number>) -> Vec<Number>;
}

struct Residuals<S, D, B> {
    /// Residuals, and a seed with the structure of the result.
    kept: Mutex<(S, D)>,
    backward: B,
}

impl<S, D, C, B> Backward for Residuals<S, D, (B, std::marker::PhantomData<fn() -> C>)>
where
    S: Clone + Send,
    D: Differentiable<Cotangent = D> + Send,
    C: Differentiable,
    B: Fn(S, D) -> C + Send + Sync,
{
    fn call(&self, seeds: Vec<Number>) -> Vec<Number> {
        let (residuals, seed) = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            (kept.0.clone(), kept.1.cotangent(&mut Source::numbers(seeds)))
        };
        let cotangents = (self.backward.0)(residuals, seed);
        let mut leaves = Leaves::default();
        leaves.of(0, &cotangents);
        leaves.into_vec().iter().map(|leaf| super::read(leaf.place)).collect()
    }
}

/// Runs a forward half.
///
/// # Safety
/// The functions exist, `args` holds addresses of arguments, and `out` is a place for the result.
pub(in crate::entry) unsafe fn forward<A, R, S, C, F, B>(args: *const *const (), out: *mut ()) -> Box<dyn Backward>
where
    R: Differentiable<Cotangent: Send + 'static>,
    S: Clone + Send + 'static,
    C: Differentiable + 'static,
    F: Callable<A, (R, S)> + Copy,
    B: Fn(S, R::Cotangent) -> C + Copy + Send + Sync + 'static,
{
    // SAFETY: `rule_of` was given the two functions, which have no bytes.
    let (forward, backward) = unsafe { (item::<F>(), item::<B>()) };
    // SAFETY: the caller passes addresses of the arguments.
    let (result, residuals) = unsafe { forward.call(args) };
    let seed = result.cotangent(&mut Source::Nothing);
    // SAFETY: `out` is a place for the result.
    unsafe { out.cast::<R>().write(result) };
    Box::new(Residuals {
        kept: Mutex::new((residuals, seed)),
        backward: (backward, std::marker::PhantomData::<fn() -> C>),
    })
}

/// The leaves of a result.
///
/// # Safety
/// There is a result.
pub(in crate::entry) unsafe fn outputs<R: Differentiable>(out: *const (), leaves: &mut Leaves) {
    // SAFETY: the caller has a result there.
    leaves.of(Leaf::RETURN, unsafe { &*out.cast::<R>() });
}

/// What a result is made of, for the evaluator.
pub(in crate::entry) unsafe extern "C-unwind" fn layout<R: Differentiable>(out: *const ()) {
    let mut leaves = Leaves::default();
    // SAFETY: the evaluator has a place for a result there, and follows no pointer in it.
    unsafe { outputs::<R>(out, &mut leaves) };
    for leaf in leaves.into_vec() {
        let (kind, place) = match leaf.place {
            Place::Tensor(at) => (0, at.cast()),
            Place::F64(at) => (1, at.cast()),
            Place::F32(at) => (2, at.cast()),
        };
        crate::entry::rule::cotangent_leaf(kind, place);
    }
}
