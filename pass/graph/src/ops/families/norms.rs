//! Norms, variances and their like: reductions that are not linear.

use super::linear::sum_kind;
use super::reductions::{reduced, unreduced};
use super::table;
use crate::ir::Arg;
use crate::ops::Infer;
use crate::ops::Rule::{Custom, Linear};
use crate::ops::formula::{Formula, Term, grads, op, rule};
use crate::ops::kinds::floating;
use crate::ops::shapes::{Inferred, dim, dims, float_like, one, reduce};

type Over = Option<(Vec<i64>, bool)>;

table! {
    "var": |cx| spread_shape(cx, None, false), Custom(grads!(|m|
        0 => variance(m, m.g(), &None, f64::from(u8::from(m.flag(1)))))), "2x3 true | 2x3 false";
    "var_dim": |cx| spread_shape(cx, Some(1), cx.flag(3)), Custom(grads!(|m|
        0 => variance(m, m.g(), &over(m, 1, 3), f64::from(u8::from(m.flag(2)))))),
        "2x3 [1] true false | 2x3x2 [0,-1] false true | 2x3 - true false";
    "var_correction": |cx| spread_shape(cx, Some(1), cx.flag(3)), Custom(rule!(|m| corrected(m, false))),
        "2x3 [1] 1 false | 2x3x2 [0,-1] 0 true | 2x3 - 2 false";
    "std": |cx| spread_shape(cx, None, false), Custom(grads!(|m|
        0 => variance(m, through_root(m), &None, f64::from(u8::from(m.flag(1)))))), "2x3 true | 2x3 false";
    "std_dim": |cx| spread_shape(cx, Some(1), cx.flag(3)), Custom(grads!(|m|
        0 => variance(m, through_root(m), &over(m, 1, 3), f64::from(u8::from(m.flag(2)))))),
        "2x3 [1] true false | 2x3x2 [0,-1] false true | 2x3 - true false";
    "std_correction": |cx| spread_shape(cx, Some(1), cx.flag(3)), Custom(rule!(|m| corrected(m, true))),
        "2x3 [1] 1 false | 2x3x2 [0,-1] 0 true | 2x3 - 2 false";
    "logsumexp": logsumexp, Custom(grads!(|m| 0 => {
        let (x, over) = (m.x(0), over(m, 1, 2));
        let shape = x.shape();
        unreduced(m.g(), &shape, &over) * op!(exp(x - unreduced(m.y(), &shape, &over)))
    })), "2x3 [1] false | 2x3x2 [0,-1] true | . [0] false";
    "norm": |cx| { let x = float_like(cx)?; one(x[0].kind, []) }, Custom(rule!(|m| norm(m, 2.0, &None))), "2x3";
    "norm_scalaropt_dim": norm_shape, Custom(rule!(|m| match m.number(1) {
        Some(p) => norm(m, p, &over(m, 2, 3)),
        None => m.leave_to_libtorch(),
    })), "2x3 2 [1] false | 2x3 1 [0] true | 2x3 3 [0,1] false | 2x3 1.5 [1] false | 2x3 0.5 [1] false";
    "cumsum": |cx| {
        let x = cx.tensor(0);
        dim(cx.int(1), x.rank())?;
        one(cx.kind(2).unwrap_or(sum_kind(x.kind)), x.shape)
    }, Linear(grads!(|m| 0 => {
        let (g, at) = (m.g(), m.int(1));
        if g.rank() == 0 { g } else { op!(flip(op!(cumsum(op!(flip(g, [at])), at, Arg::None)), [at])) }
    })), "2x3 1 - | 2x3 -2 f64 | . 0 -";
}

fn over(m: &Formula<'_, '_>, list: usize, keep: usize) -> Over {
    Some((m.ints(list), m.flag(keep)))
}

fn spread_shape(cx: &Infer<'_>, list: Option<usize>, keep: bool) -> Inferred {
    let x = float_like(cx)?.remove(0);
    let dims = dims(list.and_then(|i| cx.ints(i)), x.rank())?;
    one(x.kind, reduce(&x.shape, &dims, keep))
}

