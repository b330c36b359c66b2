//! Losses.

use super::{Rewrite, table};
use crate::ir::{Arg, Kind};
use crate::ops::Infer;
use crate::ops::Rule::{Composite, Custom, Linear};
use crate::ops::formula::{Formula, Term, op, rule};
use crate::ops::shapes::{Inferred, one, refuse, tensors_pointwise};

const NONE: i64 = 0;
const MEAN: i64 = 1;

table! {
    "mse_loss": mse_loss, Custom(rule!(|m| mse_loss_rule(m))),
        "2x3 2x3 1 | 2x3 2x3 2 | 2x3 2x3 0 | 2x3 3 1 | 3 2x3 0";
    "mse_loss_backward": |cx| one(tensors_pointwise(cx)?[0].kind, cx.tensor(1).shape),
        Custom(rule!(|m| mse_loss_second(m))),
        ". 2x3 2x3 1 | . 2x3 2x3 2 | 2x3 2x3 2x3 0";
    "nll_loss": nll_loss, Linear(rule!(|m| nll_loss_rule(m, "nll_loss_backward"))),
        "4x3 4%3 - 1 -100 | 4x3 4%3 3+i 1 -100 | 4x3 4%3 3+i 2 1 | 4x3 4%3 - 0 1 | 3 .%3 - 1 -100";
    "nll_loss2d": nll_loss2d, Linear(rule!(|m| nll_loss_rule(m, "nll_loss2d_backward"))),
        "2x3x2x2 2x2x2%3 - 1 -100 | 2x3x2x2 2x2x2%3 3+i 0 1";
    "nll_loss_backward": nll_loss_backward, Linear(rule!(|m| nll_loss_second(m))),
        ". 4x3 4%3 - 1 -100 .+i | 4 4x3 4%3 3+i 0 1 .+i";
    "nll_loss2d_backward": nll_loss_backward, Linear(rule!(|m| nll_loss_second(m))), ". 2x3x2x2 2x2x2%3 - 1 -100 .+i";
    "nll_loss_nd": nll_loss_nd, Composite(|m| nll_parts(m, m.x(0))),
        "4x3 4%3 - 1 -100 | 2x3x2 2x2%3 3+i 0 1 | 2x3x2x2 2x2x2%3 - 2 -100 | 2x3x2x1x2 2x2x1x2%3 - 0 -100";
    "cross_entropy_loss": cross_entropy, Composite(cross_entropy_parts),
        "4x3 4%3 - 1 -100 0.0 | 4x3 4%3 3+i 1 1 0.0 | 4x3 4x3+ - 1 -100 0.0 | 4x3 4x3+ 3+ 2 -100 0.1 \
         | 4x3 4%3 - 1 1 0.2 | 4x3 4%3 3+i 1 1 0.2 | 2x3x2 2x2%3 - 0 -100 0.1 | 3 .%3 - 1 -100 0.0 | 3 3+ - 0 -100 0.0";
}

fn mse_loss(cx: &Infer<'_>) -> Inferred {
    let t = tensors_pointwise(cx)?.remove(0);
    if !t.kind.is_float() {
        return refuse(format!("mse_loss of {}", t.kind.name()));
    }
    one(t.kind, if cx.int(2) == NONE { t.shape } else { vec![] })
}

/// Both arguments get the kernel of LibTorch. It takes tensors of one shape.
fn mse_loss_rule(m: &Formula<'_, '_>) {
    let [a, b] = [m.x(0), m.x(1)];
    if a.shape() == b.shape() {
        if m.wants(0) {
            m.give(0, op!(mse_loss_backward(m.g(), a, b, m.arg(2))));
        }
        if m.wants(1) {
            m.give(1, op!(mse_loss_backward(m.g(), b, a, m.arg(2))));
        }
        return;
    }
    // LibTorch broadcasts the shorter and takes the mean over all pairs.
    let difference = a - b;
    let scale = if m.int(2) == MEAN {
        2.0 / difference.ty().numel() as f64
    } else {
        2.0
    };
    let grad = difference * scale * m.g();
    m.give(0, grad);
    if m.wants(1) {
        m.give(1, -grad);
    }
}

/// x̄ = g·2(x - t)/n
fn mse_loss_second(m: &Formula<'_, '_>) {
    let (g, x, t) = (m.x(0), m.x(1), m.x(2));
    let scale = if m.int(3) == MEAN {
        2.0 / x.ty().numel() as f64
    } else {
        2.0
    };
    let bar = m.g() * scale;
    if m.wants(0) {
        m.give(0, bar * (x - t));
    }
    if m.wants(1) {
        m.give(1, bar * g);
    }
    if m.wants(2) {
        m.give(2, -bar * g);
    }
}

