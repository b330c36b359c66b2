//! Bounds, and greatest and least elements. On ties, LibTorch shares the cotangent evenly among the elements, except
//! where the op gives an index: that element gets all of it.

use super::elementwise::picked;
use super::reductions::{reduced, unreduced};
use super::table;
use crate::ir::{Kind, TensorType};
use crate::ops::Infer;
use crate::ops::Rule::{Constant, Custom, Elementwise};
use crate::ops::formula::{Formula, Term, grads, op, rule};
use crate::ops::shapes::{Inferred, dim, dims, one, pointwise, reduce, refuse};

table! {
    "clamp": pointwise, Elementwise(grads!(|m| 0 => {
        let inside = op!(logical_and(op!(ge(m.x(0), m.arg(1))), op!(le(m.x(0), m.arg(2)))));
        picked(inside, m.g(), true)
    })), "2x3 -1 1 | 2x3 0.2 5.0";
    "clip": pointwise, Elementwise(grads!(|m| 0 => {
        let inside = op!(logical_and(op!(ge(m.x(0), m.arg(1))), op!(le(m.x(0), m.arg(2)))));
        picked(inside, m.g(), true)
    })), "2x3 -1 1";
    "clamp_min": pointwise, Elementwise(grads!(|m|
        0 => picked(op!(ge(m.x(0), m.arg(1))), m.g(), true))), "2x3 0.1";
    "clamp_max": pointwise, Elementwise(grads!(|m|
        0 => picked(op!(le(m.x(0), m.arg(1))), m.g(), true))), "2x3 0.1";
    "clamp_min_tensor": pointwise, Elementwise(grads!(|m|
        0 => picked(op!(ge_tensor(m.x(0), m.x(1))), m.g(), true),
        1 => picked(op!(lt_tensor(m.x(0), m.x(1))), m.g(), true))), "2x3 2x3 | 2x3 3";
    "clamp_max_tensor": pointwise, Elementwise(grads!(|m|
        0 => picked(op!(le_tensor(m.x(0), m.x(1))), m.g(), true),
        1 => picked(op!(gt_tensor(m.x(0), m.x(1))), m.g(), true))), "2x3 2x3 | 2x3 3";
    "maximum": pointwise, Elementwise(rule!(|m| greater(m, true))), "2x3 2x3 | 2x3 3";
    "minimum": pointwise, Elementwise(rule!(|m| greater(m, false))), "2x3 2x3 | 2x3 3";
    "max_other": pointwise, Elementwise(rule!(|m| greater(m, true))), "2x3 2x3 | 2x3 3";
    "min_other": pointwise, Elementwise(rule!(|m| greater(m, false))), "2x3 2x3 | 2x3 3";
    "amax": extremum, Custom(grads!(|m| 0 => shared(m))), "2x3 [1] false | 2x3x2 [0,-1] true | 2x3 [] false";
    "amin": extremum, Custom(grads!(|m| 0 => shared(m))), "2x3 [1] false | 2x3x2 [0,-1] true | 2x3 [] false";
    "max": whole, Custom(grads!(|m| 0 => shared_by_all(m))), "3 | .";
    "min": whole, Custom(grads!(|m| 0 => shared_by_all(m))), "2x3 | .";
    "max_dim": indexed, Custom(rule!(|m| chosen(m, m.int(1), m.flag(2)))), "2x3 1 false | 2x3 -2 true | . 0 false";
    "min_dim": indexed, Custom(rule!(|m| chosen(m, m.int(1), m.flag(2)))), "2x3 1 false | 2x3 -2 true | . 0 false";
    "sort": |cx| { let x = cx.tensor(0); dim(cx.int(1), x.rank())?; with_indices(x) },
        Custom(rule!(|m| chosen(m, m.int(1), true))), "2x3 1 false | 2x3 -2 true";
    "topk": topk, Custom(rule!(|m| chosen(m, m.int(2), true))), "2x4 2 1 true true | 4x2 3 -2 false true";
    "argmax": index, Constant, "";
    "argmin": index, Constant, "";
}

