//! Tensors taken apart, rearranged, padded and put together: linear, beyond the views of [`super::linear`].

use super::table;
use crate::ir::{Arg, Kind, TensorType};
use crate::ops::Rule::{Constant, Linear};
use crate::ops::formula::{Formula, Term, grads, op, rule};
use crate::ops::shapes::{Inferred, broadcast, dim, dims, fill_in, like, one, refuse};
use crate::ops::{Infer, ShapeError};

table! {
    "split": split, Linear(rule!(|m| joined(m, 2))), "5x2 2 0 | 2x4 2 -1";
    "split_with_sizes": split_with_sizes, Linear(rule!(|m| joined(m, 2))), "5x2 [2,0,3] 0 | 2x4 [1,3] -1";
    "chunk": chunk, Linear(rule!(|m| joined(m, 2))), "5x2 2 0 | 2x4 3 -1";
    "unbind": unbind, Linear(rule!(|m| stacked(m))), "2x3 0 | 2x3 -1";
    "flip": flip, Linear(grads!(|m| 0 => op!(flip(m.g(), m.arg(1))))), "2x3 [1] | 2x3 [0,-1]";
    "roll": roll, Linear(grads!(|m| 0 => {
        let back: Vec<i64> = m.ints(1).iter().map(|s| -s).collect();
        op!(roll(m.g(), &back, m.arg(2)))
    })), "2x3 [1] [1] | 2x3 [1,-2] [0,1] | 2x3 [2] []";
    "tril": triangle, Linear(grads!(|m| 0 => op!(tril(m.g(), m.arg(1))))), "3x3 0 | 2x3x4 -1";
    "triu": triangle, Linear(grads!(|m| 0 => op!(triu(m.g(), m.arg(1))))), "3x3 0 | 2x3x4 1";
    "repeat": repeat, Linear(grads!(|m| 0 => repeated(m))), "2x3 [2,2] | 3 [2,1,2] | . [3] | 2x3 [1,1]";
    "constant_pad_nd": pad, Linear(grads!(|m| 0 => unpadded(m))), "2x3 [1,2] | 2x4 [-1,1,2,0] | 2x3 [0,0]";
    "pad": pad, Linear(rule!(|m| match m.arg(2) {
        Arg::Str(mode) if mode == "constant" && m.wants(0) => m.give(0, unpadded(m)),
        _ => m.leave_to_libtorch(),
    })), "2x3 [1,2] \"constant\" - | 2x3 [1,2] \"constant\" 1.5";
    "broadcast_to": broadcast_to, Linear(grads!(|m| 0 => m.g())), "3 [2,3] | 2x1 [2,3]";
    "swapaxes": swap, Linear(grads!(|m| 0 => op!(swapaxes(m.g(), m.arg(1), m.arg(2))))), "2x3x4 0 2";
    "swapdims": swap, Linear(grads!(|m| 0 => op!(swapdims(m.g(), m.arg(1), m.arg(2))))), "2x3x4 0 -1";
    "numpy_t": |cx| { let mut x = cx.tensor(0); x.shape.reverse(); Ok(vec![x]) },
        Linear(grads!(|m| 0 => op!(numpy_t(m.g())))), "2x3x4 | .";
    "unflatten": unflatten, Linear(grads!(|m| 0 => m.g().reshaped(&m.x(0).shape()))), "2x6 1 [2,-1] | 6 0 [2,3]";
    "reshape_as": |cx| {
            let [x, other] = [cx.tensor(0), cx.tensor(1)];
            one(x.kind, fill_in(&other.shape, x.numel())?)
        },
        Linear(rule!(|m| { m.give_none(1); m.give(0, m.g().reshaped(&m.x(0).shape())); })), "2x3 3x2";
    "type_as": |cx| one(cx.tensor(1).kind, cx.tensor(0).shape),
        Linear(rule!(|m| { m.give_none(1); m.give(0, m.g()); })), "2x3 2";
    "diagonal": diagonal, Linear(grads!(|m| 0 => op!(diagonal_backward(
        m.g(), &m.x(0).shape(), m.arg(1), m.arg(2), m.arg(3))))), "3x4 0 0 1 | 3x4 1 0 1 | 2x3x3 -1 -1 -2";
    "diagonal_backward": |cx| one(cx.tensor(0).kind, cx.ints(1).unwrap_or_default()),
        Linear(grads!(|m| 0 => op!(diagonal(m.g(), m.arg(2), m.arg(3), m.arg(4))))), "3 [3,4] 1 0 1";
    "scatter": scatter, Linear(grads!(|m|
        0 => op!(scatter_value(m.g(), m.arg(1), m.x(2), 0)),
        3 => op!(gather(m.g(), m.arg(1), m.x(2), false)))), "4x3 0 1x3%4 1x3";
    "scatter_value": scatter, Linear(grads!(|m| 0 => op!(scatter_value(m.g(), m.arg(1), m.x(2), 0)))),
        "4x3 0 2x3%4 1.5";
    "fill_tensor": like, Linear(grads!(|m| 0 => op!(zeros_like(m.x(0))), 1 => m.g())), "2x3 .";
    "zero": like, Constant, "2x3";
}

