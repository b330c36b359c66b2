//! What functionalization makes of writes: copies, and tensors with a part replaced.

use super::table;
use crate::ir::TensorType;
use crate::ops::Rule::Linear;
use crate::ops::formula::{grads, op};
use crate::ops::shapes::{Inferred, dim, like, refuse};
use crate::ops::{Infer, ShapeError};

table! {
    "alias_copy": like, Linear(grads!(|m| 0 => m.g())), "2x3";
    "select_scatter": select_scatter, Linear(grads!(|m|
        0 => op!(select_scatter(m.g(), op!(zeros_like(m.x(1))), m.arg(2), m.arg(3))),
        1 => op!(select(m.g(), m.arg(2), m.arg(3))))), "2x5 2 1 3 | 4x2 2 0 -1";
    "slice_scatter": slice_scatter, Linear(grads!(|m|
        0 => op!(slice_scatter(m.g(), op!(zeros_like(m.x(1))), m.arg(2), m.arg(3), m.arg(4), m.arg(5))),
        1 => op!(slice(m.g(), m.arg(2), m.arg(3), m.arg(4), m.arg(5))))), "2x5 2x3 1 1 4 1 | 2x5 2x3 -1 - - 2 | 4x5 4x2 1 1 4 2";
}

/// The written tensor, if the part has the shape `part`.
fn written(cx: &Infer<'_>, part: &TensorType) -> Inferred {
    let (x, source) = (cx.tensor(0), cx.tensor(1));
    if source.shape != part.shape {
        return refuse(format!("{} of {:?} into {:?}", cx.op, source.shape, part.shape));
    }
    Ok(vec![x])
}

fn part_dim(cx: &Infer<'_>, x: &TensorType) -> Result<usize, ShapeError> {
    if x.rank() == 0 {
        return Err(ShapeError(format!("{} into a 0-dim tensor", cx.op)));
    }
    dim(cx.int(2), x.rank())
}

fn select_scatter(cx: &Infer<'_>) -> Inferred {
    let mut part = cx.tensor(0);
    let at = part_dim(cx, &part)?;
    let (n, i) = (part.shape[at], cx.int(3));
    if !(-n..n).contains(&i) {
        return refuse(format!("select_scatter at {i} among {n}"));
    }
    part.shape.remove(at);
    written(cx, &part)
}

fn slice_scatter(cx: &Infer<'_>) -> Inferred {
    let mut part = cx.tensor(0);
    let at = part_dim(cx, &part)?;
    let (n, step) = (part.shape[at], cx.int(5));
    if step <= 0 {
        return refuse("slice_scatter with a step that is not positive");
    }
    let clamped = |i: i64| if i < 0 { (i + n).max(0) } else { i.min(n) };
    let start = clamped(cx.opt_int(3).unwrap_or(0));
    let end = clamped(cx.opt_int(4).unwrap_or(i64::MAX));
    part.shape[at] = ((end - start).max(0) + step - 1) / step;
    written(cx, &part)
}