/// The greater (or lesser) of two tensors; ties are shared.
fn greater(m: &Formula<'_, '_>, greater: bool) {
    let (a, b) = (m.x(0), m.x(1));
    let tie = op!(eq_tensor(a, b));
    let [more, less] = [op!(gt_tensor(a, b)), op!(lt_tensor(a, b))];
    let [first_loses, second_loses] = if greater { [less, more] } else { [more, less] };
    // Where one of them is NaN, neither loses and both get the cotangent.
    for (i, loses) in [(0, first_loses), (1, second_loses)] {
        if m.wants(i) {
            let share = op!(where_self(tie, m.g() / 2.0, m.g()));
            m.give(i, picked(loses, share, false));
        }
    }
}

fn over(m: &Formula<'_, '_>) -> Option<(Vec<i64>, bool)> {
    Some((m.ints(1), m.flag(2)))
}

/// Evenly to all elements that equal the extremum.
fn shared<'m>(m: &'m Formula<'_, '_>) -> Term<'m> {
    let (x, over) = (m.x(0), over(m));
    let shape = x.shape();
    let all: Vec<i64> = reduced(&shape, &over).into_iter().map(|d| d as i64).collect();
    let mask = op!(eq_tensor(x, unreduced(m.y(), &shape, &over)));
    let g = unreduced(m.g(), &shape, &over);
    g * mask / mask.sum_over(&all, true)
}

fn shared_by_all<'m>(m: &'m Formula<'_, '_>) -> Term<'m> {
    let (x, y) = (m.x(0), m.y());
    let both_nan = op!(logical_and(op!(isnan(x)), op!(isnan(y))));
    let mask = op!(logical_or(op!(eq_tensor(x, y)), both_nan));
    mask * (m.g() / op!(sum(mask, crate::ir::Arg::None)))
}

/// To the elements that the op's indices name.
fn chosen(m: &Formula<'_, '_>, at: i64, kept: bool) {
    if !m.wants(0) {
        return;
    }
    let (x, g, indices) = (m.x(0), m.g(), m.y_of(1));
    let (mut shape, rank) = (g.shape(), x.rank());
    if !kept && rank > 0 {
        shape.insert(dim(at, rank).unwrap_or_default(), 1);
    }
    let (g, indices) = (g.reshaped(&shape), indices.reshaped(&shape));
    m.give(0, op!(scatter_add(op!(zeros_like(x)), at, indices, g)));
}

fn extremum(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    let dims = dims(cx.ints(1), x.rank())?;
    if dims.iter().any(|d| x.shape[*d] == 0) {
        return refuse("an extremum of nothing");
    }
    one(x.kind, reduce(&x.shape, &dims, cx.flag(2)))
}

fn whole(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    if x.numel() == 0 {
        return refuse("an extremum of nothing");
    }
    one(x.kind, [])
}

/// Values, then indices.
fn with_indices(values: TensorType) -> Inferred {
    let indices = TensorType::new(Kind::I64, values.shape.clone());
    Ok(vec![values, indices])
}

fn indexed(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    let at = dim(cx.int(1), x.rank())?;
    if x.shape.get(at) == Some(&0) {
        return refuse("an extremum of nothing");
    }
    with_indices(TensorType::new(x.kind, reduce(&x.shape, &[at], cx.flag(2))))
}

fn topk(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    let at = dim(cx.int(2), x.rank())?;
    let n = x.shape.get(at).copied().unwrap_or(1);
    if !(0..=n).contains(&cx.int(1)) {
        return refuse(format!("topk of {} among {n}", cx.int(1)));
    }
    if let Some(n) = x.shape.get_mut(at) {
        *n = cx.int(1);
    }
    with_indices(x)
}

fn index(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    let shape = match cx.opt_int(1) {
        Some(at) => reduce(&x.shape, &[dim(at, x.rank())?], cx.flag(2)),
        None if cx.flag(2) => vec![1; x.rank()],
        None => vec![],
    };
    one(Kind::I64, shape)
}
