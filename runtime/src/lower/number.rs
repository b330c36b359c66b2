//! Arithmetic of a tensor with a constant number.
//!
//! LibTorch wraps such a number in a tensor of double precision and converts that, in every call; the conversion takes
//! as long as the arithmetic on a small tensor. Where the tensor is of a plain float kind, the converted number is made
//! once, with the graph, and the call is the one that LibTorch itself goes on to.

use super::Scalar;
use cotangent_graph::ir::{Arg, Kind, Type, Value};
use cotangent_graph::ops::{Op, ParamKind};
use cotangent_graph::plan::Step;

/// Ops of a tensor and a number that are, in LibTorch, the op of two tensors with the number wrapped.
const WRAPPING: &[(&str, &str)] = &[
    ("add_scalar", "add"),
    ("add_scalar_", "add_"),
    ("div_scalar", "div"),
    ("div_scalar_", "div_"),
    ("mul_scalar", "mul"),
    ("mul_scalar_", "mul_"),
    ("sub_scalar", "sub"),
    ("sub_scalar_", "sub_"),
];

/// The op of two tensors that the step may call instead, and its operands.
pub(super) fn as_tensor(step: &Step, types: &[Type]) -> Option<(Op, Value, Scalar)> {
    let (_, op) = WRAPPING.iter().find(|(name, _)| *name == step.op.name)?;
    let ([x, number], [_, param]) = (step.args.as_slice(), step.op.params.as_slice()) else {
        return None;
    };
    let Arg::Value(x) = x else { return None };
    let Type::Tensor(Some(ty)) = &types[x.index()] else {
        return None;
    };
    let value = exact(number)?;
    let plain = matches!(ty.kind, Kind::F32 | Kind::F64) && param.kind == ParamKind::Scalar;
    plain.then(|| (Op::named(op), *x, Scalar::Tensor(value, ty.kind)))
}

/// A constant that a double holds: beyond, a number would be rounded twice on its way to single precision.
pub(super) fn exact(number: &Arg) -> Option<f64> {
    match number {
        Arg::Float(value) => Some(*value),
        Arg::Int(value) if value.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS => Some(*value as f64),
        _ => None,
    }
}
