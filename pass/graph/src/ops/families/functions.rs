//! Functions of analysis, element by element.

use super::elementwise::picked;
use super::table;
use crate::ir::Arg;
use crate::ops::Rule::{Elementwise, Zero};
use crate::ops::formula::{Formula, Term, grads, op, rule};
use crate::ops::kinds::floating;
use crate::ops::shapes::{Inferred, float_pointwise, float_unary, like, one, pointwise};
use crate::ops::{Infer, ShapeError};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10};

table! {
    "exp2": float_unary, Elementwise(grads!(|m| 0 => m.g() * m.y() * LN_2)), "2x3";
    "expm1": float_unary, Elementwise(grads!(|m| 0 => m.g() * (m.y() + 1.0))), "2x3";
    "log2": float_unary, Elementwise(grads!(|m| 0 => m.g() / (m.x(0) * LN_2))), "2x3+";
    "log10": float_unary, Elementwise(grads!(|m| 0 => m.g() / (m.x(0) * LN_10))), "2x3+";
    "log1p": float_unary, Elementwise(grads!(|m| 0 => m.g() / (m.x(0) + 1.0))), "2x3+";
    "tan": float_unary, Elementwise(grads!(|m| 0 => m.g() * (m.y() * m.y() + 1.0))), "2x3%";
    "asin": float_unary, Elementwise(grads!(|m| 0 => m.g() * op!(rsqrt(one_minus_square(m.x(0)))))), "2x3%";
    "acos": float_unary, Elementwise(grads!(|m| 0 => m.g() * -op!(rsqrt(one_minus_square(m.x(0)))))), "2x3%";
    "atan": float_unary, Elementwise(grads!(|m| 0 => m.g() / (m.x(0) * m.x(0) + 1.0))), "2x3";
    "sinh": float_unary, Elementwise(grads!(|m| 0 => m.g() * op!(cosh(m.x(0))))), "2x3";
    "cosh": float_unary, Elementwise(grads!(|m| 0 => m.g() * op!(sinh(m.x(0))))), "2x3";
    "erf": float_unary, Elementwise(grads!(|m| 0 => bell(m.x(0)) * m.g())), "2x3";
    "erfc": float_unary, Elementwise(grads!(|m| 0 => -bell(m.x(0)) * m.g())), "2x3";
    "frac": like, Elementwise(grads!(|m| 0 => m.g())), "3%";
    "positive": like, Elementwise(grads!(|m| 0 => m.g())), "2x3";
    "fmod": pointwise, Elementwise(grads!(|m| 0 => m.g())), "3% 5.5";
    "remainder": pointwise, Elementwise(grads!(|m| 0 => m.g())), "3% 5.5";
    "sgn": like, Zero, "2x3";
    "atan2": float_pointwise, Elementwise(grads!(|m|
        0 => m.g() * m.x(1) * inverse_square(m),
        1 => m.g() * -m.x(0) * inverse_square(m))), "2x3 2x3 | 2x3 3";
    "hypot": pointwise, Elementwise(grads!(|m|
        0 => m.g() * (m.x(0) / m.y()),
        1 => m.g() * (m.x(1) / m.y()))), "2x3 2x3 | 2x3 3";
    "pow": pointwise, Elementwise(rule!(|m| power(m))), "2x3+ 2x3 | 2x3+ 3 | 3+ .";
    "pow_scalar": scalar_base, Elementwise(rule!(|m| power_of_scalar(m))), "2.5 2x3 | 2 3";
    "multiply": pointwise, Elementwise(grads!(|m| 0 => m.g() * m.x(1), 1 => m.g() * m.x(0))), "2x3 3";
    "divide": float_pointwise,
        Elementwise(grads!(|m| 0 => m.g() / m.x(1), 1 => -m.g() * (m.x(0) / m.x(1) / m.x(1)))), "2x3 3";
    "true_divide": float_pointwise,
        Elementwise(grads!(|m| 0 => m.g() / m.x(1), 1 => -m.g() * (m.x(0) / m.x(1) / m.x(1)))), "2x3 3";
    "addcmul": pointwise, Elementwise(grads!(|m|
        0 => m.g(),
        1 => m.g() * m.x(2),
        2 => m.g() * m.x(1))), "2x3 2x3 3 | 3 2x1 2x3";
    "addcdiv": float_pointwise, Elementwise(grads!(|m|
        0 => m.g(),
        1 => m.g() / m.x(2),
        2 => -m.g() * (m.x(1) / (m.x(2) * m.x(2))))), "2x3 2x3 3 | 3 2x1 2x3";
    "lerp_tensor": lerp, Elementwise(grads!(|m|
        0 => m.g() * op!(rsub_scalar(m.x(2), 1)),
        1 => m.g() * m.x(2),
        2 => m.g() * (m.x(1) - m.x(0)))), "2x3 2x3 2x3 | 2x3 3 .";
}

/// 1 - x^2
fn one_minus_square(x: Term<'_>) -> Term<'_> {
    -x * x + 1.0
}

/// The derivative of the error function.
fn bell(x: Term<'_>) -> Term<'_> {
    op!(exp(-x.pow(2.0))) * FRAC_2_SQRT_PI
}

/// 1 / (a^2 + b^2), and zero at the origin.
fn inverse_square<'m>(m: &'m Formula<'_, '_>) -> Term<'m> {
    let square = m.x(0) * m.x(0) + m.x(1) * m.x(1);
    op!(masked_fill(op!(reciprocal(square)), op!(eq(square, 0)), 0))
}

/// Both partials of a^b, with LibTorch's conventions: to the power zero, nothing flows to the base; where zero is
/// raised to a power that is not negative, nothing flows to the power.
fn power(m: &Formula<'_, '_>) {
    let (a, b) = (m.x(0), m.x(1));
    if m.wants(0) {
        let slope = m.g() * (b * op!(pow(a, op!(sub_scalar(b, 1)))));
        m.give(0, picked(op!(eq(b, 0)), slope, false));
    }
    if m.wants(1) {
        let settled = op!(logical_and(op!(eq(a, 0)), op!(ge(b, 0))));
        m.give(1, picked(settled, m.g() * (m.y() * op!(log(a))), false));
    }
}

fn power_of_scalar(m: &Formula<'_, '_>) {
    let Some(base) = m.number(0) else {
        return m.refuse("its base is a float that is not known before the call; pass it as a tensor");
    };
    if m.wants(1) {
        let slope = m.g() * (m.y() * base.ln());
        m.give(
            1,
            if base == 0.0 {
                picked(op!(ge(m.x(1), 0)), slope, false)
            } else {
                slope
            },
        );
    }
}

fn scalar_base(cx: &Infer<'_>) -> Inferred {
    if matches!(cx.args[0], Arg::Value(_)) {
        return Err(ShapeError("a power of a float that is not known".into()));
    }
    pointwise(cx)
}

fn lerp(cx: &Infer<'_>) -> Inferred {
    let t = cx.promoted()?;
    one(floating(t.kind), t.shape)
}
