//! Result types by running an op on zeros.

use super::tensor::Tensor;
use super::{EvalArg, InterpError, Value, eval_op};
use crate::differentiate::ShapeOracle;
use crate::ir::{self, Arg, TensorType, Type};
use crate::ops::{Op, ShapeError};

/// Knows the result types of every op that the interpreter has: it runs the op on zeros of the arguments' types.
pub struct Shapes;

impl ShapeOracle for Shapes {
    fn infer(&self, op: Op, args: &[Arg], types: &dyn Fn(ir::Value) -> Type) -> Result<Vec<TensorType>, ShapeError> {
        let refused = |e: InterpError| ShapeError(e.to_string());
        let args = args
            .iter()
            .map(|a| super::run::fill(a, &|v| zero(&types(v))))
            .collect::<Result<Vec<EvalArg>, _>>()
            .map_err(refused)?;
        eval_op(op, &args)
            .map_err(refused)?
            .into_iter()
            .map(|v| match v {
                Value::Tensor(t) => Ok(t.ty()),
                other => Err(ShapeError(format!("`{op}` gives {other:?}, not a tensor"))),
            })
            .collect()
    }
}

fn zero(ty: &Type) -> Result<Value, InterpError> {
    match ty {
        Type::Tensor(Some(t)) if !t.kind.is_complex() => Ok(Tensor::full(t.kind, &t.shape, 0.0).into()),
        Type::Int(_) => Ok(Value::Int(0)),
        Type::Float(_) => Ok(Value::Float(0.0)),
        other => Err(InterpError::invalid(format!("{other:?} has no zero"))),
    }
}