fn pieces(x: &TensorType, at: usize, sizes: impl IntoIterator<Item = i64>) -> Vec<TensorType> {
    let piece = |n| {
        let mut piece = x.clone();
        piece.shape[at] = n;
        piece
    };
    sizes.into_iter().map(piece).collect()
}

/// The pieces of an extent `n` by `size`; the last may be smaller.
fn even(n: i64, size: i64) -> Vec<i64> {
    let mut sizes = vec![size; (n / size) as usize];
    if n % size > 0 || n == 0 {
        sizes.push(n % size);
    }
    sizes
}

fn split(cx: &Infer<'_>) -> Inferred {
    let (x, size) = (cx.tensor(0), cx.int(1));
    let at = some_dim(cx, &x, 2)?;
    match (size, x.shape[at]) {
        (0, 0) => Ok(vec![x]),
        (1.., n) => Ok(pieces(&x, at, even(n, size))),
        _ => refuse(format!("split by {size}")),
    }
}

fn split_with_sizes(cx: &Infer<'_>) -> Inferred {
    let (x, sizes) = (cx.tensor(0), cx.ints(1).unwrap_or_default());
    let at = some_dim(cx, &x, 2)?;
    if sizes.iter().any(|n| *n < 0) || sizes.iter().sum::<i64>() != x.shape[at] {
        return refuse(format!("split of {} into {sizes:?}", x.shape[at]));
    }
    Ok(pieces(&x, at, sizes))
}

fn chunk(cx: &Infer<'_>) -> Inferred {
    let (x, count) = (cx.tensor(0), cx.int(1));
    let at = some_dim(cx, &x, 2)?;
    if count < 1 {
        return refuse(format!("{count} chunks"));
    }
    match x.shape[at] {
        0 => Ok(vec![x; count as usize]),
        n => Ok(pieces(&x, at, even(n, (n + count - 1) / count))),
    }
}

/// The dimension in position `i`, of a tensor that has one.
fn some_dim(cx: &Infer<'_>, x: &TensorType, i: usize) -> Result<usize, ShapeError> {
    if x.rank() == 0 {
        return refuse(format!("{} of a 0-dim tensor", cx.op));
    }
    dim(cx.int(i), x.rank())
}

fn unbind(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    let at = some_dim(cx, &x, 1)?;
    let n = x.shape.remove(at);
    Ok(vec![x; n as usize])
}

/// The cotangents of all results, zeros where there is none.
fn all_bars<'m>(m: &'m Formula<'_, '_>) -> Vec<Term<'m>> {
    (0..m.result_count())
        .map(|k| m.bar(k).unwrap_or_else(|| op!(zeros_like(m.y_of(k)))))
        .collect()
}

fn joined(m: &Formula<'_, '_>, at: usize) {
    if m.wants(0) {
        let bars = all_bars(m);
        m.give(0, bars[0].apply("cat", vec![bars.into(), m.arg(at)]));
    }
}

fn stacked(m: &Formula<'_, '_>) {
    if m.wants(0) {
        let bars = all_bars(m);
        m.give(0, bars[0].apply("stack", vec![bars.into(), m.arg(1)]));
    }
}

fn flip(cx: &Infer<'_>) -> Inferred {
    dims(cx.ints(1), cx.tensor(0).rank())?;
    like(cx)
}

fn roll(cx: &Infer<'_>) -> Inferred {
    let (x, shifts, over) = (
        cx.tensor(0),
        cx.ints(1).unwrap_or_default(),
        cx.ints(2).unwrap_or_default(),
    );
    let fits = if over.is_empty() {
        shifts.len() == 1
    } else {
        shifts.len() == over.len()
    };
    if !fits {
        return refuse(format!("roll by {shifts:?} over {over:?}"));
    }
    for d in over {
        dim(d, x.rank())?;
    }
    Ok(vec![x])
}

