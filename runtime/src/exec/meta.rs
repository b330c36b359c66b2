//! Shapes of ops that have no shape rule of ours: LibTorch's own, on tensors without data.

use super::call_op;
use crate::torch::{kind, shim, take_error};
use cotangent_graph::differentiate::ShapeOracle;
use cotangent_graph::ir::{Arg, TensorType, Type, Value};
use cotangent_graph::ops::{Op, ShapeError};
use std::collections::HashMap;
use tch::{Device, Tensor};
use torch_sys::C_tensor;

/// Asks LibTorch: on the Meta device, and where an op does not know that device, on made-up values. LibTorch's
/// generator is left as it was.
pub struct Meta;

impl ShapeOracle for Meta {
    fn infer(&self, op: Op, args: &[Arg], types: &dyn Fn(Value) -> Type) -> Result<Vec<TensorType>, ShapeError> {
        if op.facts.dynamic_shape {
            return Err(ShapeError(format!(
                "the shape of `{op}` depends on values, not only on shapes"
            )));
        }
        let mut values = vec![];
        args.iter().for_each(|a| a.for_each_value(&mut |v| values.push(v)));
        let on = |make: &dyn Fn(&TensorType) -> Result<Tensor, String>| -> Result<Vec<TensorType>, String> {
            let mut tensors = HashMap::new();
            for v in &values {
                if let Type::Tensor(Some(t)) = types(*v) {
                    tensors.insert(*v, make(&t)?);
                }
            }
            call_op(op, args, &|v| tensors.get(&v))?.iter().map(type_of).collect()
        };
        if let Ok(types) = on(&meta_tensor) {
            return Ok(types);
        }
        let _restore = op.facts.random.then(Generator::keep);
        // Zeros are indices and sizes that fit. Some ops want weights that do not vanish, or a definite matrix.
        on(&zeros).or_else(|message| on(&ones).or_else(|_| on(&identities)).map_err(|_| ShapeError(message)))
    }
}

fn meta_tensor(t: &TensorType) -> Result<Tensor, String> {
    let rank = i32::try_from(t.rank()).map_err(|e| e.to_string())?;
    // SAFETY: the shape is `rank` long; a non-null result is a fresh handle.
    unsafe {
        let raw = shim::cotangent_meta_tensor(t.shape.as_ptr(), rank, t.kind as i32);
        match raw.is_null() {
            true => Err(take_error().unwrap_or_default()),
            false => Ok(Tensor::from_ptr(raw)),
        }
    }
}

fn zeros(t: &TensorType) -> Result<Tensor, String> {
    Tensor::f_zeros(&t.shape, options(t)).map_err(|e| e.to_string())
}

fn ones(t: &TensorType) -> Result<Tensor, String> {
    Tensor::f_ones(&t.shape, options(t)).map_err(|e| e.to_string())
}

fn options(t: &TensorType) -> (tch::Kind, Device) {
    (kind::to_tch(t.kind), Device::Cpu)
}

/// Identity matrices, where the tensor is square.
fn identities(t: &TensorType) -> Result<Tensor, String> {
    match t.shape[..] {
        [.., m, n] if m == n => {
            let one = Tensor::f_eye(n, options(t)).and_then(|one| one.f_expand(&t.shape, false));
            one.and_then(|one| one.f_contiguous()).map_err(|e| e.to_string())
        }
        _ => ones(t),
    }
}

/// Puts LibTorch's generator back when dropped.
struct Generator(*mut C_tensor);

impl Generator {
    fn keep() -> Self {
        // SAFETY: no precondition; null on failure.
        Self(unsafe { shim::cotangent_generator_state() })
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the state is ours to give back.
            unsafe { shim::cotangent_generator_restore(self.0) };
        }
    }
}

fn type_of(x: &Tensor) -> Result<TensorType, String> {
    if !x.defined() {
        return Err("a result is undefined".to_owned());
    }
    if x.is_sparse() {
        return Err("a result is sparse".to_owned());
    }
    let kind = kind::of(x).ok_or("a result is of a kind that Cotangent does not know")?;
    Ok(TensorType::new(kind, x.size()))
}