fn norm_shape(cx: &Infer<'_>) -> Inferred {
    let x = float_like(cx)?.remove(0);
    let dims = dims(cx.ints(2), x.rank())?;
    one(x.kind, reduce(&x.shape, &dims, cx.flag(3)))
}

fn logsumexp(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    let dims = dims(cx.ints(1), x.rank())?;
    one(floating(x.kind), reduce(&x.shape, &dims, cx.flag(2)))
}

/// The dimensions, and how many elements they span.
fn extent(shape: &[i64], over: &Over) -> (Vec<i64>, i64) {
    let dims = reduced(shape, over);
    let count = dims.iter().map(|d| shape[*d]).product();
    (dims.into_iter().map(|d| d as i64).collect(), count)
}

/// 2(x - mean)/(n - correction). Without degrees of freedom the variance is NaN or infinite, and so is its slope.
fn variance<'m>(m: &'m Formula<'_, '_>, g: Term<'m>, over: &Over, correction: f64) -> Term<'m> {
    let x = m.x(0);
    let shape = x.shape();
    let (dims, count) = extent(&shape, over);
    let g = unreduced(g, &shape, over);
    let centred = if dims.is_empty() {
        op!(zeros_like(x))
    } else {
        x - op!(mean_dim(x, &dims, true, Arg::None))
    };
    let freedom = count as f64 - correction;
    if freedom <= 0.0 && dims.len() == shape.len() {
        let level = op!(eq(centred, 0));
        return g * level
            .apply(
                "where_scalar",
                vec![level.into(), f64::NAN.into(), f64::INFINITY.into()],
            )
            .cast(x.kind());
    }
    g * (2.0 / freedom) * centred
}

/// The cotangent of the variance from that of the deviation.
fn through_root<'m>(m: &'m Formula<'_, '_>) -> Term<'m> {
    let y = m.y();
    op!(masked_fill(m.g() / (y * 2.0), op!(eq(y, 0)), 0))
}

fn corrected(m: &Formula<'_, '_>, root: bool) {
    match m.number(2) {
        Some(correction) if m.wants(0) => {
            let g = if root { through_root(m) } else { m.g() };
            m.give(0, variance(m, g, &over(m, 1, 3), correction));
        }
        _ => m.leave_to_libtorch(),
    }
}

/// LibTorch's conventions: nothing flows to a vector of norm zero; the maximum norm is shared among ties; the number of
/// elements that are not zero has no derivative.
fn norm(m: &Formula<'_, '_>, p: f64, over: &Over) {
    if p == 0.0 {
        return m.give_none(0);
    }
    if !m.wants(0) {
        return;
    }
    let x = m.x(0);
    let shape = x.shape();
    let [g, y] = [m.g(), m.y()].map(|t| unreduced(t, &shape, over));
    let zero = op!(eq(y, 0));
    let size = || op!(abs(x));
    let sign = || op!(sign(x));
    let bar = if p == 1.0 {
        sign() * g
    } else if p == 2.0 {
        g * op!(masked_fill(x / y, zero, 0))
    } else if p.is_infinite() {
        let both_nan = op!(logical_and(op!(isnan(x)), op!(isnan(y))));
        let mask = op!(logical_or(op!(eq_tensor(size(), y)), both_nan)).cast(x.kind());
        let (dims, _) = extent(&shape, over);
        sign() * (g / mask.sum_over(&dims, true) * mask)
    } else if p < 1.0 {
        let scaled = sign() * op!(masked_fill(size().pow(p - 1.0), op!(eq(x, 0)), 0));
        scaled * g * y.pow(1.0 - p)
    } else {
        let scaled = if p < 2.0 {
            sign() * size().pow(p - 1.0)
        } else {
            x * size().pow(p - 2.0)
        };
        scaled * op!(masked_fill(g / y.pow(p - 1.0), zero, 0))
    };
    m.give(0, bar);
}
