//! Activation functions and their derivatives.

use super::EvalArg;
use super::args::Kernel::{self, One};
use super::args::{Args, Out};
use super::elementwise::{common, float, larger, map, sigmoid, smaller, zip};
use super::pieces::join;
use super::shape::part;
use super::tensor::Tensor;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI, FRAC_2_SQRT_PI};

pub(super) const OPS: &[(&str, Kernel)] = &[
    (
        "gelu",
        One(|a| float(a, if tanh_form(a, 1)? { gelu_tanh } else { gelu })),
    ),
    (
        "gelu_backward",
        One(|a| pull(a, if tanh_form(a, 2)? { gelu_tanh_slope } else { gelu_slope })),
    ),
    ("silu", One(|a| float(a, |x| x * sigmoid(x)))),
    ("silu_backward", One(|a| pull(a, silu_slope))),
    ("mish", One(|a| float(a, |x| x * softplus(x).tanh()))),
    ("mish_backward", One(|a| pull(a, mish_slope))),
    ("tanh_backward", One(|a| pull(a, |y| 1.0 - y * y))),
    ("sigmoid_backward", One(|a| pull(a, |y| (1.0 - y) * y))),
    ("threshold_backward", One(threshold_backward)),
    ("leaky_relu", One(|a| float(a, |x| if x > 0.0 { x } else { x * 0.01 }))),
    ("leaky_relu_backward", One(leaky_relu_backward)),
    ("elu", One(|a| float(a, |x| if x > 0.0 { x } else { x.exp_m1() }))),
    ("elu_backward", One(elu_backward)),
    (
        "softplus",
        One(|a| float(a, |x| if x > 20.0 { x } else { x.exp().ln_1p() })),
    ),
    ("softplus_backward", One(softplus_backward)),
    ("hardtanh", One(|a| float(a, |x| clamp(x, -1.0, 1.0)))),
    ("hardtanh_backward", One(hardtanh_backward)),
    ("relu6", One(|a| float(a, |x| clamp(x, 0.0, 6.0)))),
    ("hardswish", One(|a| float(a, |x| x * clamp(x + 3.0, 0.0, 6.0) / 6.0))),
    ("hardswish_backward", One(|a| pull(a, hardswish_slope))),
    ("hardsigmoid", One(|a| float(a, |x| clamp(x + 3.0, 0.0, 6.0) / 6.0))),
    (
        "log_sigmoid",
        One(|a| float(a, |x| x.min(0.0) - (-x.abs()).exp().ln_1p())),
    ),
    ("log_sigmoid_backward", One(|a| pull(a, |x| sigmoid(-x)))),
    ("glu", One(glu)),
    ("glu_backward", One(glu_backward)),
    ("prelu", One(prelu)),
    ("clamp", One(|a| bounded(a, Some(1), Some(2)))),
    ("clamp_tensor", One(|a| bounded(a, Some(1), Some(2)))),
    ("clip", One(|a| bounded(a, Some(1), Some(2)))),
    ("clip_tensor", One(|a| bounded(a, Some(1), Some(2)))),
    ("clamp_min", One(|a| bounded(a, Some(1), None))),
    ("clamp_min_tensor", One(|a| bounded(a, Some(1), None))),
    ("clamp_max", One(|a| bounded(a, None, Some(1)))),
    ("clamp_max_tensor", One(|a| bounded(a, None, Some(1)))),
];

fn tanh_form(a: &Args<'_>, i: usize) -> Out<bool> {
    match a.text(i)? {
        "none" => Ok(false),
        "tanh" => Ok(true),
        other => a.invalid(format!("approximate must be none or tanh, not {other}")),
    }
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + libm::erf(x * FRAC_1_SQRT_2))
}

fn gelu_slope(x: f64) -> f64 {
    let density = (-0.5 * x * x).exp() * FRAC_2_SQRT_PI * FRAC_1_SQRT_2 * 0.5;
    0.5 * (1.0 + libm::erf(x * FRAC_1_SQRT_2)) + x * density
}

const GELU_CUBIC: f64 = 0.044_715;

fn gelu_tanh(x: f64) -> f64 {
    0.5 * x * (1.0 + (FRAC_2_PI.sqrt() * (x + GELU_CUBIC * x * x * x)).tanh())
}

fn gelu_tanh_slope(x: f64) -> f64 {
    let beta = FRAC_2_PI.sqrt();
    let t = (beta * (x + GELU_CUBIC * x * x * x)).tanh();
    0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * beta * (1.0 + 3.0 * GELU_CUBIC * x * x)
}

fn silu_slope(x: f64) -> f64 {
    let s = sigmoid(x);
    s * (1.0 + x * (1.0 - s))
}

fn softplus(x: f64) -> f64 {
    x.exp().ln_1p()
}

fn mish_slope(x: f64) -> f64 {
    let t = softplus(x).tanh();
    t + x * sigmoid(x) * (1.0 - t * t)
}

/// Zero below -3, one from 3 on.
fn hardswish_slope(x: f64) -> f64 {
    match x {
        _ if x <= -3.0 => 0.0,
        _ if x < 3.0 => x / 3.0 + 0.5,
        _ => 1.0,
    }
}

/// NaN stays NaN.
fn clamp(x: f64, low: f64, high: f64) -> f64 {
    smaller(larger(x, low), high)
}

