//! Linear functions of one tensor: views, reshapes, casts, pieces and their joins.

use super::table;
use crate::ir::{Arg, Kind, TensorType};
use crate::ops::Rule::{Constant, Linear};
use crate::ops::formula::{Formula, Term, grads, op, rule};
use crate::ops::shapes::{Inferred, dim, dims, fill_in, like, list_kind, one, reduce, refuse};
use crate::ops::{Infer, ShapeError};

table! {
    "view": |cx| reshaped(cx, 1), Linear(grads!(|m| 0 => m.g().reshaped(&m.x(0).shape()))), "2x3 [3,2] | 2x3 [-1]";
    "_unsafe_view": |cx| reshaped(cx, 1), Linear(grads!(|m| 0 => m.g().reshaped(&m.x(0).shape()))), "2x3 [3,2]";
    "reshape": |cx| reshaped(cx, 1), Linear(grads!(|m| 0 => m.g().reshaped(&m.x(0).shape()))), "2x3 [3,-1] | . [1]";
    "flatten": flatten, Linear(grads!(|m| 0 => m.g().reshaped(&m.x(0).shape()))), "2x3x2 0 -1 | 2x3x2 1 2 | . 0 -1";
    "t": transpose_2d, Linear(grads!(|m| 0 => op!(t(m.g())))), "2x3 | 3";
    "transpose": transpose, Linear(grads!(|m| 0 => op!(transpose(m.g(), m.arg(1), m.arg(2))))), "2x3x4 0 2 | 2x3 -1 0";
    "permute": permute, Linear(grads!(|m| 0 => op!(permute(m.g(), &inverse(&m.ints(1)))))), "2x3x4 [2,0,-2]";
    "unsqueeze": unsqueeze, Linear(grads!(|m| 0 => m.g().reshaped(&m.x(0).shape()))), "2x3 1 | 2x3 -1 | . 0";
    "squeeze": squeeze, Linear(grads!(|m| 0 => m.g().reshaped(&m.x(0).shape()))), "2x1x3x1";
    "squeeze_dim": squeeze_dim, Linear(grads!(|m| 0 => m.g().reshaped(&m.x(0).shape()))), "2x1x3 1 | 2x1x3 -1";
    "squeeze_dims": squeeze_dims, Linear(grads!(|m| 0 => m.g().reshaped(&m.x(0).shape()))), "2x1x3x1 [1,-2]";
    // The sweep sums what is given to the shape of the argument.
    "expand": expand, Linear(grads!(|m| 0 => m.g())), "3 [2,3] false | 2x1 [-1,3] false | . [2] false";
    "expand_as": like_second, Linear(rule!(|m| {
        m.give_none(1);
        m.give(0, m.g());
    })), "2x1 2x3";
    "view_as": like_second, Linear(rule!(|m| {
        m.give_none(1);
        if m.wants(0) {
            m.give(0, m.g().reshaped(&m.x(0).shape()));
        }
    })), "2x3 3x2";
    "contiguous": like, Linear(grads!(|m| 0 => m.g())), "2x3";
    "alias": like, Linear(grads!(|m| 0 => m.g())), "2x3";
    // The sweep casts what is given to the kind of the argument.
    "totype": cast, Linear(grads!(|m| 0 => m.g())), "2x3 f64 | 2x3 f32";
    "to": like, Linear(rule!(|m| to_device(m))), "2x3 cpu";
    "concat": cat, Linear(rule!(|m| cat_rule(m))), "{2x3 2x1} 1";
    "concatenate": cat, Linear(rule!(|m| cat_rule(m))), "{2x3 2x1} 1";
    "cat": cat, Linear(rule!(|m| cat_rule(m))), "{2x3 2x1 2x2} 1 | {2x3 1x3} -2 | {2x3 0} 1";
    "stack": stack, Linear(rule!(|m| stack_rule(m))), "{2x3 2x3} 0 | {2x3 2x3} -1 | {. .} 0";
    "slice": slice, Linear(grads!(|m| 0 => op!(slice_backward(
        m.g(), &m.x(0).shape(), m.arg(1), or(m.arg(2), 0), or(m.arg(3), i64::MAX), m.arg(4))))),
        "2x5 1 1 4 1 | 2x5 -1 - - 2 | 4x2 0 -3 9 2";
    "narrow": narrow, Linear(grads!(|m| 0 => narrow_transpose(m.g(), &m.x(0).ty(), m.int(1), m.int(2), m.int(3)))),
        "2x5 1 1 3 | 4x2 0 -3 2";
    "select": select, Linear(grads!(|m| 0 => op!(select_backward(m.g(), &m.x(0).shape(), m.arg(1), m.arg(2))))),
        "2x5 1 3 | 4x2 0 -1 | 4 0 2";
    "get": first, Linear(grads!(|m| 0 => op!(select_backward(m.g(), &m.x(0).shape(), 0, m.arg(1))))), "4x2 3 | 4 -1";
    "shallow_clone": like, Linear(grads!(|m| 0 => m.g())), "2x3";
    "slice_backward": sized, Linear(grads!(|m| 0 => op!(slice(m.g(), m.arg(2), m.arg(3), m.arg(4), m.arg(5))))),
        "2x3 [2,5] 1 1 4 1";
    "select_backward": sized, Linear(grads!(|m| 0 => op!(select(m.g(), m.arg(2), m.arg(3))))), "2 [2,5] 1 3";
    "sum_to_size": sum_to_size, Linear(grads!(|m| 0 => m.g().expanded(&m.x(0).shape()))), "2x3 [3] | 2x3 [2,1]";
    "detach": like, Constant, "2x3";
}

