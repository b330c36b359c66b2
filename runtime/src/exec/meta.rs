//! Shapes of ops that have no shape rule of ours: LibTorch's own, on tensors without data.

use super::call_op;
use crate::torch::{kind, shim, take_error};
use cotangent_graph::differentiate::ShapeOracle;
use cotangent_graph::ir::{Arg, TensorType, Type, Value};
use cotangent_graph::ops::{Op, ShapeError};
use std::collections::HashMap;
use tch::{Device, Tensor};

/// Asks LibTorch: on the Meta device, and where an op does not know that device, on zeros.
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
        match on(&meta_tensor) {
            // Running a random op for its shape would draw from the program's generator.
            Err(message) if !op.facts.random => on(&zeros).map_err(|_| ShapeError(message)),
            outcome => outcome.map_err(ShapeError),
        }
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
    Tensor::f_zeros(&t.shape, (kind::to_tch(t.kind), Device::Cpu)).map_err(|e| e.to_string())
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
