//! Functions that work element by element.

use super::table;
use crate::ir::{Arg, Kind};
use crate::ops::Infer;
use crate::ops::Rule::{Constant, Elementwise, Zero};
use crate::ops::formula::{Formula, Term, grads, op, rule};
use crate::ops::kinds::{Operand, result_kind};
use crate::ops::shapes::{
    Inferred, float_like, float_pointwise, float_unary, like, numeric_like, one, pointwise, refuse, subtract,
};

table! {
    "add": pointwise, Elementwise(grads!(|m| 0 => m.g(), 1 => m.g())), "2x3 2x3 | 2x3 3 | 2x1 1x3 | 2x3 .";
    "add_scalar": pointwise, Elementwise(grads!(|m| 0 => m.g(), 1 => m.g())), "2x3 1.5 | 2x3 2 | 2x3 $";
    "sub": subtract, Elementwise(grads!(|m| 0 => m.g(), 1 => -m.g())), "2x3 2x3 | 2x3 3 | 2x1 1x3 | . 2";
    "sub_scalar": subtract, Elementwise(grads!(|m| 0 => m.g(), 1 => -m.g())), "2x3 1.5 | 2x3 $";
    "mul": pointwise, Elementwise(grads!(|m| 0 => m.g() * m.x(1), 1 => m.g() * m.x(0))),
        "2x3 2x3 | 2x3 3 | 2x1 1x3 | 2x3 .";
    "mul_scalar": pointwise, Elementwise(grads!(|m| 0 => m.g() * m.arg(1), 1 => m.g() * m.x(0))),
        "2x3 1.5 | 2x3 3 | 2x3 $";
    "div": float_pointwise,
        Elementwise(grads!(|m| 0 => m.g() / m.x(1), 1 => -m.g() * (m.x(0) / m.x(1) / m.x(1)))),
        "2x3 2x3 | 2x3 3 | 2x1 1x3 | 2x3 .";
    "div_scalar": float_pointwise,
        Elementwise(grads!(|m| 0 => m.g() / m.arg(1), 1 => -m.g() * (m.x(0) / m.arg(1) / m.arg(1)))),
        "2x3 1.5 | 2x3 2 | 2x3 $";
    "rsub": subtract, Elementwise(grads!(|m| 0 => -m.g(), 1 => m.g())), "2x3 2x3 | 2x3 3";
    "rsub_scalar": subtract, Elementwise(grads!(|m| 0 => -m.g(), 1 => m.g())), "2x3 1.5 | 2x3 $";
    "neg": numeric_like, Elementwise(grads!(|m| 0 => -m.g())), "2x3 | .";
    "exp": float_unary, Elementwise(grads!(|m| 0 => m.g() * m.y())), "2x3 | .";
    "log": float_unary, Elementwise(grads!(|m| 0 => m.g() / m.x(0))), "2x3+";
    "sqrt": float_unary, Elementwise(grads!(|m| 0 => m.g() / (m.y() * 2.0))), "2x3+";
    "rsqrt": float_unary, Elementwise(grads!(|m| 0 => m.g() * -0.5 * m.y().pow(3.0))), "2x3+";
    "square": square, Elementwise(grads!(|m| 0 => m.g() * (m.x(0) * 2.0))), "2x3 | .";
    "reciprocal": float_unary, Elementwise(grads!(|m| 0 => -m.g() * (m.y() * m.y()))), "2x3";
    "pow_tensor_scalar": power, Elementwise(rule!(|m| power_rule(m))),
        "2x3 2 | 2x3 3.0 | 2x3+ 0.5 | 2x3 -1 | 2x3 0 | 2x3+ $";
    "abs": like, Elementwise(grads!(|m| 0 => m.g() * op!(sign(m.x(0))))), "2x3";
    "sin": float_unary, Elementwise(grads!(|m| 0 => m.g() * op!(cos(m.x(0))))), "2x3";
    "cos": float_unary, Elementwise(grads!(|m| 0 => m.g() * -op!(sin(m.x(0))))), "2x3";
    "tanh": float_unary, Elementwise(grads!(|m| 0 => op!(tanh_backward(m.g(), m.y())))), "2x3 | .";
    "sigmoid": float_unary, Elementwise(grads!(|m| 0 => op!(sigmoid_backward(m.g(), m.y())))), "2x3 | .";
    "relu": numeric_like, Elementwise(grads!(|m| 0 => op!(threshold_backward(m.g(), m.y(), 0)))), "2x3 | .";
    "gelu": float_like, Elementwise(grads!(|m| 0 => op!(gelu_backward(m.g(), m.x(0), m.arg(1))))),
        "2x3 \"none\" | 2x3 \"tanh\"";
    "silu": float_like, Elementwise(grads!(|m| 0 => op!(silu_backward(m.g(), m.x(0))))), "2x3 | .";
    "masked_fill": masked_fill, Elementwise(grads!(|m|
        0 => op!(masked_fill(m.g(), m.x(1), 0)),
        2 => picked(m.x(1), m.g(), true))), "2x3 2x3? 1.5 | 2x3 3? -1 | 2x3 2x1? $";
    "masked_fill_tensor": masked_fill, Elementwise(grads!(|m|
        0 => op!(masked_fill(m.g(), m.x(1), 0)),
        2 => picked(m.x(1), m.g(), true))), "2x3 3? .";
    "where_self": choose, Elementwise(grads!(|m|
        1 => picked(m.x(0), m.g(), true),
        2 => picked(m.x(0), m.g(), false))), "2x3? 2x3 2x3 | 2x1? 3 2x3 | 2x3? . 1x3";
    "where_scalarother": choose, Elementwise(grads!(|m|
        1 => picked(m.x(0), m.g(), true),
        2 => picked(m.x(0), m.g(), false))), "2x3? 2x3 1.5 | 2x1? 3 $";
    "where_scalarself": choose, Elementwise(grads!(|m|
        1 => picked(m.x(0), m.g(), true),
        2 => picked(m.x(0), m.g(), false))), "2x3? 1.5 2x3 | 2x1? $ 3";
    "where_scalar": choose, Constant, "2x3? 1.5 2.5";
    "sign": like, Zero, "2x3";
    "floor": like, Zero, "2x3";
    "ceil": like, Zero, "2x3";
    "round": like, Zero, "3%";
    "trunc": like, Zero, "2x3";
}

