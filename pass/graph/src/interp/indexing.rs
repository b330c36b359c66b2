//! Reading and writing by index, masks and choices.

use super::args::Kernel::{self, One};
use super::args::{Args, Out};
use super::elementwise::common;
use super::ordering::places;
use super::promote::{broadcast, broadcast_all};
use super::shape::{diagonal_view, slice_bounds, wrap_index};
use super::tensor::{Data, Tensor, count, strided_indices, strides};
use crate::ir::Kind;

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("where_self", One(choose)),
    ("where_scalar", One(choose)),
    ("where_scalarother", One(choose)),
    ("where_scalarself", One(choose)),
    ("masked_fill", One(masked_fill)),
    ("masked_fill_tensor", One(masked_fill)),
    ("embedding", One(embedding)),
    ("embedding_dense_backward", One(embedding_backward)),
    ("index_select", One(index_select)),
    ("gather", One(gather)),
    ("scatter", One(|a| scatter(a, |_, new| new, |_, new| new))),
    ("scatter_value", One(|a| scatter(a, |_, new| new, |_, new| new))),
    (
        "scatter_add",
        One(|a| scatter(a, |old, new| old + new, i64::wrapping_add)),
    ),
    ("index_add", One(index_add)),
    ("index", One(index)),
    ("index_put", One(index_put)),
    ("slice_backward", One(slice_backward)),
    ("select_backward", One(select_backward)),
    ("diagonal_backward", One(diagonal_backward)),
    ("slice_scatter", One(slice_scatter)),
    ("select_scatter", One(select_scatter)),
];

fn choose(a: &Args<'_>) -> Out<Tensor> {
    let c = a.tensor(0)?;
    let (kind, shape, xs) = common(&[a.operand(1)?, a.operand(2)?])?;
    let shape = broadcast(&shape, c.shape())?;
    let c = c.expand(&shape)?.to_bool();
    let (x, y) = (xs[0].expand(&shape)?, xs[1].expand(&shape)?);
    Ok(pick_by(kind, &shape, &c, &x, &y))
}

/// `x` where `c` holds, else `y`.
fn pick_by(kind: Kind, shape: &[i64], c: &[bool], x: &Tensor, y: &Tensor) -> Tensor {
    match (x.data(), y.data()) {
        (Data::Int(x), Data::Int(y)) => {
            let out = c
                .iter()
                .zip(x.iter().zip(y))
                .map(|(c, (x, y))| if *c { *x } else { *y });
            Tensor::from_i64(kind, shape, out.collect())
        }
        _ => {
            let out = c.iter().zip(x.to_f64().into_iter().zip(y.to_f64()));
            Tensor::from_f64(kind, shape, out.map(|(c, (x, y))| if *c { x } else { y }).collect())
        }
    }
}

fn masked_fill(a: &Args<'_>) -> Out<Tensor> {
    let (x, mask) = (a.tensor(0)?, a.tensor(1)?);
    let value = a.operand(2)?.tensor;
    if value.rank() != 0 || mask.kind() != Kind::Bool {
        return a.invalid("needs a boolean mask and a 0-dim value");
    }
    let shape = broadcast_all([x, mask])?;
    let mask = mask.expand(&shape)?.to_bool();
    Ok(pick_by(
        x.kind(),
        &shape,
        &mask,
        &value.cast(x.kind()).expand(&shape)?,
        &x.expand(&shape)?,
    ))
}

/// Flat positions where an index tensor's entries, checked against `n`, select along dimension `d`.
pub(super) fn selected(a: &Args<'_>, shape: &[i64], d: usize, index: &[i64]) -> Out<(Vec<i64>, Vec<usize>)> {
    let n = shape[d];
    let index = index.iter().map(|i| wrap_index(a, *i, n)).collect::<Out<Vec<_>>>()?;
    let stride = strides(shape)[d];
    let mut out = shape.to_vec();
    out[d] = index.len() as i64;
    let inner = count(&shape[d + 1..]);
    let at = (0..count(&out))
        .map(|flat| {
            let (o, k, i) = (flat / inner / index.len(), flat / inner % index.len(), flat % inner);
            (o as i64 * n * stride + index[k] * stride) as usize + i
        })
        .collect();
    Ok((out, at))
}

