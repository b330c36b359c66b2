//! Arithmetic, comparisons and functions of one variable.

use super::args::Kernel::{self, One};
use super::args::{Args, Operand, Out};
use super::promote::{DEFAULT, broadcast_all, result_kind};
use super::tensor::{Data, Tensor};
use crate::ir::Kind;

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("add", One(add)),
    ("add_scalar", One(add)),
    ("sub", One(sub)),
    ("sub_scalar", One(sub)),
    ("rsub", One(rsub)),
    ("rsub_scalar", One(rsub)),
    ("mul", One(mul)),
    ("mul_scalar", One(mul)),
    ("multiply", One(mul)),
    ("multiply_scalar", One(mul)),
    ("div", One(div)),
    ("div_scalar", One(div)),
    ("divide", One(div)),
    ("true_divide", One(div)),
    ("maximum", One(maximum)),
    ("max_other", One(maximum)),
    ("minimum", One(minimum)),
    ("min_other", One(minimum)),
    ("pow", One(pow)),
    ("pow_scalar", One(pow)),
    ("pow_tensor_scalar", One(pow)),
    ("atan2", One(|a| float2(a, f64::atan2))),
    ("hypot", One(|a| float2(a, f64::hypot))),
    ("fmod", One(fmod)),
    ("fmod_tensor", One(fmod)),
    ("fmax", One(|a| arithmetic(&pair(a)?, f64::max, i64::max))),
    ("fmin", One(|a| arithmetic(&pair(a)?, f64::min, i64::min))),
    ("remainder", One(remainder)),
    ("remainder_tensor", One(remainder)),
    ("addcmul", One(|a| three(a, |x, y, z| x + y * z))),
    ("addcdiv", One(|a| three(a, |x, y, z| x + y / z))),
    ("lerp", One(|a| three(a, lerp))),
    ("lerp_tensor", One(|a| three(a, lerp))),
    ("eq", One(|a| compare(a, |x, y| x == y, |x, y| x == y))),
    ("eq_tensor", One(|a| compare(a, |x, y| x == y, |x, y| x == y))),
    ("ne", One(|a| compare(a, |x, y| x != y, |x, y| x != y))),
    ("ne_tensor", One(|a| compare(a, |x, y| x != y, |x, y| x != y))),
    ("gt", One(|a| compare(a, |x, y| x > y, |x, y| x > y))),
    ("gt_tensor", One(|a| compare(a, |x, y| x > y, |x, y| x > y))),
    ("ge", One(|a| compare(a, |x, y| x >= y, |x, y| x >= y))),
    ("ge_tensor", One(|a| compare(a, |x, y| x >= y, |x, y| x >= y))),
    ("lt", One(|a| compare(a, |x, y| x < y, |x, y| x < y))),
    ("lt_tensor", One(|a| compare(a, |x, y| x < y, |x, y| x < y))),
    ("le", One(|a| compare(a, |x, y| x <= y, |x, y| x <= y))),
    ("le_tensor", One(|a| compare(a, |x, y| x <= y, |x, y| x <= y))),
    ("logical_and", One(|a| logical(a, |x, y| x && y))),
    ("logical_or", One(|a| logical(a, |x, y| x || y))),
    ("logical_xor", One(|a| logical(a, |x, y| x != y))),
    ("neg", One(|a| same(a, |x| -x, i64::wrapping_neg))),
    ("abs", One(|a| same(a, f64::abs, i64::wrapping_abs))),
    ("sgn", One(|a| same(a, sign, i64::signum))),
    ("sign", One(|a| same(a, sign, i64::signum))),
    ("square", One(|a| same(a, |x| x * x, |i| i.wrapping_mul(i)))),
    ("relu", One(|a| same(a, relu, |i| i.max(0)))),
    ("floor", One(|a| same(a, f64::floor, |i| i))),
    ("ceil", One(|a| same(a, f64::ceil, |i| i))),
    ("round", One(|a| same(a, f64::round_ties_even, |i| i))),
    ("trunc", One(|a| same(a, f64::trunc, |i| i))),
    ("frac", One(|a| same(a, |x| x - x.trunc(), |i| i))),
    ("exp", One(|a| float(a, f64::exp))),
    ("exp2", One(|a| float(a, f64::exp2))),
    ("expm1", One(|a| float(a, f64::exp_m1))),
    ("log", One(|a| float(a, f64::ln))),
    ("log1p", One(|a| float(a, f64::ln_1p))),
    ("log2", One(|a| float(a, f64::log2))),
    ("log10", One(|a| float(a, f64::log10))),
    ("sqrt", One(|a| float(a, f64::sqrt))),
    ("rsqrt", One(|a| float(a, |x| 1.0 / x.sqrt()))),
    ("reciprocal", One(|a| float(a, |x| 1.0 / x))),
    ("sin", One(|a| float(a, f64::sin))),
    ("cos", One(|a| float(a, f64::cos))),
    ("tan", One(|a| float(a, f64::tan))),
    ("asin", One(|a| float(a, f64::asin))),
    ("acos", One(|a| float(a, f64::acos))),
    ("atan", One(|a| float(a, f64::atan))),
    ("sinh", One(|a| float(a, f64::sinh))),
    ("cosh", One(|a| float(a, f64::cosh))),
    ("asinh", One(|a| float(a, f64::asinh))),
    ("acosh", One(|a| float(a, f64::acosh))),
    ("atanh", One(|a| float(a, f64::atanh))),
    ("tanh", One(|a| float(a, f64::tanh))),
    ("erf", One(|a| float(a, libm::erf))),
    ("erfc", One(|a| float(a, libm::erfc))),
    ("sigmoid", One(|a| float(a, sigmoid))),
    ("logical_not", One(|a| test(a, |x| x == 0.0))),
    ("isnan", One(|a| test(a, f64::is_nan))),
    ("isinf", One(|a| test(a, f64::is_infinite))),
    ("isfinite", One(|a| test(a, f64::is_finite))),
];