/// The integer, or what stands for it where it is absent.
fn or(arg: Arg, default: i64) -> Arg {
    if arg == Arg::None { Arg::Int(default) } else { arg }
}

fn reshaped(cx: &Infer<'_>, size: usize) -> Inferred {
    let x = cx.tensor(0);
    one(x.kind, fill_in(&cx.ints(size).unwrap_or_default(), x.numel())?)
}

fn flatten(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    let [start, end] = [dim(cx.int(1), x.rank())?, dim(cx.int(2), x.rank())?];
    if start > end {
        return refuse("flatten from a later to an earlier dimension");
    }
    if x.rank() == 0 {
        return one(x.kind, [1]);
    }
    let mut shape = x.shape[..start].to_vec();
    shape.push(x.shape[start..=end].iter().product());
    shape.extend(&x.shape[end + 1..]);
    one(x.kind, shape)
}

fn transpose_2d(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    if x.rank() > 2 {
        return refuse(format!("t of a tensor of rank {}", x.rank()));
    }
    x.shape.reverse();
    Ok(vec![x])
}

fn transpose(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    let [a, b] = [dim(cx.int(1), x.rank())?, dim(cx.int(2), x.rank())?];
    if x.rank() > 0 {
        x.shape.swap(a, b);
    }
    Ok(vec![x])
}

fn permute(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    let order = cx.ints(1).unwrap_or_default();
    if order.len() != x.rank() {
        return refuse(format!("permute of rank {} by {order:?}", x.rank()));
    }
    let order = if order.is_empty() {
        vec![]
    } else {
        dims(Some(order), x.rank())?
    };
    one(x.kind, order.into_iter().map(|d| x.shape[d]).collect::<Vec<_>>())
}

/// The permutation that undoes one.
fn inverse(order: &[i64]) -> Vec<i64> {
    let n = order.len() as i64;
    let mut inverse = vec![0; order.len()];
    for (to, from) in order.iter().enumerate() {
        inverse[from.rem_euclid(n) as usize] = to as i64;
    }
    inverse
}

fn unsqueeze(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    let at = dim(cx.int(1), x.rank() + 1)?;
    x.shape.insert(at, 1);
    Ok(vec![x])
}

fn squeeze(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    x.shape.retain(|n| *n != 1);
    Ok(vec![x])
}

fn squeeze_dim(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    let at = dim(cx.int(1), x.rank())?;
    if x.shape.get(at) == Some(&1) {
        x.shape.remove(at);
    }
    Ok(vec![x])
}

fn squeeze_dims(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    let list = cx.ints(1).unwrap_or_default();
    let mut at = if list.is_empty() {
        vec![]
    } else {
        dims(Some(list), x.rank())?
    };
    at.retain(|d| x.shape[*d] == 1);
    one(x.kind, reduce(&x.shape, &at, false))
}

fn expand(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    let size = cx.ints(1).unwrap_or_default();
    let Some(extra) = size.len().checked_sub(x.rank()) else {
        return refuse(format!("expand of rank {} to {size:?}", x.rank()));
    };
    let mut shape = size.clone();
    for (i, n) in shape.iter_mut().enumerate() {
        let have = i.checked_sub(extra).map(|i| x.shape[i]);
        match (*n, have) {
            (-1, Some(have)) => *n = have,
            (want, Some(have)) if want == have || (have == 1 && want >= 0) => {}
            (want, None) if want >= 0 => {}
            _ => return refuse(format!("expand of {:?} to {size:?}", x.shape)),
        }
    }
    one(x.kind, shape)
}

fn like_second(cx: &Infer<'_>) -> Inferred {
    one(cx.tensor(0).kind, cx.tensor(1).shape)
}

fn cast(cx: &Infer<'_>) -> Inferred {
    let x = cx.tensor(0);
    one(cx.kind(1).unwrap_or(x.kind), x.shape)
}

/// On the CPU, `to` is the identity. The device that a tensor comes from is not part of its type, so a cotangent cannot
/// be sent back to another one.
fn to_device(m: &Formula<'_, '_>) {
    match m.arg(1) {
        Arg::Device(-1) => m.give(0, m.g()),
        _ => m.refuse("it moves a tensor to another device; move it before the differentiated function"),
    }
}

/// A one-dimensional tensor without elements joins anything.
fn skipped(t: &TensorType) -> bool {
    t.shape == [0]
}

