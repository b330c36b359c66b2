//! Ops that move elements without computing: views, copies, joins and the like.

use super::args::Kernel::{self, One};
use super::args::{Args, Out};
use super::tensor::{Tensor, count};

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("alias_copy", One(identity)),
    ("contiguous", One(identity)),
    ("detach", One(identity)),
    ("shallow_clone", One(identity)),
    ("get", One(|a| select_at(a, 0, 1))),
    (
        "copy_",
        One(|a| a.tensor(1)?.cast(a.tensor(0)?.kind()).expand(a.tensor(0)?.shape())),
    ),
    ("detach_copy", One(identity)),
    ("alias", One(identity)),
    ("alias_copy", One(identity)),
    ("lift", One(identity)),
    ("to", One(identity)),
    ("lift_fresh", One(identity)),
    ("positive", One(identity)),
    ("totype", One(|a| Ok(a.tensor(0)?.cast(a.kind(1)?)))),
    ("_to_copy", One(|a| Ok(a.tensor(0)?.cast(a.kind(1)?)))),
    ("to_dtype", One(|a| Ok(a.tensor(0)?.cast(a.kind(1)?)))),
    ("type_as", One(|a| Ok(a.tensor(0)?.cast(a.tensor(1)?.kind())))),
    ("view", One(view)),
    ("reshape", One(view)),
    ("_unsafe_view", One(view)),
    ("_reshape_alias", One(view)),
    ("_reshape_copy", One(view)),
    ("view_as", One(|a| a.tensor(0)?.reshape(a.tensor(1)?.shape()))),
    ("reshape_as", One(|a| a.tensor(0)?.reshape(a.tensor(1)?.shape()))),
    ("flatten", One(flatten)),
    ("unflatten", One(unflatten)),
    ("transpose", One(transpose)),
    ("swapaxes", One(transpose)),
    ("swapdims", One(transpose)),
    ("t", One(t)),
    ("numpy_t", One(reverse)),
    ("permute", One(permute)),
    ("movedim", One(movedim)),
    ("unsqueeze", One(unsqueeze)),
    ("squeeze", One(|a| squeeze(a.tensor(0)?, |_| true))),
    ("squeeze_dim", One(squeeze_dim)),
    ("squeeze_dims", One(squeeze_dims)),
    ("expand", One(|a| expand(a, a.ints(1)?))),
    ("broadcast_to", One(|a| expand(a, a.ints(1)?))),
    ("expand_as", One(|a| a.tensor(0)?.expand(a.tensor(1)?.shape()))),
    ("slice", One(slice)),
    ("select", One(select)),
    ("narrow", One(narrow)),
    ("diagonal", One(diagonal)),
    ("as_strided", One(as_strided)),
    ("unfold", One(unfold)),
];

fn identity(a: &Args<'_>) -> Out<Tensor> {
    a.tensor(0).cloned()
}

/// The shape with its one `-1` resolved.
fn resolve(a: &Args<'_>, wanted: &[i64], numel: usize) -> Out<Vec<i64>> {
    let known: i64 = wanted.iter().filter(|n| **n != -1).product();
    let fits = wanted.iter().filter(|n| **n == -1).count() <= 1
        && wanted.iter().all(|n| *n >= -1)
        && (!wanted.contains(&-1) || (known != 0 && numel as i64 % known == 0));
    if !fits {
        return a.invalid(format!("shape {wanted:?} is invalid for {numel} elements"));
    }
    Ok(wanted
        .iter()
        .map(|n| if *n == -1 { numel as i64 / known } else { *n })
        .collect())
}

fn view(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    x.reshape(&resolve(a, a.ints(1)?, x.numel())?)
}

fn flatten(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let (from, to) = (a.dim(1, x.rank())?, a.dim(2, x.rank())?);
    if x.rank() == 0 {
        return x.reshape(&[1]);
    }
    if from > to {
        return a.invalid("start_dim comes after end_dim");
    }
    let mut shape = x.shape().to_vec();
    let merged = shape[from..=to].iter().product();
    shape.splice(from..=to, [merged]);
    x.reshape(&shape)
}

fn unflatten(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let d = a.dim(1, x.rank())?;
    let sizes = resolve(a, a.ints(2)?, x.shape()[d] as usize)?;
    let mut shape = x.shape().to_vec();
    shape.splice(d..=d, sizes);
    x.reshape(&shape)
}