/// The logistic function; `exp` overflows to infinity where it should.
pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// NaN stays NaN.
fn relu(x: f64) -> f64 {
    if x <= 0.0 { 0.0 } else { x }
}

fn sign(x: f64) -> f64 {
    f64::from(i8::from(x > 0.0) - i8::from(x < 0.0))
}

/// A function of the operand's own kind.
fn same(a: &Args<'_>, f: fn(f64) -> f64, i: fn(i64) -> i64) -> Out<Tensor> {
    let x = a.tensor(0)?;
    Ok(match x.data() {
        Data::Float(v) => Tensor::from_f64(x.kind(), x.shape(), v.iter().map(|x| f(*x)).collect()),
        Data::Int(v) => Tensor::from_i64(x.kind(), x.shape(), v.iter().map(|x| i(*x)).collect()),
    })
}

/// A function on floats; integers become the default kind first.
pub(super) fn float(a: &Args<'_>, f: impl Fn(f64) -> f64) -> Out<Tensor> {
    Ok(map(a.tensor(0)?, f))
}

/// `f` of every element; integers become the default kind first.
pub(super) fn map(x: &Tensor, f: impl Fn(f64) -> f64) -> Tensor {
    let x = x.cast(if x.kind().is_float() { x.kind() } else { DEFAULT });
    Tensor::from_f64(x.kind(), x.shape(), x.to_f64().into_iter().map(f).collect())
}

/// A predicate of every element.
fn test(a: &Args<'_>, f: impl Fn(f64) -> bool) -> Out<Tensor> {
    let x = a.tensor(0)?;
    Ok(Tensor::from_bool(x.shape(), x.to_f64().into_iter().map(f)))
}

/// Operands brought to one kind and shape.
pub(super) fn common(operands: &[Operand]) -> Out<(Kind, Vec<i64>, Vec<Tensor>)> {
    let kind = result_kind(operands);
    let shape = broadcast_all(operands.iter().map(|o| &o.tensor))?;
    let tensors = operands
        .iter()
        .map(|o| o.tensor.cast(kind).expand(&shape))
        .collect::<Out<_>>()?;
    Ok((kind, shape, tensors))
}

fn pair(a: &Args<'_>) -> Out<[Operand; 2]> {
    Ok([a.operand(0)?, a.operand(1)?])
}

/// Element by element, in the promoted kind.
fn arithmetic(operands: &[Operand; 2], f: fn(f64, f64) -> f64, i: fn(i64, i64) -> i64) -> Out<Tensor> {
    let (kind, shape, xs) = common(operands)?;
    Ok(match (xs[0].data(), xs[1].data()) {
        (Data::Int(x), Data::Int(y)) => {
            Tensor::from_i64(kind, &shape, x.iter().zip(y).map(|(x, y)| i(*x, *y)).collect())
        }
        _ => zip(kind, &xs[0], &xs[1], f),
    })
}

/// `f` of the elements of two tensors of one shape.
pub(super) fn zip(kind: Kind, x: &Tensor, y: &Tensor, f: impl Fn(f64, f64) -> f64) -> Tensor {
    let values = x.to_f64().into_iter().zip(y.to_f64()).map(|(x, y)| f(x, y)).collect();
    Tensor::from_f64(kind, x.shape(), values)
}

/// A function of two floats; integers become the default kind first.
fn float2(a: &Args<'_>, f: fn(f64, f64) -> f64) -> Out<Tensor> {
    let (kind, shape, xs) = common(&pair(a)?)?;
    let kind = if kind.is_float() { kind } else { DEFAULT };
    let values = xs[0]
        .to_f64()
        .into_iter()
        .zip(xs[1].to_f64())
        .map(|(x, y)| f(x, y))
        .collect();
    Ok(Tensor::from_f64(kind, &shape, values))
}

fn add(a: &Args<'_>) -> Out<Tensor> {
    arithmetic(&pair(a)?, |x, y| x + y, i64::wrapping_add)
}

