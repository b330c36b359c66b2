//! Lookups by integer tensors.

use super::table;
use crate::ir::Kind;
use crate::ops::Infer;
use crate::ops::Rule::Linear;
use crate::ops::formula::{Formula, grads, op, rule};
use crate::ops::shapes::{Inferred, dim, one, refuse};

table! {
    "embedding": embedding, Linear(rule!(|m| embedding_rule(m))),
        "5x3 2x4%5 -1 false false | 5x3 4%4 4 false false";
    "embedding_dense_backward": embedding_transpose, Linear(rule!(|m| embedding_transpose_rule(m))),
        "2x4x3 2x4%5 5 -1 false | 4x3 4%5 5 2 false";
    "index_select": index_select, Linear(grads!(|m| 0 => {
        let x = m.x(0);
        op!(index_add(op!(zeros_like(x)), m.arg(1), m.x(2), m.g()))
    })), "4x3 0 5%4 | 2x4 -1 2%4";
    "index_add": index_add, Linear(grads!(|m|
        0 => m.g(),
        3 => op!(index_select(m.g(), m.arg(1), m.x(2))).reshaped(&m.x(3).shape()))), "4x3 0 5%4 5x3 | 2x4 -1 2%4 2x2";
    "gather": gather, Linear(grads!(|m| 0 => {
        let x = m.x(0);
        op!(scatter_add(op!(zeros_like(x)), m.arg(1), m.x(2).cast(Kind::I64), m.g()))
    })), "4x3 0 2x3%4 false | 2x4 -1 2x5%4 false";
    "scatter_add": scatter_add, Linear(grads!(|m|
        0 => m.g(),
        3 => op!(gather(m.g(), m.arg(1), m.x(2), false)))), "4x3 0 2x3%4 2x3 | 2x4 -1 2x5%4 2x5";
}

fn index_kind(cx: &Infer<'_>, i: usize) -> Result<(), crate::ops::ShapeError> {
    match cx.tensor(i).kind {
        Kind::I32 | Kind::I64 => Ok(()),
        kind => refuse(format!("{} with indices of {}", cx.op, kind.name())),
    }
}

fn embedding(cx: &Infer<'_>) -> Inferred {
    index_kind(cx, 1)?;
    let [weight, indices] = [cx.tensor(0), cx.tensor(1)];
    let [_, width] = weight.shape[..] else {
        return refuse(format!("embedding in a tensor of rank {}", weight.rank()));
    };
    let mut shape = indices.shape;
    shape.push(width);
    one(weight.kind, shape)
}

fn embedding_rule(m: &Formula<'_, '_>) {
    if m.flag(4) {
        m.refuse("its `sparse` gradient is a sparse tensor; pass `sparse` = false");
    } else if m.wants(0) {
        let rows = m.x(0).shape()[0];
        m.give(
            0,
            op!(embedding_dense_backward(m.g(), m.x(1), rows, m.arg(2), m.arg(3))),
        );
    }
}

fn embedding_transpose(cx: &Infer<'_>) -> Inferred {
    index_kind(cx, 1)?;
    let g = cx.tensor(0);
    one(g.kind, [cx.int(2), g.shape.last().copied().unwrap_or(1)])
}

fn embedding_transpose_rule(m: &Formula<'_, '_>) {
    if m.flag(4) {
        return m.refuse("a second derivative of `embedding` with `scale_grad_by_freq`, which LibTorch lacks as well");
    }
    if m.wants(0) {
        let (indices, padding) = (m.x(1), m.int(3));
        let mut bar = op!(embedding(m.g(), indices, padding, false, false));
        if padding >= 0 {
            bar = op!(masked_fill(bar, op!(unsqueeze(op!(eq(indices, padding)), -1)), 0));
        }
        m.give(0, bar);
    }
}

fn index_select(cx: &Infer<'_>) -> Inferred {
    index_kind(cx, 2)?;
    let (mut x, index) = (cx.tensor(0), cx.tensor(2));
    let at = dim(cx.int(1), x.rank())?;
    if index.rank() > 1 {
        return refuse("index_select by a matrix");
    }
    if x.rank() > 0 {
        x.shape[at] = index.numel();
    } else if index.numel() != 1 {
        return refuse("index_select of several items of a 0-dim tensor");
    }
    Ok(vec![x])
}

fn index_add(cx: &Infer<'_>) -> Inferred {
    index_kind(cx, 2)?;
    let (x, index, source) = (cx.tensor(0), cx.tensor(2), cx.tensor(3));
    let at = dim(cx.int(1), x.rank())?;
    cx.same_kind(&[0, 3])?;
    let mut want = x.shape.clone();
    if let Some(n) = want.get_mut(at) {
        *n = index.numel();
    }
    if index.rank() > 1 || source.shape != want {
        return refuse(format!("index_add of {:?} for {want:?}", source.shape));
    }
    Ok(vec![x])
}

/// `small` fits in `large`, except along `at`.
fn within(cx: &Infer<'_>, small: &[i64], large: &[i64], at: Option<usize>) -> Result<(), crate::ops::ShapeError> {
    let [small_rank, large_rank] = [small.len().max(1), large.len().max(1)];
    let fits = small
        .iter()
        .zip(large)
        .enumerate()
        .all(|(d, (s, l))| Some(d) == at || s <= l);
    if small_rank == large_rank && fits {
        Ok(())
    } else {
        refuse(format!("{} with {small:?} in {large:?}", cx.op))
    }
}

fn gather(cx: &Infer<'_>) -> Inferred {
    // LibTorch's kernel takes bytes as indices, too.
    if cx.tensor(2).kind != Kind::U8 {
        index_kind(cx, 2)?;
    }
    let [x, index] = [cx.tensor(0), cx.tensor(2)];
    let at = dim(cx.int(1), x.rank())?;
    if index.numel() > 0 {
        within(cx, &index.shape, &x.shape, Some(at))?;
    }
    one(x.kind, index.shape)
}

fn scatter_add(cx: &Infer<'_>) -> Inferred {
    index_kind(cx, 2)?;
    let [x, index, source] = [cx.tensor(0), cx.tensor(2), cx.tensor(3)];
    let at = dim(cx.int(1), x.rank())?;
    cx.same_kind(&[0, 3])?;
    if index.numel() > 0 {
        within(cx, &index.shape, &x.shape, Some(at))?;
        within(cx, &index.shape, &source.shape, None)?;
    }
    Ok(vec![x])
}