fn index_select(a: &Args<'_>) -> Out<Tensor> {
    let (x, index) = (a.tensor(0)?, a.tensor(2)?);
    let d = a.dim(1, x.rank())?;
    if index.rank() > 1 {
        return a.invalid("the index must have one dimension");
    }
    if x.rank() == 0 {
        return Ok(x.clone());
    }
    let (shape, at) = selected(a, x.shape(), d, &index.to_i64())?;
    Ok(x.pick(&shape, &at))
}

fn embedding(a: &Args<'_>) -> Out<Tensor> {
    let (weight, indices) = (a.tensor(0)?, a.tensor(1)?);
    let [_, width] = *weight.shape() else {
        return a.invalid("the weight must be a matrix");
    };
    let (_, at) = selected(a, weight.shape(), 0, &indices.to_i64())?;
    Ok(weight.pick(&[indices.shape(), &[width]].concat(), &at))
}

fn embedding_backward(a: &Args<'_>) -> Out<Tensor> {
    let (g, indices) = (a.tensor(0)?, a.tensor(1)?.to_i64());
    let (rows, padding, scaled) = (a.int(2)?, a.int(3)?, a.flag(4)?);
    let Some(&width) = g.shape().last() else {
        return a.invalid("the gradient has no dimension");
    };
    let values = g.to_f64();
    let mut out = vec![0.0; (rows * width) as usize];
    for (k, i) in indices.iter().enumerate().filter(|(_, i)| **i != padding) {
        let i = wrap_index(a, *i, rows)?;
        let uses = indices.iter().filter(|j| **j == i).count() as f64;
        let scale = if scaled { 1.0 / uses } else { 1.0 };
        for c in 0..width as usize {
            out[i as usize * width as usize + c] += values[k * width as usize + c] * scale;
        }
    }
    Ok(Tensor::from_f64(g.kind(), &[rows, width], out))
}

/// For each element of `index`: its flat position in a tensor of that shape whose dimension `d` is indexed.
pub(super) fn gathered(a: &Args<'_>, shape: &[i64], d: usize, index: &Tensor) -> Out<Vec<usize>> {
    let (shape, index_shape) = match shape.len() {
        0 => (vec![1], vec![index.numel() as i64]),
        _ => (shape.to_vec(), index.shape().to_vec()),
    };
    if index.numel() == 0 {
        return Ok(vec![]);
    }
    let fits = index_shape.len() == shape.len() && (0..shape.len()).all(|i| i == d || index_shape[i] <= shape[i]);
    if !fits {
        return a.invalid(format!("an index of shape {index_shape:?} does not fit {shape:?}"));
    }
    let mut steps = strides(&shape);
    let step = std::mem::take(&mut steps[d]);
    let base = strided_indices(&index_shape, &steps, 0);
    base.into_iter()
        .zip(index.to_i64())
        .map(|(base, i)| Ok(base + (wrap_index(a, i, shape[d])? * step) as usize))
        .collect()
}

fn gather(a: &Args<'_>) -> Out<Tensor> {
    let (x, index) = (a.tensor(0)?, a.tensor(2)?);
    let at = gathered(a, x.shape(), a.dim(1, x.rank())?, index)?;
    Ok(x.pick(index.shape(), &at))
}

/// Writes `source` at flat positions, in order, combining old and new.
fn write(
    x: &Tensor,
    at: &[usize],
    source: &Tensor,
    f: impl Fn(f64, f64) -> f64,
    i: impl Fn(i64, i64) -> i64,
) -> Tensor {
    match x.data() {
        Data::Float(v) => {
            let mut out = v.clone();
            at.iter()
                .zip(source.to_f64())
                .for_each(|(k, s)| out[*k] = f(out[*k], s));
            Tensor::from_f64(x.kind(), x.shape(), out)
        }
        Data::Int(v) => {
            let mut out = v.clone();
            at.iter()
                .zip(source.to_i64())
                .for_each(|(k, s)| out[*k] = i(out[*k], s));
            Tensor::from_i64(x.kind(), x.shape(), out)
        }
    }
}

