//! Arguments of an operator as values of the function's parameter types.

use super::super::function::Description;
use super::signature::{Signature, Takes};
use crate::differentiable::{Leaf, Place};
use crate::torch::operators::{ABSENT, Value};
use crate::torch::{Handle, Raw};
use tch::Tensor;

/// One argument. Each value lies on the heap, so that addresses stay.
enum Argument {
    Tensor(Box<Tensor>, Box<*const Tensor>),
    Absent(Box<Option<&'static Tensor>>),
    Tensors(Box<[Tensor]>, Box<*const [Tensor]>),
    TensorRefs(
        Box<[Tensor]>,
        #[expect(dead_code, reason = "the slice points into it")] Box<[*const Tensor]>,
        Box<*const [*const Tensor]>,
    ),
    F64(Box<f64>),
    F32(Box<f32>),
    I64(Box<i64>),
    I32(Box<i32>),
    Usize(Box<usize>),
    Bool(Box<bool>),
}

/// The arguments of one call.
pub(super) struct Arguments(Vec<Argument>);

impl Arguments {
    /// # Safety
    /// The handles are valid.
    pub(super) unsafe fn new(signature: &Signature, values: &[Value]) -> Result<Self, String> {
        let args = signature.params.iter().zip(values).map(|((name, takes), value)| {
            // SAFETY: the caller's promise.
            unsafe { argument(*takes, value) }.map_err(|e| format!("`{name}` {e}"))
        });
        Ok(Self(args.collect::<Result<_, _>>()?))
    }

    /// Where each value lies. References and slices have the layout of raw pointers.
    pub(super) fn addresses(&self) -> Vec<*const ()> {
        fn at<T>(value: &T) -> *const () {
            std::ptr::from_ref(value).cast()
        }
        let address = |a: &Argument| match a {
            Argument::Tensor(_, reference) => at(&**reference),
            Argument::Absent(none) => at(&**none),
            Argument::Tensors(_, slice) => at(&**slice),
            Argument::TensorRefs(_, _, slice) => at(&**slice),
            Argument::F64(x) => at(&**x),
            Argument::F32(x) => at(&**x),
            Argument::I64(i) => at(&**i),
            Argument::I32(i) => at(&**i),
            Argument::Usize(i) => at(&**i),
            Argument::Bool(b) => at(&**b),
        };
        self.0.iter().map(address).collect()
    }

    /// The leaves of the differentiated parameters.
    pub(super) fn leaves(&self, description: &Description) -> Vec<Leaf> {
        let mut leaves = vec![];
        for (param, (argument, described)) in self.0.iter().zip(&description.params).enumerate() {
            let mut push = |place| leaves.push(Leaf { param, place });
            match argument {
                _ if !described.wrt => {}
                Argument::Tensor(t, _) => push(Place::Tensor(&**t)),
                Argument::Tensors(ts, _) | Argument::TensorRefs(ts, ..) => {
                    ts.iter().for_each(|t| push(Place::Tensor(t)))
                }
                Argument::F64(x) => push(Place::F64(&**x)),
                Argument::F32(x) => push(Place::F32(&**x)),
                _ => {}
            }
        }
        leaves
    }
}

/// # Safety
/// The handles are valid.
unsafe fn argument(takes: Takes, value: &Value) -> Result<Argument, String> {
    // SAFETY: the caller's promise.
    let tensor = |raw: Raw| unsafe { Handle::share_raw(raw) }.into_tensor();
    let list = || -> Box<[Tensor]> {
        if value.count == 0 {
            return Box::default();
        }
        // SAFETY: the shim passes so many handles.
        let raws = unsafe { std::slice::from_raw_parts(value.list, value.count as usize) };
        raws.iter().map(|raw| tensor(*raw)).collect()
    };
    let integer = value.integer;
    Ok(match takes {
        Takes::OptTensor if value.tag == ABSENT => Argument::Absent(Box::new(None)),
        Takes::Tensor | Takes::OptTensor => {
            let tensor = Box::new(tensor(value.tensor));
            let reference = Box::new(&raw const *tensor);
            Argument::Tensor(tensor, reference)
        }
        Takes::Tensors => {
            let tensors = list();
            let slice = Box::new(&raw const *tensors);
            Argument::Tensors(tensors, slice)
        }
        Takes::TensorRefs => {
            let tensors = list();
            let refs: Box<[*const Tensor]> = tensors.iter().map(|t| &raw const *t).collect();
            let slice = Box::new(&raw const *refs);
            Argument::TensorRefs(tensors, refs, slice)
        }
        Takes::F64 => Argument::F64(Box::new(value.real)),
        Takes::F32 => Argument::F32(Box::new(value.real as f32)),
        Takes::I64 => Argument::I64(Box::new(integer)),
        Takes::I32 => Argument::I32(Box::new(fits(integer)?)),
        Takes::Usize => Argument::Usize(Box::new(fits(integer)?)),
        Takes::Bool => Argument::Bool(Box::new(integer != 0)),
    })
}

fn fits<T: TryFrom<i64>>(integer: i64) -> Result<T, String> {
    T::try_from(integer).map_err(|_| format!("cannot be {integer}"))
}