fn sub(a: &Args<'_>) -> Out<Tensor> {
    let operands = pair(a)?;
    if operands.iter().any(|o| o.tensor.kind() == Kind::Bool) {
        return a.invalid("subtraction is not supported on booleans");
    }
    arithmetic(&operands, |x, y| x - y, i64::wrapping_sub)
}

fn rsub(a: &Args<'_>) -> Out<Tensor> {
    let [x, y] = pair(a)?;
    arithmetic(&[y, x], |x, y| x - y, i64::wrapping_sub)
}

fn mul(a: &Args<'_>) -> Out<Tensor> {
    arithmetic(&pair(a)?, |x, y| x * y, i64::wrapping_mul)
}

fn div(a: &Args<'_>) -> Out<Tensor> {
    float2(a, |x, y| x / y)
}

fn fmod(a: &Args<'_>) -> Out<Tensor> {
    arithmetic(&pair(a)?, |x, y| x % y, |x, y| x.checked_rem(y).unwrap_or(0))
}

/// The result has the sign of the divisor.
fn remainder(a: &Args<'_>) -> Out<Tensor> {
    let float = |x: f64, y: f64| x - y * (x / y).floor();
    let int = |x: i64, y: i64| match x.checked_rem(y) {
        Some(r) if r != 0 && (r < 0) != (y < 0) => r + y,
        r => r.unwrap_or(0),
    };
    arithmetic(&pair(a)?, float, int)
}

/// A function of three operands, on floats.
fn three(a: &Args<'_>, f: fn(f64, f64, f64) -> f64) -> Out<Tensor> {
    let (kind, shape, xs) = common(&[a.operand(0)?, a.operand(1)?, a.operand(2)?])?;
    let (y, z) = (xs[1].to_f64(), xs[2].to_f64());
    let values = xs[0].to_f64().into_iter().enumerate().map(|(i, x)| f(x, y[i], z[i]));
    Ok(Tensor::from_f64(kind, &shape, values.collect()))
}

/// Computed from the nearer end, so that both ends are exact.
fn lerp(x: f64, end: f64, weight: f64) -> f64 {
    match weight.abs() < 0.5 {
        true => x + weight * (end - x),
        false => end - (end - x) * (1.0 - weight),
    }
}

fn maximum(a: &Args<'_>) -> Out<Tensor> {
    arithmetic(&pair(a)?, larger, i64::max)
}

fn minimum(a: &Args<'_>) -> Out<Tensor> {
    arithmetic(&pair(a)?, smaller, i64::min)
}

/// The larger of two; NaN wins.
pub(super) fn larger(x: f64, y: f64) -> f64 {
    if x.is_nan() || x > y { x } else { y }
}

/// The smaller of two; NaN wins.
pub(super) fn smaller(x: f64, y: f64) -> f64 {
    if x.is_nan() || x < y { x } else { y }
}

fn pow(a: &Args<'_>) -> Out<Tensor> {
    let operands = pair(a)?;
    let negative = operands[1].tensor.to_f64().iter().any(|e| *e < 0.0);
    if operands[1].wrapped && negative && !result_kind(&operands).is_float() {
        return a.invalid("integers to negative integer powers are not allowed");
    }
    // LibTorch takes the root itself for a constant exponent: it differs at negative infinity.
    if operands[1].wrapped && operands[1].tensor.to_f64() == [0.5] {
        return float(a, f64::sqrt);
    }
    arithmetic(&operands, f64::powf, int_pow)
}

/// Integer power; a negative exponent gives 0 but for bases 1 and -1.
fn int_pow(base: i64, exponent: i64) -> i64 {
    match (base, exponent) {
        (_, e) if e >= 0 => base.wrapping_pow(u32::try_from(e).unwrap_or(u32::MAX)),
        (1, _) => 1,
        (-1, e) => {
            if e % 2 == 0 {
                1
            } else {
                -1
            }
        }
        _ => 0,
    }
}

fn compare(a: &Args<'_>, f: fn(f64, f64) -> bool, i: fn(i64, i64) -> bool) -> Out<Tensor> {
    let (_, shape, xs) = common(&pair(a)?)?;
    Ok(match (xs[0].data(), xs[1].data()) {
        (Data::Int(x), Data::Int(y)) => Tensor::from_bool(&shape, x.iter().zip(y).map(|(x, y)| i(*x, *y))),
        _ => {
            let (x, y) = (xs[0].to_f64(), xs[1].to_f64());
            Tensor::from_bool(&shape, x.into_iter().zip(y).map(|(x, y)| f(x, y)))
        }
    })
}

fn logical(a: &Args<'_>, f: fn(bool, bool) -> bool) -> Out<Tensor> {
    let shape = broadcast_all([a.tensor(0)?, a.tensor(1)?])?;
    let (x, y) = (a.tensor(0)?.expand(&shape)?, a.tensor(1)?.expand(&shape)?);
    Ok(Tensor::from_bool(
        &shape,
        x.to_bool().into_iter().zip(y.to_bool()).map(|(x, y)| f(x, y)),
    ))
}