fn scatter(a: &Args<'_>, f: fn(f64, f64) -> f64, i: fn(i64, i64) -> i64) -> Out<Tensor> {
    let (x, index) = (a.tensor(0)?, a.tensor(2)?);
    let at = gathered(a, x.shape(), a.dim(1, x.rank())?, index)?;
    let source = a.operand(3)?;
    let source = match (source.wrapped, index.rank()) {
        (true, _) => source.tensor.cast(x.kind()).expand(index.shape())?,
        (false, 0) => source.tensor,
        // Only the corner of the source that the index covers is read.
        (false, _) => {
            let steps = source.tensor.strides();
            source.tensor.strided(index.shape(), &steps, 0)
        }
    };
    Ok(write(x, &at, &source, f, i))
}

fn index_add(a: &Args<'_>) -> Out<Tensor> {
    let (x, index, source) = (a.tensor(0)?, a.tensor(2)?, a.tensor(3)?);
    let d = a.dim(1, x.rank())?;
    let flat = |t: &Tensor| if t.rank() == 0 { t.reshape(&[1]) } else { Ok(t.clone()) };
    let (one, source) = (flat(x)?, flat(source)?);
    let (shape, at) = selected(a, one.shape(), d, &index.to_i64())?;
    if source.shape() != shape {
        return a.invalid(format!("the source has shape {:?}, not {shape:?}", source.shape()));
    }
    write(&one, &at, &source, |old, new| old + new, i64::wrapping_add).reshape(x.shape())
}

/// Result shape and flat positions of LibTorch's advanced indexing; an absent index takes its whole dimension.
fn advanced(a: &Args<'_>, x: &Tensor) -> Out<(Vec<i64>, Vec<usize>)> {
    // A boolean index of rank r stands for the r index tensors of its true places.
    let mut indices: Vec<Option<Tensor>> = vec![];
    for index in a.opt_tensors(1)? {
        match index {
            Some(t) if matches!(t.kind(), Kind::Bool | Kind::U8) => {
                let first = indices.len();
                let fits = x.shape().get(first..first + t.rank()) == Some(t.shape());
                if !fits || t.rank() == 0 {
                    return if fits {
                        a.not_interpreted()
                    } else {
                        a.invalid("a mask of another shape")
                    };
                }
                let places = places(t);
                indices.extend((0..t.rank()).map(|d| {
                    let column: Vec<i64> = places.iter().map(|p| p[d]).collect();
                    Some(Tensor::from_i64(Kind::I64, &[column.len() as i64], column))
                }));
            }
            other => indices.push(other.clone()),
        }
    }
    if indices.len() > x.rank() {
        return a.invalid("more indices than dimensions");
    }
    indices.resize(x.rank(), None);
    let used: Vec<usize> = (0..x.rank()).filter(|d| indices[*d].is_some()).collect();
    let together = used.windows(2).all(|w| w[1] == w[0] + 1);
    let shape = broadcast_all(indices.iter().flatten())?;
    let steps = x.strides();
    // The broadcast index dimensions stand in place of the indexed ones if those are neighbours, else in front.
    let front = if together {
        used.first().copied().unwrap_or(0)
    } else {
        0
    };
    let free: Vec<usize> = (0..x.rank()).filter(|d| !used.contains(d)).collect();
    let (before, after): (Vec<usize>, Vec<usize>) = free.into_iter().partition(|d| together && *d < front);
    let sizes = |ds: &[usize]| -> Vec<i64> { ds.iter().map(|d| x.shape()[*d]).collect() };
    let strides_of = |ds: &[usize]| -> Vec<i64> { ds.iter().map(|d| steps[*d]).collect() };
    let mut middle = vec![0i64; count(&shape)];
    for d in &used {
        let index = indices[*d]
            .as_ref()
            .expect("used dimensions have an index")
            .expand(&shape)?;
        for (m, i) in middle.iter_mut().zip(index.to_i64()) {
            *m += wrap_index(a, i, x.shape()[*d])? * steps[*d];
        }
    }
    let outer = strided_indices(&sizes(&before), &strides_of(&before), 0);
    let inner = strided_indices(&sizes(&after), &strides_of(&after), 0);
    let mut at = vec![];
    for o in &outer {
        for m in &middle {
            at.extend(inner.iter().map(|i| o + *m as usize + i));
        }
    }
    Ok(([sizes(&before), shape, sizes(&after)].concat(), at))
}