fn classes(cx: &Infer<'_>, n: i64, weight: usize) -> Result<(), crate::ops::ShapeError> {
    match cx.opt_tensor(weight) {
        Some(w) if w.shape != [n] => refuse(format!("{} of {n} classes with weights of {:?}", cx.op, w.shape)),
        _ => Ok(()),
    }
}

fn class_target(cx: &Infer<'_>, i: usize) -> Result<(), crate::ops::ShapeError> {
    match cx.tensor(i).kind {
        Kind::I64 | Kind::U8 => Ok(()),
        kind => refuse(format!("{} with classes of {}", cx.op, kind.name())),
    }
}

fn nll_loss(cx: &Infer<'_>) -> Inferred {
    let [x, target] = [cx.tensor(0), cx.tensor(1)];
    class_target(cx, 1)?;
    cx.same_kind(&[0, 2])?;
    match x.shape[..] {
        [n] if target.rank() <= 1 && target.numel() == 1 => {
            classes(cx, n, 2)?;
            one(x.kind, [])
        }
        [batch, n] if target.shape == [batch] => {
            classes(cx, n, 2)?;
            one(x.kind, if cx.int(3) == NONE { vec![batch] } else { vec![] })
        }
        _ => refuse(format!("nll_loss of {:?} for {:?}", x.shape, target.shape)),
    }
}

fn nll_loss2d(cx: &Infer<'_>) -> Inferred {
    let [x, target] = [cx.tensor(0), cx.tensor(1)];
    class_target(cx, 1)?;
    cx.same_kind(&[0, 2])?;
    match x.shape[..] {
        [batch, n, h, w] if target.shape == [batch, h, w] => {
            classes(cx, n, 2)?;
            one(x.kind, if cx.int(3) == NONE { target.shape } else { vec![] })
        }
        _ => refuse(format!("nll_loss2d of {:?} for {:?}", x.shape, target.shape)),
    }
}

fn nll_loss_nd(cx: &Infer<'_>) -> Inferred {
    let [x, target] = [cx.tensor(0), cx.tensor(1)];
    if x.rank() <= 2 {
        return nll_loss(cx);
    }
    class_target(cx, 1)?;
    cx.same_kind(&[0, 2])?;
    classes(cx, x.shape[1], 2)?;
    let mut want = x.shape.clone();
    want.remove(1);
    if target.shape != want {
        return refuse(format!("{} of {:?} for {:?}", cx.op, x.shape, target.shape));
    }
    one(x.kind, if cx.int(3) == NONE { want } else { vec![] })
}

fn nll_loss_backward(cx: &Infer<'_>) -> Inferred {
    one(cx.tensor(1).kind, cx.tensor(1).shape)
}

/// LibTorch's kernel wants the sum of the weights that took part, which the C function of the forward does not give.
fn nll_loss_rule(m: &Formula<'_, '_>, backward: &'static str) {
    if !m.wants(0) {
        return;
    }
    let (x, target, ignored) = (m.x(0), m.x(1), m.int(4));
    let taken = op!(ne(target, ignored));
    let total = match m.opt_x(2) {
        _ if m.int(3) != MEAN => x.apply("zeros", vec![Arg::ints(&[]), x.kind().into(), Arg::Device(-1)]),
        None => op!(sum(taken, x.kind())),
        Some(weight) => op!(sum(weights(weight, target, ignored), Arg::None)),
    };
    let mut args = vec![m.g().into(), x.into(), target.into(), m.arg(2), m.arg(3), m.arg(4)];
    args.push(total.into());
    m.give(0, x.apply(backward, args));
}

/// The weight of each target, zero where it is ignored.
fn weights<'m>(weight: Term<'m>, target: Term<'m>, ignored: i64) -> Term<'m> {
    let skipped = op!(eq(target, ignored));
    let classes = op!(masked_fill(target, skipped, 0))
        .cast(Kind::I64)
        .reshaped(&[target.ty().numel()]);
    op!(masked_fill(
        op!(index_select(weight, 0, classes)),
        skipped.reshaped(&[target.ty().numel()]),
        0
    ))
}

/// The backward is linear in its cotangent: minus the weights, at the targets.
fn nll_loss_second(m: &Formula<'_, '_>) {
    let g = m.x(0);
    m.give_none(1);
    if !m.wants(0) {
        return;
    }
    let none = vec![m.x(2).into(), m.arg(3), Arg::Int(NONE), m.arg(5)];
    let op = if m.op().name == "nll_loss_backward" {
        "nll_loss"
    } else {
        "nll_loss2d"
    };
    let mut bar = m.g().call(op, none);
    if m.int(4) == MEAN {
        bar = bar / m.x(6);
    }
    m.give(
        0,
        if m.int(4) == NONE {
            bar
        } else {
            op!(sum(bar, Arg::None)).reshaped(&g.shape())
        },
    );
}

