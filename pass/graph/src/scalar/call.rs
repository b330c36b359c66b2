//! Functions of the host program that scalars are passed to: libm and LLVM's intrinsics.

use super::{Number, ScalarType};
use std::fmt;

/// A libm function or an intrinsic: a row of the table below.
#[derive(Clone, Copy)]
pub struct Call(&'static str, Kind);

impl PartialEq for Call {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl Eq for Call {}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[derive(Clone, Copy)]
enum Kind {
    /// One float to one float: in double and in single precision.
    Float1(fn(f64) -> f64, fn(f32) -> f32),
    /// Two floats to one float.
    Float2(fn(f64, f64) -> f64, fn(f32, f32) -> f32),
    /// `fma`.
    Fma,
    /// `powi`: a float to an integer power.
    Powi,
    /// `fptosi.sat`, `fptoui.sat`: Rust's `as`.
    Saturate { signed: bool },
    /// Integers to one integer, at the width of the first.
    Int(fn(&[Number], u8) -> u64),
}

const CALLS: &[(&str, Kind)] = &[
    ("sqrt", Kind::Float1(f64::sqrt, f32::sqrt)),
    ("exp", Kind::Float1(f64::exp, f32::exp)),
    ("exp2", Kind::Float1(f64::exp2, f32::exp2)),
    ("expm1", Kind::Float1(f64::exp_m1, f32::exp_m1)),
    ("log", Kind::Float1(f64::ln, f32::ln)),
    ("log2", Kind::Float1(f64::log2, f32::log2)),
    ("log10", Kind::Float1(f64::log10, f32::log10)),
    ("log1p", Kind::Float1(f64::ln_1p, f32::ln_1p)),
    ("sin", Kind::Float1(f64::sin, f32::sin)),
    ("cos", Kind::Float1(f64::cos, f32::cos)),
    ("tan", Kind::Float1(f64::tan, f32::tan)),
    ("asin", Kind::Float1(f64::asin, f32::asin)),
    ("acos", Kind::Float1(f64::acos, f32::acos)),
    ("atan", Kind::Float1(f64::atan, f32::atan)),
    ("sinh", Kind::Float1(f64::sinh, f32::sinh)),
    ("cosh", Kind::Float1(f64::cosh, f32::cosh)),
    ("tanh", Kind::Float1(f64::tanh, f32::tanh)),
    ("asinh", Kind::Float1(f64::asinh, f32::asinh)),
    ("acosh", Kind::Float1(f64::acosh, f32::acosh)),
    ("atanh", Kind::Float1(f64::atanh, f32::atanh)),
    ("cbrt", Kind::Float1(f64::cbrt, f32::cbrt)),
    ("fabs", Kind::Float1(f64::abs, f32::abs)),
    ("floor", Kind::Float1(f64::floor, f32::floor)),
    ("ceil", Kind::Float1(f64::ceil, f32::ceil)),
    ("trunc", Kind::Float1(f64::trunc, f32::trunc)),
    ("round", Kind::Float1(f64::round, f32::round)),
    ("rint", Kind::Float1(f64::round_ties_even, f32::round_ties_even)),
    ("nearbyint", Kind::Float1(f64::round_ties_even, f32::round_ties_even)),
    ("roundeven", Kind::Float1(f64::round_ties_even, f32::round_ties_even)),
    ("stop_gradient", Kind::Float1(|x| x, |x| x)),
    ("pow", Kind::Float2(f64::powf, f32::powf)),
    ("atan2", Kind::Float2(f64::atan2, f32::atan2)),
    ("hypot", Kind::Float2(f64::hypot, f32::hypot)),
    ("copysign", Kind::Float2(f64::copysign, f32::copysign)),
    ("fmin", Kind::Float2(f64::min, f32::min)),
    ("minnum", Kind::Float2(f64::min, f32::min)),
    ("minimumnum", Kind::Float2(f64::min, f32::min)),
    ("fmax", Kind::Float2(f64::max, f32::max)),
    ("maxnum", Kind::Float2(f64::max, f32::max)),
    ("maximumnum", Kind::Float2(f64::max, f32::max)),
    ("fmod", Kind::Float2(|a, b| a % b, |a, b| a % b)),
    ("fma", Kind::Fma),
    ("fmuladd", Kind::Fma),
    ("powi", Kind::Powi),
    ("fptosi.sat", Kind::Saturate { signed: true }),
    ("fptoui.sat", Kind::Saturate { signed: false }),
    ("smax", Kind::Int(|x, w| x[0].signed(w).max(x[1].signed(w)) as u64)),
    ("smin", Kind::Int(|x, w| x[0].signed(w).min(x[1].signed(w)) as u64)),
    ("umax", Kind::Int(|x, _| x[0].bits.max(x[1].bits))),
    ("umin", Kind::Int(|x, _| x[0].bits.min(x[1].bits))),
    ("abs", Kind::Int(|x, w| x[0].signed(w).wrapping_abs() as u64)),
    ("ctpop", Kind::Int(|x, _| u64::from(x[0].bits.count_ones()))),
    (
        "ctlz",
        Kind::Int(|x, w| u64::from(x[0].bits.leading_zeros()) - (64 - u64::from(w))),
    ),
    (
        "cttz",
        Kind::Int(|x, w| u64::from(x[0].bits.trailing_zeros()).min(u64::from(w))),
    ),
    ("bswap", Kind::Int(|x, w| x[0].bits.swap_bytes() >> (64 - u32::from(w)))),
    ("usub.sat", Kind::Int(|x, _| x[0].bits.saturating_sub(x[1].bits))),
    (
        "uadd.sat",
        Kind::Int(|x, w| x[0].bits.saturating_add(x[1].bits).min(super::mask(w))),
    ),
];

impl Call {
    /// The function of that name, without float suffix; LLVM's prefix may stand before it.
    pub fn parse(name: &str) -> Option<Self> {
        let name = name.strip_prefix("llvm.").unwrap_or(name);
        let (name, kind) = CALLS.iter().find(|(n, _)| *n == name)?;
        Some(Self(name, *kind))
    }

    /// The result, of type `ty`.
    pub(super) fn evaluate(self, x: &[Number], ty: ScalarType) -> Option<Number> {
        let single = ty == ScalarType::Float(32);
        let f = |i: usize| x[i].as_float();
        let g = |i: usize| x[i].as_float() as f32;
        let v = match self.1 {
            Kind::Float1(_, call) if single => f64::from(call(g(0))),
            Kind::Float1(call, _) => call(f(0)),
            Kind::Float2(_, call) if single => f64::from(call(g(0), g(1))),
            Kind::Float2(call, _) => call(f(0), f(1)),
            Kind::Fma if single => f64::from(g(0).mul_add(g(1), g(2))),
            Kind::Fma => f(0).mul_add(f(1), f(2)),
            Kind::Powi if single => f64::from(g(0).powi(exponent(x[1])?)),
            Kind::Powi => f(0).powi(exponent(x[1])?),
            Kind::Saturate { signed } => return Some(saturate(f(0), signed, ty)),
            Kind::Int(call) => return Some(Number::new(call(x, x[0].ty.width()), ty)),
        };
        Some(Number::float(v, ty))
    }
}

/// The power of `powi`. A constant arrives in the type of the base.
fn exponent(x: Number) -> Option<i32> {
    match x.ty {
        ScalarType::Int(_) => i32::try_from(x.as_int()).ok(),
        ScalarType::Float(_) => Some(x.as_float() as i32),
    }
}

fn saturate(v: f64, signed: bool, ty: ScalarType) -> Number {
    let w = ty.width();
    if signed {
        let high = i64::MAX >> (64 - u32::from(w));
        Number::new((v as i64).clamp(-high - 1, high) as u64, ty)
    } else {
        Number::new((v as u64).min(super::mask(w)), ty)
    }
}