fn cat(cx: &Infer<'_>) -> Inferred {
    let list = cx.tensors(0);
    let Some(first) = list.iter().find(|t| !skipped(t)).or(list.first()) else {
        return refuse("cat of no tensors");
    };
    if first.rank() == 0 {
        return refuse("cat of a 0-dim tensor");
    }
    let at = dim(cx.int(1), first.rank())?;
    let mut shape = first.shape.clone();
    shape[at] = 0;
    for t in list.iter().filter(|t| first.shape == [0] || !skipped(t)) {
        let fits = t.rank() == shape.len() && (0..shape.len()).all(|d| d == at || t.shape[d] == shape[d]);
        if !fits {
            return refuse(format!("cat of {:?} and {:?}", first.shape, t.shape));
        }
        shape[at] += t.shape[at];
    }
    one(list_kind(&list), shape)
}

fn cat_rule(m: &Formula<'_, '_>) {
    let (g, xs) = (m.g(), m.xs(0));
    let at = m.int(1).rem_euclid(g.rank() as i64);
    let mut start = 0;
    for (k, x) in xs.iter().enumerate() {
        let x = x.ty();
        if skipped(&x) && g.shape() != [0] {
            if m.wants_item(0, k) {
                m.give_item(0, k, op!(zeros_like(xs[k])));
            }
            continue;
        }
        let length = x.shape[at as usize];
        if m.wants_item(0, k) {
            m.give_item(0, k, op!(narrow(g, at, start, length)));
        }
        start += length;
    }
}

fn stack(cx: &Infer<'_>) -> Inferred {
    let list = cx.tensors(0);
    let Some(first) = list.first() else {
        return refuse("stack of no tensors");
    };
    if list.iter().any(|t| t.shape != first.shape) {
        return refuse("stack of tensors of several shapes");
    }
    let mut shape = first.shape.clone();
    shape.insert(dim(cx.int(1), first.rank() + 1)?, list.len() as i64);
    one(list_kind(&list), shape)
}

fn stack_rule(m: &Formula<'_, '_>) {
    for k in 0..m.xs(0).len() {
        if m.wants_item(0, k) {
            m.give_item(0, k, op!(select(m.g(), m.arg(1), k as i64)));
        }
    }
}

fn slice(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    if x.rank() == 0 {
        return refuse("slice of a 0-dim tensor");
    }
    let at = dim(cx.int(1), x.rank())?;
    let (n, step) = (x.shape[at], cx.int(4));
    if step <= 0 {
        return refuse("slice with a step that is not positive");
    }
    let clamped = |i: i64| if i < 0 { (i + n).max(0) } else { i.min(n) };
    let start = clamped(cx.opt_int(2).unwrap_or(0));
    let end = clamped(cx.opt_int(3).unwrap_or(i64::MAX));
    x.shape[at] = ((end - start).max(0) + step - 1) / step;
    Ok(vec![x])
}

fn narrow(cx: &Infer<'_>) -> Inferred {
    let mut x = cx.tensor(0);
    if x.rank() == 0 {
        return refuse("narrow of a 0-dim tensor");
    }
    let at = dim(cx.int(1), x.rank())?;
    let (n, start, length) = (x.shape[at], cx.int(2), cx.int(3));
    let first = if start < 0 { start + n } else { start };
    if first < 0 || length < 0 || first + length > n {
        return refuse(format!("narrow from {start} by {length} in {n}"));
    }
    x.shape[at] = length;
    Ok(vec![x])
}

/// The transpose of `narrow`: `g` in its place among zeros.
pub(super) fn narrow_transpose<'m>(g: Term<'m>, x: &TensorType, at: i64, start: i64, length: i64) -> Term<'m> {
    let n = x.shape[at.rem_euclid(x.rank() as i64) as usize];
    let start = if start < 0 { start + n } else { start };
    op!(slice_backward(g, &x.shape, at, start, start + length, 1))
}

fn select(cx: &Infer<'_>) -> Inferred {
    selected(cx, cx.int(1), cx.int(2))
}

/// `get` selects along the first dimension.
fn first(cx: &Infer<'_>) -> Inferred {
    selected(cx, 0, cx.int(1))
}

fn selected(cx: &Infer<'_>, at: i64, i: i64) -> Inferred {
    let mut x = cx.tensor(0);
    if x.rank() == 0 {
        return refuse("select in a 0-dim tensor");
    }
    let at = dim(at, x.rank())?;
    let n = x.shape[at];
    if !(-n..n).contains(&i) {
        return refuse(format!("select of {i} among {n}"));
    }
    x.shape.remove(at);
    Ok(vec![x])
}

/// The shape is the list in position 1.
fn sized(cx: &Infer<'_>) -> Inferred {
    one(cx.tensor(0).kind, cx.ints(1).unwrap_or_default())
}

fn sum_to_size(cx: &Infer<'_>) -> Inferred {
    let (x, size) = (cx.tensor(0), cx.ints(1).unwrap_or_default());
    match crate::ops::shapes::broadcast(&x.shape, &size) {
        Ok(shape) if shape == x.shape && size.len() <= x.rank() => one(x.kind, size),
        _ => Err(ShapeError(format!("sum of {:?} to {size:?}", x.shape))),
    }
}

/// The kind that sums of integers have.
pub(super) fn sum_kind(kind: Kind) -> Kind {
    if kind.is_differentiable() { kind } else { Kind::I64 }
}
