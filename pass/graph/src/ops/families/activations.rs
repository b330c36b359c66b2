//! Activation functions. Their slopes are LibTorch's kernels; `torch-sys` binds the functions without their options, so
//! that these stand at LibTorch's defaults.

use super::table;
use crate::ops::Infer;
use crate::ops::Rule::Elementwise;
use crate::ops::formula::{Formula, Term, grads, op, rule};
use crate::ops::shapes::{Inferred, dim, float_like, like, numeric_like, refuse, tensors_pointwise};

table! {
    "leaky_relu": float_like, Elementwise(grads!(|m| 0 => op!(leaky_relu_backward(m.g(), m.x(0), 0.01, false)))), "2x3";
    "leaky_relu_backward": tensors_pointwise, Elementwise(grads!(|m|
        0 => op!(leaky_relu_backward(m.g(), m.x(1), m.arg(2), m.arg(3))),
        1 => op!(zeros_like(m.x(1))))), "2x3 2x3 0.01 false";
    "elu": float_like, Elementwise(grads!(|m| 0 => op!(elu_backward(m.g(), 1, 1, 1, false, m.x(0))))), "2x3";
    "elu_backward": tensors_pointwise, Elementwise(rule!(|m| elu_second(m))), "2x3 1 1 1 false 2x3";
    "hardtanh": numeric_like, Elementwise(grads!(|m| 0 => op!(hardtanh_backward(m.g(), m.x(0), -1, 1)))), "2x3";
    "hardtanh_backward": tensors_pointwise, Elementwise(grads!(|m|
        0 => op!(hardtanh_backward(m.g(), m.x(1), m.arg(2), m.arg(3))),
        1 => op!(zeros_like(m.x(1))))), "2x3 2x3 -1 1";
    "relu6": numeric_like, Elementwise(grads!(|m| 0 => op!(hardtanh_backward(m.g(), m.x(0), 0, 6)))), "2x3";
    "softplus": float_like, Elementwise(grads!(|m| 0 => op!(softplus_backward(m.g(), m.x(0), 1, 20)))), "2x3";
    "softplus_backward": tensors_pointwise, Elementwise(rule!(|m| softplus_second(m))), "2x3 2x3 1 20";
    "hardswish": float_like, Elementwise(grads!(|m| 0 => op!(hardswish_backward(m.g(), m.x(0))))), "2x3";
    "hardswish_backward": tensors_pointwise, Elementwise(grads!(|m|
        0 => op!(hardswish_backward(m.g(), m.x(1))),
        1 => op!(hardtanh_backward(m.g() * m.x(0) * (1.0 / 3.0), m.x(1), -3, 3)))), "2x3 2x3";
    "mish": float_like, Elementwise(grads!(|m| 0 => op!(mish_backward(m.g(), m.x(0))))), "2x3";
    "mish_backward": tensors_pointwise, Elementwise(rule!(|m| mish_second(m))), "2x3 2x3";
    "glu": glu, Elementwise(grads!(|m| 0 => op!(glu_backward(m.g(), m.x(0), m.arg(1))))), "2x4 1 | 4x3 -2";
    "glu_backward": |cx| Ok(vec![cx.tensor(1)]), Elementwise(rule!(|m| m.leave_to_libtorch())), "";
    "log_sigmoid": float_like, Elementwise(grads!(|m| 0 => log_sigmoid_slope(m.g(), m.x(0)))), "2x3";
    "log_sigmoid_backward": like, Elementwise(rule!(|m| log_sigmoid_second(m))), "2x3 2x3 2x3i";
}

/// The kernel reads e^-|x|, which the C function of the forward does not give.
pub(super) fn log_sigmoid_slope<'m>(g: Term<'m>, x: Term<'m>) -> Term<'m> {
    op!(log_sigmoid_backward(g, x, op!(exp(-op!(abs(x))))))
}

/// -s(1 - s), with s the sigmoid.
fn log_sigmoid_second(m: &Formula<'_, '_>) {
    m.give_none(2);
    if m.wants(0) {
        m.give(0, log_sigmoid_slope(m.g(), m.x(1)));
    }
    if m.wants(1) {
        m.give(1, -op!(sigmoid_backward(m.g() * m.x(0), op!(sigmoid(m.x(1))))));
    }
}

fn elu_second(m: &Formula<'_, '_>) {
    let plain = m.number(1) == Some(1.0) && m.number(2) == Some(1.0) && m.number(3) == Some(1.0) && !m.flag(4);
    if !plain {
        return m.leave_to_libtorch();
    }
    let x = m.x(5);
    if m.wants(0) {
        m.give(0, op!(elu_backward(m.g(), 1, 1, 1, false, x)));
    }
    if m.wants(5) {
        let curve = m.g() * m.x(0) * op!(exp(x));
        m.give(5, op!(masked_fill(curve, op!(gt(x, 0)), 0)));
    }
}

fn softplus_second(m: &Formula<'_, '_>) {
    if m.number(2) != Some(1.0) || m.number(3) != Some(20.0) {
        return m.leave_to_libtorch();
    }
    let x = m.x(1);
    if m.wants(0) {
        m.give(0, op!(softplus_backward(m.g(), x, 1, 20)));
    }
    if m.wants(1) {
        let curve = op!(sigmoid_backward(m.g() * m.x(0), op!(sigmoid(x))));
        m.give(1, op!(masked_fill(curve, op!(gt(x, 20)), 0)));
    }
}

/// With t = tanh(softplus x) and s the sigmoid: mish' = t + x(1 - t^2)s, and (1 - t^2)' = -2t(1 - t^2)s.
fn mish_second(m: &Formula<'_, '_>) {
    let x = m.x(1);
    if m.wants(0) {
        m.give(0, op!(mish_backward(m.g(), x)));
    }
    if m.wants(1) {
        let (t, s) = (op!(tanh(op!(softplus(x)))), op!(sigmoid(x)));
        let slope = op!(rsub_scalar(t * t, 1)) * s;
        let curve = slope * (x * (op!(rsub_scalar(s, 1)) - t * s * 2.0) + 2.0);
        m.give(1, m.g() * m.x(0) * curve);
    }
}

fn glu(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    let at = dim(cx.int(1), x.rank())?;
    match x.shape.get_mut(at) {
        Some(n) if *n % 2 == 0 => *n /= 2,
        _ => return refuse("glu over an odd extent"),
    }
    Ok(vec![x])
}