/// `f` of gradient and point, in their common kind.
fn with_grad(a: &Args<'_>, grad: usize, point: usize, f: impl Fn(f64, f64) -> f64) -> Out<Tensor> {
    let (kind, _, xs) = common(&[a.operand(grad)?, a.operand(point)?])?;
    Ok(zip(kind, &xs[0], &xs[1], f))
}

/// Gradient times the slope at the point.
fn pull(a: &Args<'_>, slope: fn(f64) -> f64) -> Out<Tensor> {
    with_grad(a, 0, 1, |g, x| g * slope(x))
}

/// A gradient that is cut off, not multiplied by zero; NaN passes it.
fn threshold_backward(a: &Args<'_>) -> Out<Tensor> {
    let threshold = a.float(2)?;
    with_grad(a, 0, 1, |g, x| if x <= threshold { 0.0 } else { g })
}

fn leaky_relu_backward(a: &Args<'_>) -> Out<Tensor> {
    let slope = a.float(2)?;
    with_grad(a, 0, 1, |g, x| if x > 0.0 { g } else { g * slope })
}

fn hardtanh_backward(a: &Args<'_>) -> Out<Tensor> {
    let (low, high) = (a.float(2)?, a.float(3)?);
    // LibTorch's own result for NaN depends on where in the tensor it stands.
    if a.tensor(1)?.to_f64().iter().any(|x| x.is_nan()) {
        return a.not_interpreted();
    }
    with_grad(a, 0, 1, |g, x| if x <= low || x >= high { 0.0 } else { g })
}

fn elu_backward(a: &Args<'_>) -> Out<Tensor> {
    let (alpha, scale, input_scale) = (a.float(1)?, a.float(2)?, a.float(3)?);
    let is_result = a.flag(4)?;
    with_grad(a, 0, 5, |g, x| match x <= 0.0 {
        true if is_result => g * input_scale * (x + alpha * scale),
        true => g * input_scale * alpha * scale * (x * input_scale).exp(),
        false => g * scale,
    })
}

fn softplus_backward(a: &Args<'_>) -> Out<Tensor> {
    let (beta, threshold) = (a.float(2)?, a.float(3)?);
    with_grad(
        a,
        0,
        1,
        |g, x| if x * beta > threshold { g } else { g * sigmoid(x * beta) },
    )
}

/// The two halves of a tensor along a dimension.
fn halves(a: &Args<'_>, i: usize, dim_at: usize) -> Out<(Tensor, Tensor, usize)> {
    let x = a.tensor(i)?;
    let d = a.dim(dim_at, x.rank())?;
    let Some(n) = x.shape().get(d).copied().filter(|n| n % 2 == 0) else {
        return a.invalid("needs a dimension of even extent");
    };
    Ok((part(x, d, 0, n / 2, 1), part(x, d, n / 2, n / 2, 1), d))
}

fn glu(a: &Args<'_>) -> Out<Tensor> {
    let (x, gate, _) = halves(a, 0, 1)?;
    Ok(zip(x.kind(), &x, &gate, |x, g| x * sigmoid(g)))
}

fn glu_backward(a: &Args<'_>) -> Out<Tensor> {
    let (x, gate, d) = halves(a, 1, 2)?;
    let open = map(&gate, sigmoid);
    let g = a.tensor(0)?.cast(x.kind());
    let first = zip(x.kind(), &g, &open, |g, s| g * s);
    let slope = zip(x.kind(), &x, &open, |x, s| x * s * (1.0 - s));
    join(a, vec![first, zip(x.kind(), &g, &slope, |g, s| g * s)], d as i64)
}

fn prelu(a: &Args<'_>) -> Out<Tensor> {
    let (x, w) = (a.tensor(0)?, a.tensor(1)?);
    let mut shape = vec![1; x.rank()];
    if w.numel() > 1 {
        match shape.get_mut(1) {
            Some(n) => *n = w.numel() as i64,
            None => return a.invalid("a weight per channel needs a channel dimension"),
        }
    }
    let w = w.reshape(&shape)?.expand(x.shape())?;
    Ok(zip(x.kind(), x, &w, |x, w| if x > 0.0 { x } else { w * x }))
}

/// Clamped between the bounds in these positions; where they cross, the upper one wins.
fn bounded(a: &Args<'_>, low: Option<usize>, high: Option<usize>) -> Out<Tensor> {
    let present = |i: Option<usize>| i.filter(|i| a.args[*i] != EvalArg::None);
    let (low, high) = (present(low), present(high));
    let operands = [Some(0), low, high].into_iter().flatten();
    let (kind, shape, xs) = common(&operands.map(|i| a.operand(i)).collect::<Out<Vec<_>>>()?)?;
    let mut bounds = xs[1..].iter();
    let low = low.and_then(|_| bounds.next());
    let high = high.and_then(|_| bounds.next());
    if kind.is_float() {
        let mut out = xs[0].clone();
        out = low.map_or(out.clone(), |b| zip(kind, &out, b, larger));
        out = high.map_or(out.clone(), |b| zip(kind, &out, b, smaller));
        return Ok(out);
    }
    let mut out = xs[0].to_i64();
    if let Some(b) = low {
        out.iter_mut().zip(b.to_i64()).for_each(|(x, b)| *x = (*x).max(b));
    }
    if let Some(b) = high {
        out.iter_mut().zip(b.to_i64()).for_each(|(x, b)| *x = (*x).min(b));
    }
    Ok(Tensor::from_i64(kind, &shape, out))
}