/// `nll_loss_nd` of `input`, with the other arguments of the op.
fn nll_parts<'m>(m: &'m Rewrite<'_>, input: Term<'m>) -> Term<'m> {
    let target = m.x(1);
    let rest = |target: Term<'m>| vec![target.into(), m.arg(2), m.arg(3), m.arg(4)];
    let shape = input.shape();
    match shape.len() {
        0..=2 => input.call("nll_loss", rest(target)),
        4 => input.call("nll_loss2d", rest(target)),
        _ => {
            let inner: i64 = shape[2..].iter().product();
            let flat = input.reshaped(&[shape[0], shape[1], 1, inner]);
            let loss = flat.call("nll_loss2d", rest(target.reshaped(&[shape[0], 1, inner])));
            if m.int(3) == NONE {
                loss.reshaped(&target.shape())
            } else {
                loss
            }
        }
    }
}

fn class_dim(rank: usize) -> usize {
    usize::from(rank != 1)
}

fn cross_entropy(cx: &Infer<'_>) -> Inferred {
    let [x, target] = [cx.tensor(0), cx.tensor(1)];
    if !x.kind.is_float() || x.rank() == 0 {
        return refuse(format!("cross entropy of {} of rank {}", x.kind.name(), x.rank()));
    }
    if x.shape != target.shape {
        return nll_loss_nd(cx);
    }
    if !target.kind.is_float() || cx.int(4) >= 0 {
        return refuse("cross entropy with probabilities that are not floats, or with an ignored class");
    }
    let at = class_dim(x.rank());
    classes(cx, x.shape[at], 2)?;
    let mut kind = crate::ops::kinds::promote(x.kind, target.kind);
    if let Some(weight) = cx.opt_tensor(2) {
        kind = crate::ops::kinds::promote(kind, weight.kind);
    }
    let shape = crate::ops::shapes::reduce(&x.shape, &[at], false);
    one(kind, if cx.int(3) == NONE { shape } else { vec![] })
}

fn cross_entropy_parts<'m>(m: &'m Rewrite<'_>) -> Term<'m> {
    let (x, target) = (m.x(0), m.x(1));
    let at = class_dim(x.rank());
    let classes = x.shape()[at];
    let Some(smoothing) = m.number(5) else { return x };
    if smoothing > 1.0 {
        m.refuse(format!("a label smoothing of {smoothing}"));
    }
    let logs = op!(log_softmax(x, at as i64, x.kind()));
    if x.shape() == target.shape() {
        probabilities_parts(m, logs, at, smoothing)
    } else if smoothing > 0.0 {
        let share = smoothing / classes as f64;
        nll_parts(m, logs) * (1.0 - smoothing) + smooth_parts(m, logs, at) * share
    } else {
        nll_parts(m, logs)
    }
}

/// The weights of the classes, to broadcast with the input.
fn class_weights<'m>(weight: Term<'m>, rank: usize, at: usize) -> Term<'m> {
    let mut shape = vec![1; rank];
    shape[at] = weight.shape()[0];
    op!(view(weight, &shape))
}

/// Cross entropy where the target gives the probability of each class.
fn probabilities_parts<'m>(m: &'m Rewrite<'_>, logs: Term<'m>, at: usize, smoothing: f64) -> Term<'m> {
    let shape = logs.shape();
    let mut target = m.x(1);
    if smoothing > 0.0 {
        target = target * (1.0 - smoothing) + smoothing / shape[at] as f64;
    }
    let mut product = logs * target;
    if let Some(weight) = m.opt_x(2) {
        product = product * class_weights(weight, shape.len(), at);
    }
    match m.int(3) {
        NONE => -product.sum_over(&[at as i64], false),
        MEAN => op!(div_scalar(
            -op!(sum(product, Arg::None)),
            logs.ty().numel() / shape[at].max(1)
        )),
        _ => -op!(sum(product, Arg::None)),
    }
}

/// The part of the loss that label smoothing spreads over all classes.
fn smooth_parts<'m>(m: &'m Rewrite<'_>, logs: Term<'m>, at: usize) -> Term<'m> {
    let (target, ignored) = (m.x(1), m.int(4));
    let weighted = match m.opt_x(2) {
        Some(weight) => logs * class_weights(weight, logs.rank(), at),
        None => logs,
    };
    let skipped = op!(eq(target, ignored));
    let loss = op!(masked_fill(-weighted.sum_over(&[at as i64], false), skipped, 0));
    match (m.int(3), m.opt_x(2)) {
        (NONE, _) => loss,
        (MEAN, Some(weight)) => op!(sum(loss, Arg::None)) / op!(sum(weights(weight, target, ignored), Arg::None)),
        (MEAN, None) => op!(sum(loss, Arg::None)) / op!(sum(op!(ne(target, ignored)), Arg::None)),
        _ => op!(sum(loss, Arg::None)),
    }
}