fn triangle(cx: &Infer<'_>) -> Inferred {
    if cx.tensor(0).rank() < 2 {
        return refuse(format!("{} of a tensor of rank {}", cx.op, cx.tensor(0).rank()));
    }
    like(cx)
}

fn repeat(cx: &Infer<'_>) -> Inferred {
    let (x, times) = (cx.tensor(0), cx.ints(1).unwrap_or_default());
    let Some(extra) = times.len().checked_sub(x.rank()) else {
        return refuse(format!("repeat of rank {} by {times:?}", x.rank()));
    };
    if times.iter().any(|n| *n < 0) {
        return refuse(format!("repeat by {times:?}"));
    }
    let extent = |d: usize| if d < extra { 1 } else { x.shape[d - extra] };
    one(
        x.kind,
        (0..times.len()).map(|d| times[d] * extent(d)).collect::<Vec<_>>(),
    )
}

/// Sum over the repetitions: each dimension is seen as (times, extent).
fn repeated<'m>(m: &'m Formula<'_, '_>) -> Term<'m> {
    let (x, times) = (m.x(0).shape(), m.ints(1));
    if times.contains(&0) {
        return op!(zeros_like(m.x(0)));
    }
    let extra = times.len() - x.len();
    let (mut shape, mut sums) = (vec![], vec![]);
    for (d, n) in times.iter().enumerate() {
        sums.push(shape.len() as i64);
        shape.push(*n);
        shape.extend((d >= extra).then(|| x[d - extra]));
    }
    m.g().reshaped(&shape).sum_over(&sums, false)
}

fn pad(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    let widths = cx.ints(1).unwrap_or_default();
    if !widths.len().is_multiple_of(2) || widths.len() / 2 > x.rank() {
        return refuse(format!("padding {widths:?} of rank {}", x.rank()));
    }
    for (n, pair) in x.shape.iter_mut().rev().zip(widths.chunks(2)) {
        *n += pair[0] + pair[1];
        if *n < 0 {
            return refuse(format!("padding {widths:?} leaves a negative extent"));
        }
    }
    Ok(vec![x])
}

fn unpadded<'m>(m: &'m Formula<'_, '_>) -> Term<'m> {
    let back: Vec<i64> = m.ints(1).iter().map(|n| -n).collect();
    op!(constant_pad_nd(m.g(), &back))
}

fn broadcast_to(cx: &Infer<'_>) -> Inferred {
    let (x, size) = (cx.tensor(0), cx.ints(1).unwrap_or_default());
    match broadcast(&x.shape, &size) {
        Ok(shape) if shape == size => one(x.kind, size),
        _ => refuse(format!("broadcast of {:?} to {size:?}", x.shape)),
    }
}

fn swap(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    let [a, b] = [dim(cx.int(1), x.rank())?, dim(cx.int(2), x.rank())?];
    if x.rank() > 0 {
        x.shape.swap(a, b);
    }
    Ok(vec![x])
}

fn unflatten(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    let at = some_dim(cx, &x, 1)?;
    let sizes = fill_in(&cx.ints(2).unwrap_or_default(), x.shape[at])?;
    if sizes.is_empty() {
        return refuse("unflatten into no dimensions");
    }
    x.shape.splice(at..=at, sizes);
    Ok(vec![x])
}

fn diagonal(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    let (offset, a, b) = (cx.int(1), some_dim(cx, &x, 2)?, some_dim(cx, &x, 3)?);
    if a == b {
        return refuse("a diagonal of one dimension with itself");
    }
    let (rows, columns) = (x.shape[a], x.shape[b]);
    let length = if offset >= 0 {
        rows.min(columns - offset)
    } else {
        (rows + offset).min(columns)
    };
    x.shape.remove(a.max(b));
    x.shape.remove(a.min(b));
    x.shape.push(length.max(0));
    Ok(vec![x])
}

fn scatter(cx: &Infer<'_>) -> Inferred {
    if !matches!(cx.tensor(2).kind, Kind::I64 | Kind::I32) {
        return refuse("scatter with indices that are not integers");
    }
    dim(cx.int(1), cx.tensor(0).rank())?;
    like(cx)
}
