//! Losses between two tensors of floats.

use super::table;
use crate::ops::Infer;
use crate::ops::Rule::Custom;
use crate::ops::formula::{Formula, Term, op, rule};
use crate::ops::kinds::floating;
use crate::ops::shapes::{Inferred, one, tensors_pointwise};

const NONE: i64 = 0;
const MEAN: i64 = 1;

table! {
    "l1_loss": |cx| loss(cx, 2), Custom(rule!(|m| {
        let (a, b) = (m.x(0), m.x(1));
        let slope = op!(sign(a - b)) * averaged(m, 2, m.broadcast_count());
        m.give(0, slope);
        if m.wants(1) {
            m.give(1, -slope);
        }
    })), "2x3 2x3 1 | 2x3 2x3 2 | 2x3 3 0";
    "smooth_l1_loss": |cx| loss(cx, 2), Custom(rule!(|m| kernel(m, "smooth_l1_loss_backward"))),
        "2x3 2x3 1 1.0 | 2x3 2x3 2 0.5 | 2x3 2x3 0 3.0";
    "smooth_l1_loss_backward": |cx| one(cx.tensor(1).kind, cx.tensor(1).shape),
        Custom(rule!(|m| m.leave_to_libtorch())), "";
    "huber_loss_backward": |cx| one(cx.tensor(1).kind, cx.tensor(1).shape), Custom(rule!(|m| m.leave_to_libtorch())),
        "";
    "huber_loss": |cx| loss(cx, 2), Custom(rule!(|m| kernel(m, "huber_loss_backward"))),
        "2x3 2x3 1 1.0 | 2x3 2x3 2 0.5 | 2x3 2x3 0 3.0";
    "kl_div": |cx| loss(cx, 2), Custom(rule!(|m| divergence(m))),
        "2x3 2x3+ 1 false | 2x3 2x3 2 true | 2x3 3+ 0 false";
    "binary_cross_entropy_with_logits": |cx| loss(cx, 4), Custom(rule!(|m| logits(m))),
        "2x3 2x3 - - 1 | 2x3 2x3 3+i - 2 | 2x3 2x3 - 3+i 0 | 2x3 2x3 2x3+i 3+i 1";
}

fn loss(cx: &Infer<'_>, reduction: usize) -> Inferred {
    let t = tensors_pointwise(cx)?.remove(0);
    one(
        floating(t.kind),
        if cx.int(reduction) == NONE { t.shape } else { vec![] },
    )
}

/// The cotangent of each element of the loss before its reduction over `count` of them.
fn averaged<'m>(m: &'m Formula<'_, '_>, reduction: usize, count: i64) -> Term<'m> {
    if m.int(reduction) == MEAN {
        op!(div_scalar(m.g(), count))
    } else {
        m.g()
    }
}

/// LibTorch's kernel, which takes tensors of one shape, for both arguments.
fn kernel(m: &Formula<'_, '_>, backward: &'static str) {
    let [a, b] = [m.x(0), m.x(1)];
    if a.shape() != b.shape() || a.kind() != b.kind() {
        return m.leave_to_libtorch();
    }
    for (i, x, t) in [(0, a, b), (1, b, a)] {
        if m.wants(i) {
            m.give(i, m.g().call(backward, vec![x.into(), t.into(), m.arg(2), m.arg(3)]));
        }
    }
}

/// t(log t - x) or, with the logarithm given, e^t(t - x).
fn divergence(m: &Formula<'_, '_>) {
    let (x, t, logs) = (m.x(0), m.x(1), m.flag(3));
    let count = m.broadcast_count();
    let g = averaged(m, 2, count);
    let weight = if logs { op!(exp(t)) } else { t };
    if m.wants(0) {
        m.give(0, -g * weight);
    }
    if m.wants(1) {
        let bar = if logs {
            g * weight * (t + 1.0 - x)
        } else {
            // The two places of t in t log t: LibTorch takes the first as zero at zero, the second is NaN there.
            op!(masked_fill(g * op!(log(t)), op!(eq(t, 0)), 0)) + g * op!(div(t, t)) - g * x
        };
        m.give(1, bar);
    }
}

/// With s the sigmoid of x, weights w and p: the slope is w((pt + 1 - t)s - pt).
fn logits(m: &Formula<'_, '_>) {
    let (x, t) = (m.x(0), m.x(1));
    let mut g = averaged(m, 4, x.ty().numel());
    if let Some(weight) = m.opt_x(2) {
        g = g * weight;
    }
    if m.wants(0) {
        let s = op!(sigmoid(x));
        m.give(
            0,
            g * match m.opt_x(3) {
                Some(positive) => (positive * t + op!(rsub_scalar(t, 1))) * s - positive * t,
                None => s - t,
            },
        );
    }
    if m.wants(1) {
        m.give(
            1,
            g * match m.opt_x(3) {
                Some(positive) => op!(log_sigmoid(-x)) - positive * op!(log_sigmoid(x)),
                None => -x,
            },
        );
    }
    if m.wants(2) || m.wants(3) {
        m.refuse("a derivative for its weights; write the loss out");
    }
}