fn index(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let (shape, at) = advanced(a, x)?;
    Ok(x.pick(&shape, &at))
}

fn index_put(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let (shape, at) = advanced(a, x)?;
    let values = a.tensor(2)?.expand(&shape)?;
    Ok(match a.flag(3)? {
        true => write(x, &at, &values, |old, new| old + new, i64::wrapping_add),
        false => write(x, &at, &values, |_, new| new, |_, new| new),
    })
}

/// Writes a tensor into the view of another that the strides describe.
pub(super) fn into_view(
    a: &Args<'_>,
    x: &Tensor,
    shape: &[i64],
    steps: &[i64],
    offset: i64,
    source: &Tensor,
) -> Out<Tensor> {
    if source.shape() != shape {
        return a.invalid(format!("the source has shape {:?}, not {shape:?}", source.shape()));
    }
    let at = strided_indices(shape, steps, offset);
    Ok(write(x, &at, source, |_, new| new, |_, new| new))
}

fn sliced(a: &Args<'_>, x: &Tensor, source: &Tensor, first: usize) -> Out<Tensor> {
    let (d, step) = (a.dim(first, x.rank())?, a.int(first + 3)?);
    let (start, length) = slice_bounds(x.shape()[d], a.opt_int(first + 1)?, a.opt_int(first + 2)?, step);
    let (mut shape, mut steps) = (x.shape().to_vec(), x.strides());
    let offset = if length == 0 { 0 } else { start * steps[d] };
    shape[d] = length;
    steps[d] *= step;
    into_view(a, x, &shape, &steps, offset, source)
}

fn selected_at(a: &Args<'_>, x: &Tensor, source: &Tensor, first: usize) -> Out<Tensor> {
    let d = a.dim(first, x.rank())?;
    let i = wrap_index(a, a.int(first + 1)?, x.shape()[d])?;
    let (mut shape, mut steps) = (x.shape().to_vec(), x.strides());
    shape.remove(d);
    let step = steps.remove(d);
    into_view(a, x, &shape, &steps, i * step, source)
}

fn zeros_for(a: &Args<'_>) -> Out<(Tensor, Tensor)> {
    let g = a.tensor(0)?;
    Ok((Tensor::full(g.kind(), a.ints(1)?, 0.0), g.clone()))
}

fn slice_backward(a: &Args<'_>) -> Out<Tensor> {
    let (zeros, g) = zeros_for(a)?;
    sliced(a, &zeros, &g, 2)
}

fn select_backward(a: &Args<'_>) -> Out<Tensor> {
    let (zeros, g) = zeros_for(a)?;
    selected_at(a, &zeros, &g, 2)
}

fn diagonal_backward(a: &Args<'_>) -> Out<Tensor> {
    let (zeros, g) = zeros_for(a)?;
    let (d1, d2) = (a.dim(3, zeros.rank())?, a.dim(4, zeros.rank())?);
    let (shape, steps, start) = diagonal_view(&zeros, a.int(2)?, d1, d2);
    into_view(a, &zeros, &shape, &steps, start, &g)
}

fn slice_scatter(a: &Args<'_>) -> Out<Tensor> {
    sliced(a, a.tensor(0)?, a.tensor(1)?, 2)
}

fn select_scatter(a: &Args<'_>) -> Out<Tensor> {
    selected_at(a, a.tensor(0)?, a.tensor(1)?, 2)
}
