//! Shapes of ops that have no shape rule of ours: LibTorch's own, on tensors without data.

use super::call_op;
use crate::torch::{shim, take_error};
use cotangent_graph::differentiate::ShapeOracle;
use cotangent_graph::ir::{Arg, Kind, TensorType, Type, Value};
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
    let kind = tch_kind(t.kind).ok_or_else(|| format!("no tensors of kind {}", t.kind.name()))?;
    Tensor::f_zeros(&t.shape, (kind, Device::Cpu)).map_err(|e| e.to_string())
}

fn type_of(x: &Tensor) -> Result<TensorType, String> {
    if !x.defined() {
        return Err("a result is undefined".to_owned());
    }
    if x.is_sparse() {
        return Err("a result is sparse".to_owned());
    }
    // SAFETY: `x` is a valid handle.
    let number = unsafe { torch_sys::at_scalar_type(x.as_ptr().cast_mut()) };
    let kind = Kind::from_number(i64::from(number)).ok_or("a result is of a kind that Cotangent does not know")?;
    Ok(TensorType::new(kind, x.size()))
}

/// The kind in tch's terms.
fn tch_kind(kind: Kind) -> Option<tch::Kind> {
    Some(match kind {
        Kind::U8 => tch::Kind::Uint8,
        Kind::I8 => tch::Kind::Int8,
        Kind::I16 => tch::Kind::Int16,
        Kind::I32 => tch::Kind::Int,
        Kind::I64 => tch::Kind::Int64,
        Kind::F16 => tch::Kind::Half,
        Kind::F32 => tch::Kind::Float,
        Kind::F64 => tch::Kind::Double,
        Kind::C32 => tch::Kind::ComplexHalf,
        Kind::C64 => tch::Kind::ComplexFloat,
        Kind::C128 => tch::Kind::ComplexDouble,
        Kind::Bool => tch::Kind::Bool,
        Kind::BF16 => tch::Kind::BFloat16,
    })
}
