//! LibTorch's backward kernels as ops of their own: what the rules emit can be differentiated again.

use super::table;
use crate::ir::Arg;
use crate::ops::Rule::Elementwise;
use crate::ops::formula::{Formula, Term, grads, op, rule};
use crate::ops::shapes::tensors_pointwise;

table! {
    // d/dy (1 - y^2) = -2y
    "tanh_backward": tensors_pointwise, Elementwise(grads!(|m|
        0 => op!(tanh_backward(m.g(), m.x(1))),
        1 => m.g() * m.x(0) * (m.x(1) * -2.0))), "2x3 2x3";
    // d/dy y(1 - y) = 1 - 2y
    "sigmoid_backward": tensors_pointwise, Elementwise(grads!(|m|
        0 => op!(sigmoid_backward(m.g(), m.x(1))),
        1 => m.g() * m.x(0) * op!(rsub_scalar(m.x(1) * 2.0, 1)))), "2x3 2x3";
    "threshold_backward": tensors_pointwise, Elementwise(grads!(|m|
        0 => op!(threshold_backward(m.g(), m.x(1), m.arg(2))),
        1 => op!(zeros_like(m.x(1))))), "2x3 2x3 0";
    "silu_backward": tensors_pointwise, Elementwise(grads!(|m|
        0 => op!(silu_backward(m.g(), m.x(1))),
        1 => m.g() * m.x(0) * silu_second(m.x(1)))), "2x3 2x3";
    "gelu_backward": tensors_pointwise, Elementwise(rule!(|m| gelu_second(m))), "2x3 2x3 \"none\" | 2x3 2x3 \"tanh\"";
}

/// With s the sigmoid of x: silu'' = s(1 - s)(2 + x(1 - 2s)).
fn silu_second(x: Term<'_>) -> Term<'_> {
    let s = op!(sigmoid(x));
    let not_s = op!(rsub_scalar(s, 1));
    s * not_s * (x * (not_s - s) + 2.0)
}

fn gelu_second(m: &Formula<'_, '_>) {
    let (x, tanh) = (m.x(1), m.arg(2) == Arg::Str("tanh".into()));
    if m.wants(0) {
        m.give(0, op!(gelu_backward(m.g(), x, m.arg(2))));
    }
    if m.wants(1) {
        let second = if tanh {
            gelu_tanh_second(x)
        } else {
            gelu_exact_second(x)
        };
        m.give(1, m.g() * m.x(0) * second);
    }
}

/// With f the normal density: gelu'' = f(x)(2 - x^2).
fn gelu_exact_second(x: Term<'_>) -> Term<'_> {
    let square = x * x;
    let density = op!(exp(square * -0.5)) * (0.5 * std::f64::consts::FRAC_2_SQRT_PI * std::f64::consts::FRAC_1_SQRT_2);
    density * op!(rsub_scalar(square, 2))
}

/// gelu = x(1 + t)/2 with t = tanh u, u = k(x + cx^3): gelu'' = (1 - t^2)(u' + x(u'' - 2t u'^2)/2).
fn gelu_tanh_second(x: Term<'_>) -> Term<'_> {
    const C: f64 = 0.044_715;
    let k = std::f64::consts::SQRT_2 * std::f64::consts::FRAC_2_SQRT_PI * 0.5;
    let square = x * x;
    let t = op!(tanh((square * x * C + x) * k));
    let u1 = (square * (3.0 * C) + 1.0) * k;
    let u2 = x * (6.0 * C * k);
    op!(rsub_scalar(t * t, 1)) * (u1 + x * (u2 - t * u1 * u1 * 2.0) * 0.5)
}
