//! Sums and means.

use super::linear::sum_kind;
use super::table;
use crate::ops::Infer;
use crate::ops::Rule::Linear;
use crate::ops::formula::{Formula, Term, grads, op};
use crate::ops::shapes::{Inferred, dims, one, reduce, refuse};

table! {
    "sum": sum, Linear(grads!(|m| 0 => spread(m, None))), "2x3 - | . - | 2x3 f64";
    "sum_dim_intlist": sum_dims, Linear(grads!(|m| 0 => spread(m, Some((m.ints(1), m.flag(2)))))),
        "2x3 [1] false - | 2x3x2 [0,-1] true - | 2x3 - false - | 2x3 [] true f64 | . [0] false -";
    "mean": mean, Linear(grads!(|m| 0 => averaged(m, None))), "2x3 - | . - | 2x3 f64";
    "mean_dim": mean_dims, Linear(grads!(|m| 0 => averaged(m, Some((m.ints(1), m.flag(2)))))),
        "2x3 [1] false - | 2x3x2 [0,-1] true - | 2x3 - false - | . [0] false -";
}

fn sum(cx: &Infer<'_>) -> Inferred {
    one(cx.kind(1).unwrap_or(sum_kind(cx.tensor(0).kind)), [])
}

fn sum_dims(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    let dims = dims(cx.ints(1), x.rank())?;
    one(
        cx.kind(3).unwrap_or(sum_kind(x.kind)),
        reduce(&x.shape, &dims, cx.flag(2)),
    )
}

fn mean(cx: &Infer<'_>) -> Inferred {
    averages(cx, 1)?;
    one(cx.kind(1).unwrap_or(cx.tensor(0).kind), [])
}

fn mean_dims(cx: &Infer<'_>) -> Inferred {
    averages(cx, 3)?;
    let x = cx.tensor(0);
    let dims = dims(cx.ints(1), x.rank())?;
    one(cx.kind(3).unwrap_or(x.kind), reduce(&x.shape, &dims, cx.flag(2)))
}

/// Only floats have a mean.
fn averages(cx: &Infer<'_>, kind: usize) -> Result<(), crate::ops::ShapeError> {
    let kind = cx.kind(kind).unwrap_or(cx.tensor(0).kind);
    if kind.is_differentiable() {
        Ok(())
    } else {
        refuse(format!("mean of {}", kind.name()))
    }
}

/// The cotangent of a reduction over those dimensions, with extent one where it was reduced.
pub(super) fn unreduced<'m>(g: Term<'m>, shape: &[i64], over: &Option<(Vec<i64>, bool)>) -> Term<'m> {
    match over {
        Some((list, false)) if !list.is_empty() => g.reshaped(&reduce(shape, &reduced(shape, over), true)),
        _ => g,
    }
}

/// The dimensions that a reduction goes over. The shape rule has accepted them.
pub(super) fn reduced(shape: &[i64], over: &Option<(Vec<i64>, bool)>) -> Vec<usize> {
    dims(over.as_ref().map(|o| o.0.clone()), shape.len()).unwrap_or_default()
}

fn spread<'m>(m: &'m Formula<'_, '_>, over: Option<(Vec<i64>, bool)>) -> Term<'m> {
    let x = m.x(0);
    unreduced(m.g().cast(x.kind()), &x.shape(), &over).expanded(&x.shape())
}

fn averaged<'m>(m: &'m Formula<'_, '_>, over: Option<(Vec<i64>, bool)>) -> Term<'m> {
    let x = m.x(0);
    let shape = x.shape();
    let count: i64 = reduced(&shape, &over).into_iter().map(|d| shape[d]).product();
    let g = op!(div_scalar(m.g(), count)).cast(x.kind());
    unreduced(g, &shape, &over).expanded(&shape)
}