fn swap(x: &Tensor, i: usize, j: usize) -> Tensor {
    if x.rank() == 0 {
        return x.clone();
    }
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(i, j);
    x.permute(&order)
}

fn transpose(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    Ok(swap(x, a.dim(1, x.rank())?, a.dim(2, x.rank())?))
}

fn t(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    match x.rank() {
        0 | 1 => Ok(x.clone()),
        2 => Ok(swap(x, 0, 1)),
        _ => a.invalid("expects a tensor of at most two dimensions"),
    }
}

fn reverse(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    Ok(x.permute(&(0..x.rank()).rev().collect::<Vec<_>>()))
}

fn permute(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let order = a
        .ints(1)?
        .iter()
        .map(|d| a.wrap_dim(*d, x.rank()))
        .collect::<Out<Vec<_>>>()?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.into_iter().eq(0..x.rank()) {
        return a.invalid("the dimensions are not a permutation");
    }
    Ok(x.permute(&order))
}

fn movedim(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let wrap = |i| {
        a.ints(i)?
            .iter()
            .map(|d| a.wrap_dim(*d, x.rank()))
            .collect::<Out<Vec<_>>>()
    };
    let (from, to) = (wrap(1)?, wrap(2)?);
    let mut order = vec![usize::MAX; x.rank()];
    for (f, t) in from.iter().zip(&to) {
        order[*t] = *f;
    }
    let mut rest = (0..x.rank()).filter(|d| !from.contains(d));
    for place in order.iter_mut().filter(|o| **o == usize::MAX) {
        match rest.next() {
            Some(d) => *place = d,
            None => return a.invalid("a dimension appears twice"),
        }
    }
    Ok(x.permute(&order))
}

fn unsqueeze(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let mut shape = x.shape().to_vec();
    shape.insert(a.dim(1, x.rank() + 1)?, 1);
    x.reshape(&shape)
}

fn squeeze(x: &Tensor, here: impl Fn(usize) -> bool) -> Out<Tensor> {
    let kept = x.shape().iter().enumerate().filter(|(d, n)| **n != 1 || !here(*d));
    x.reshape(&kept.map(|(_, n)| *n).collect::<Vec<_>>())
}

fn squeeze_dim(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let d = a.dim(1, x.rank())?;
    squeeze(x, |i| i == d)
}

fn squeeze_dims(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let dims = a
        .ints(1)?
        .iter()
        .map(|d| a.wrap_dim(*d, x.rank()))
        .collect::<Out<Vec<_>>>()?;
    squeeze(x, |i| dims.contains(&i))
}

fn expand(a: &Args<'_>, size: &[i64]) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let Some(extra) = size.len().checked_sub(x.rank()) else {
        return a.invalid(format!("{size:?} has fewer dimensions than {:?}", x.shape()));
    };
    let mut shape = size.to_vec();
    for (d, n) in shape.iter_mut().enumerate().filter(|(_, n)| **n == -1) {
        match d.checked_sub(extra) {
            Some(d) => *n = x.shape()[d],
            None => return a.invalid("-1 is not allowed in a new leading dimension"),
        }
    }
    x.expand(&shape)
}

/// The part of dimension `d` from `start`, of `length` elements `step` apart.
pub(super) fn part(x: &Tensor, d: usize, start: i64, length: i64, step: i64) -> Tensor {
    let mut strides = x.strides();
    let mut shape = x.shape().to_vec();
    let offset = if length == 0 { 0 } else { start * strides[d] };
    strides[d] *= step;
    shape[d] = length;
    x.strided(&shape, &strides, offset)
}

/// Start and length of a slice, out-of-range bounds clamped.
pub(super) fn slice_bounds(n: i64, start: Option<i64>, end: Option<i64>, step: i64) -> (i64, i64) {
    let wrap = |i: i64| if i < 0 { i.saturating_add(n) } else { i };
    let start = wrap(start.unwrap_or(0)).clamp(0, n);
    let end = wrap(end.unwrap_or(n)).clamp(start, n);
    (start, (end - start + step - 1) / step)
}

fn slice(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let (d, step) = (a.dim(1, x.rank())?, a.int(4)?);
    if x.rank() == 0 || step <= 0 {
        return a.invalid("needs a dimension and a positive step");
    }
    let (start, length) = slice_bounds(x.shape()[d], a.opt_int(2)?, a.opt_int(3)?, step);
    Ok(part(x, d, start, length, step))
}

