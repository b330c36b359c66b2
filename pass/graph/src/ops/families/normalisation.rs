//! Softmax and layer normalisation.

use super::{Rewrite, table};
use crate::ir::Kind;
use crate::ops::Infer;
use crate::ops::Rule::{Composite, Custom};
use crate::ops::formula::{Formula, Term, grads, op, rule};
use crate::ops::shapes::{Inferred, dim, like, one, refuse};

table! {
    "softmax": |cx| softmax(cx, 2), Custom(grads!(|m|
        0 => op!(_softmax_backward_data(m.g(), m.y(), m.arg(1), m.y().kind())))),
        "2x3 1 - | 2x3x2 -2 - | . 0 - | 2x3 0 f64";
    "log_softmax": |cx| softmax(cx, 2), Custom(grads!(|m|
        0 => op!(_log_softmax_backward_data(m.g(), m.y(), m.arg(1), m.y().kind())))),
        "2x3 1 - | 2x3x2 -2 - | . 0 - | 2x3 0 f64";
    "_softmax": |cx| softmax(cx, 1), Custom(grads!(|m|
        0 => op!(_softmax_backward_data(m.g(), m.y(), m.arg(1), m.y().kind())))), "2x3 1 false";
    "_log_softmax": |cx| softmax(cx, 1), Custom(grads!(|m|
        0 => op!(_log_softmax_backward_data(m.g(), m.y(), m.arg(1), m.y().kind())))), "2x3 1 false";
    // x = y(g - sum(gy))
    "_softmax_backward_data": like, Custom(grads!(|m|
        0 => op!(_softmax_backward_data(m.g(), m.x(1), m.arg(2), m.arg(3))),
        1 => m.g() * (m.x(0) - total(m, m.x(0) * m.x(1))) - m.x(0) * total(m, m.g() * m.x(1)))), "2x3 2x3 1 f64";
    // x = g - exp(y) sum(g)
    "_log_softmax_backward_data": like, Custom(grads!(|m|
        0 => m.g() - total(m, m.g() * op!(exp(m.x(1)))),
        1 => -m.g() * op!(exp(m.x(1))) * total(m, m.x(0)))), "2x3 2x3 1 f64";
    "layer_norm": layer_norm, Composite(layer_norm_parts),
        "2x3 [3] 3 3 1e-5 true | 2x2x3 [2,3] 2x3 2x3 1e-5 true | 2x3 [3] - - 0.1 true | 2x3 [3] 3 - 1e-5 false";
    "native_layer_norm": native_layer_norm, Custom(rule!(|m| native_layer_norm_rule(m))),
        "2x3 [3] 3 3 1e-5 | 2x2x3 [2,3] 2x3 2x3 1e-5 | 2x3 [3] - - 0.1 | 2x3 [3] - 3 1e-5";
}

/// In the kind in position `kind`, if one is given there.
fn softmax(cx: &Infer<'_>, kind: usize) -> Inferred {
    let x = cx.tensor(0);
    dim(cx.int(1), x.rank())?;
    let kind = cx.kind(kind).unwrap_or(x.kind);
    if !kind.is_float() {
        return refuse(format!("{} of {}", cx.op, kind.name()));
    }
    one(kind, x.shape)
}

/// Sum over the dimension in position 2.
fn total<'m>(m: &Formula<'_, '_>, x: Term<'m>) -> Term<'m> {
    x.sum_over(&[m.int(2)], true)
}

fn layer_norm(cx: &Infer<'_>) -> Inferred {
    Ok(native_layer_norm(cx)?[..1].to_vec())
}

/// The result, then mean and reciprocal deviation, which have extent one in the normalised dimensions.
fn native_layer_norm(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    let over = cx.ints(1).unwrap_or_default();
    let (weight, bias) = (cx.opt_tensor(2), cx.opt_tensor(3));
    if over.is_empty() || !x.shape.ends_with(&over) {
        return refuse(format!("layer norm of {:?} over {over:?}", x.shape));
    }
    if [&weight, &bias].into_iter().flatten().any(|t| t.shape != over) {
        return refuse(format!("layer norm over {over:?} with parameters of other shapes"));
    }
    if !x.kind.is_float() {
        return refuse(format!("layer norm of {}", x.kind.name()));
    }
    let parameter = weight.or(bias).map_or(x.kind, |t| t.kind);
    let mixed = matches!(x.kind, Kind::F16 | Kind::BF16) && parameter == Kind::F32;
    if parameter != x.kind && !mixed {
        return refuse(format!("layer norm of {} by {}", x.kind.name(), parameter.name()));
    }
    let mut moments = x.clone();
    moments.kind = parameter;
    moments.shape[x.rank() - over.len()..].fill(1);
    Ok(vec![x, moments.clone(), moments])
}

fn layer_norm_parts<'m>(m: &'m Rewrite<'_>) -> Term<'m> {
    m.x(0)
        .call_all("native_layer_norm", vec![m.arg(1), m.arg(2), m.arg(3), m.arg(4)])[0]
}

/// With n = (x - mean)·r and r = 1/sqrt(var + eps): y = n·w + b.
fn native_layer_norm_rule<'m>(m: &'m Formula<'_, '_>) {
    let x = m.x(0);
    let over: Vec<i64> = m.ints(1);
    let count: i64 = over.iter().product();
    let inner: Vec<i64> = (1..=over.len() as i64).map(|d| -d).collect();
    let outer: Vec<i64> = (0..(x.rank() - over.len()) as i64).collect();
    // LibTorch's kernel computes halves in single precision.
    let kind = match x.kind() {
        Kind::F16 | Kind::BF16 => Kind::F32,
        kind => kind,
    };
    let (x, mean, r) = (x.cast(kind), m.y_of(1).cast(kind), m.y_of(2).cast(kind));
    let normal = || (x - mean) * r;
    let average = |t: Term<'m>| op!(div_scalar(t.sum_over(&inner, true), count));

    if let Some(g) = m.bar(0).map(|g| g.cast(kind)) {
        if m.wants(0) {
            let g = match m.opt_x(2) {
                Some(w) => g * w.cast(kind),
                None => g,
            };
            let n = normal();
            m.give(0, (g - average(g) - n * average(g * n)) * r);
        }
        if m.wants(2) {
            m.give(2, (g * normal()).sum_over(&outer, false));
        }
        if m.wants(3) {
            m.give(3, g.sum_over(&outer, false));
        }
    }
    // The moments are read by the backward alone: their cotangents come from a second derivative.
    if m.wants(0) {
        if let Some(g) = m.bar(1) {
            m.give(0, op!(div_scalar(g.cast(kind), count)).expanded(&x.shape()));
        }
        if let Some(g) = m.bar(2) {
            // dr/dx = -r^2 n / count
            m.give(0, normal() * op!(div_scalar(-g.cast(kind) * r * r, count)));
        }
    }
    if m.bar(0).is_none() {
        m.give_none(2);
        m.give_none(3);
    }
}