/// `g` where the condition is `which`, zero elsewhere.
pub(super) fn picked<'m>(condition: Term<'m>, g: Term<'m>, which: bool) -> Term<'m> {
    if which {
        op!(where_scalarother(condition, g, 0))
    } else {
        condition.apply("where_scalarself", vec![condition.into(), Arg::Int(0), g.into()])
    }
}

/// `square` is `pow(x, 2)`: flags become integers.
fn square(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    one(if x.kind == Kind::Bool { Kind::I64 } else { x.kind }, x.shape)
}

fn power(cx: &Infer<'_>) -> Inferred {
    let y = cx.promoted()?;
    if !y.kind.is_differentiable() && matches!(cx.args[1], Arg::Int(e) if e < 0) {
        return refuse("an integer to a negative integer power");
    }
    Ok(vec![y])
}

/// The power is a constant number, or a float of the program, which may want a cotangent as well.
fn power_rule(m: &Formula<'_, '_>) {
    let exponent = m.number(1);
    let (x, y) = (m.x(0), m.y());
    if m.wants(0) {
        m.give(
            0,
            match exponent {
                Some(0.0) => op!(zeros_like(x)),
                Some(e) => m.g() * (x.pow(e - 1.0) * e),
                None => {
                    let grad = m.g() * (op!(pow_tensor_scalar(x, m.minus_one(1))) * m.arg(1));
                    // Where 0^k is 1, k is 0, and so is the derivative.
                    op!(masked_fill(grad, op!(logical_and(op!(eq(x, 0)), op!(eq(y, 1)))), 0))
                }
            },
        );
    }
    if m.wants(1) {
        // LibTorch's convention for tensor exponents: nothing flows where zero is raised to a power that is not
        // negative.
        let settled = op!(logical_and(op!(eq(x, 0)), op!(isfinite(y))));
        m.give(1, op!(masked_fill(m.g() * (y * op!(log(x))), settled, 0)));
    }
}

fn masked_fill(cx: &Infer<'_>) -> Inferred {
    let [x, mask] = [cx.tensor(0), cx.tensor(1)];
    if mask.kind != Kind::Bool {
        return refuse(format!("masked_fill with a mask of {}", mask.kind.name()));
    }
    if matches!(cx.operand(2), Some(Operand::Tensor(_, rank)) if rank > 0) {
        return refuse("masked_fill with a value that has dimensions");
    }
    one(x.kind, crate::ops::shapes::broadcast(&x.shape, &mask.shape)?)
}

fn choose(cx: &Infer<'_>) -> Inferred {
    if !matches!(cx.tensor(0).kind, Kind::Bool | Kind::U8) {
        return refuse("where with a condition that is not a flag");
    }
    let kind = result_kind([1, 2].into_iter().filter_map(|i| cx.operand(i)));
    one(kind, cx.broadcast_all()?)
}