/// The sub-tensor at `index` of dimension `d`, without that dimension.
pub(super) fn at(x: &Tensor, d: usize, index: i64) -> Tensor {
    let mut shape = x.shape().to_vec();
    shape.remove(d);
    part(x, d, index, 1, 1)
        .reshape(&shape)
        .expect("one dimension of extent 1 less")
}

fn select(a: &Args<'_>) -> Out<Tensor> {
    select_at(a, a.dim(1, a.tensor(0)?.rank())?, 2)
}

fn select_at(a: &Args<'_>, d: usize, index: usize) -> Out<Tensor> {
    let x = a.tensor(0)?;
    if x.rank() == 0 {
        return a.invalid("cannot select from a 0-dim tensor");
    }
    Ok(at(x, d, wrap_index(a, a.int(index)?, x.shape()[d])?))
}

/// An index into `n` elements, counted from the front.
pub(super) fn wrap_index(a: &Args<'_>, i: i64, n: i64) -> Out<i64> {
    let wrapped = if i < 0 { i + n } else { i };
    if (0..n).contains(&wrapped) {
        Ok(wrapped)
    } else {
        a.invalid(format!("index {i} is out of range for {n} elements"))
    }
}

fn narrow(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let d = a.dim(1, x.rank())?;
    let (start, length) = (a.int(2)?, a.int(3)?);
    let n = x.shape().get(d).copied().unwrap_or(0);
    let start = if start < 0 { start + n } else { start };
    if x.rank() == 0 || start < 0 || length < 0 || start + length > n {
        return a.invalid(format!("{start}..{} is out of range for {n} elements", start + length));
    }
    Ok(part(x, d, start, length, 1))
}

/// Extents and strides of the diagonal, which becomes the last dimension; and where it starts.
pub(super) fn diagonal_view(x: &Tensor, offset: i64, d1: usize, d2: usize) -> (Vec<i64>, Vec<i64>, i64) {
    let (rows, columns) = (x.shape()[d1], x.shape()[d2]);
    let length = if offset >= 0 {
        rows.min(columns - offset)
    } else {
        (rows + offset).min(columns)
    };
    let length = length.max(0);
    let strides = x.strides();
    let start = match (length, offset) {
        (0, _) => 0,
        (_, o) if o >= 0 => o * strides[d2],
        (_, o) => -o * strides[d1],
    };
    let kept = |v: &[i64]| -> Vec<i64> {
        let rest = v.iter().enumerate().filter(|(d, _)| *d != d1 && *d != d2);
        rest.map(|(_, n)| *n).collect()
    };
    let (mut shape, mut out) = (kept(x.shape()), kept(&strides));
    shape.push(length);
    out.push(strides[d1] + strides[d2]);
    (shape, out, start)
}

fn diagonal(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let (d1, d2) = (a.dim(2, x.rank())?, a.dim(3, x.rank())?);
    if d1 == d2 || x.rank() < 2 {
        return a.invalid("needs two different dimensions");
    }
    let (shape, strides, start) = diagonal_view(x, a.int(1)?, d1, d2);
    Ok(x.strided(&shape, &strides, start))
}

/// Over the tensor as it is here, contiguous; LibTorch's own layout is not kept.
fn as_strided(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let (shape, strides, offset) = (a.ints(1)?, a.ints(2)?, a.opt_int(3)?.unwrap_or(0));
    let reach: i64 = shape.iter().zip(strides).map(|(n, s)| (n - 1) * s).sum();
    if count(shape) > 0 && (offset < 0 || offset + reach >= x.numel() as i64) {
        return a.invalid("the view leaves the tensor's elements");
    }
    Ok(x.strided(shape, strides, offset))
}

fn unfold(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let (d, size, step) = (a.dim(1, x.rank())?, a.int(2)?, a.int(3)?);
    if x.rank() == 0 {
        // One window over one element, without a dimension to count it.
        return Ok(part(&x.reshape(&[1])?, 0, 0, size.clamp(0, 1), 1));
    }
    if size > x.shape()[d] || step <= 0 {
        return a.invalid(format!("size {size} and step {step} do not fit {:?}", x.shape()));
    }
    let (mut shape, mut strides) = (x.shape().to_vec(), x.strides());
    shape.push(size);
    strides.push(strides[d]);
    shape[d] = (shape[d] - size) / step + 1;
    strides[d] *= step;
    Ok(x.strided(&shape, &strides, 0))
}
