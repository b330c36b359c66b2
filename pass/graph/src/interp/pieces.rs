//! Joining, splitting, repeating and turning.

use super::args::Kernel::{self, Many, One};
use super::args::{Args, Operand, Out};
use super::promote::result_kind;
use super::shape::{at, part};
use super::tensor::{Tensor, count};
use super::{InterpError, Value};

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("cat", One(cat)),
    ("concat", One(cat)),
    ("concatenate", One(cat)),
    ("stack", One(stack)),
    ("repeat", One(repeat)),
    ("flip", One(flip)),
    ("roll", One(roll)),
    ("split", Many(split)),
    ("split_with_sizes", Many(|a| pieces(a, a.ints(1)?))),
    ("chunk", Many(chunk)),
    ("unbind", Many(unbind)),
];

fn cat(a: &Args<'_>) -> Out<Tensor> {
    join(a, a.tensors(0)?.into_iter().cloned().collect(), a.int(1)?)
}

fn stack(a: &Args<'_>) -> Out<Tensor> {
    let xs = a.tensors(0)?;
    let Some(first) = xs.first() else {
        return a.invalid("expects at least one tensor");
    };
    let d = a.dim(1, first.rank() + 1)?;
    let mut shape = first.shape().to_vec();
    shape.insert(d, 1);
    let xs = xs.into_iter().map(|x| x.reshape(&shape)).collect::<Out<_>>()?;
    join(a, xs, d as i64)
}

/// Tensors joined along a dimension. Empty 1-D tensors are skipped, as LibTorch does for old programs.
pub(super) fn join(a: &Args<'_>, xs: Vec<Tensor>, dim: i64) -> Out<Tensor> {
    let operands: Vec<Operand> = xs
        .iter()
        .map(|t| Operand {
            tensor: t.clone(),
            wrapped: false,
        })
        .collect();
    let kind = result_kind(&operands);
    let kept: Vec<Tensor> = xs.iter().filter(|x| x.shape() != [0]).map(|x| x.cast(kind)).collect();
    let Some(first) = kept.first() else {
        return match xs.first() {
            Some(x) => Ok(x.cast(kind)),
            None => a.invalid("expects at least one tensor"),
        };
    };
    if first.rank() == 0 {
        return a.invalid("0-dim tensors cannot be joined");
    }
    let d = a.wrap_dim(dim, first.rank())?;
    let mut shape = first.shape().to_vec();
    for x in &kept[1..] {
        let fits = x.rank() == shape.len() && (0..shape.len()).all(|i| i == d || x.shape()[i] == shape[i]);
        if !fits {
            return a.invalid(format!("{:?} does not join {shape:?}", x.shape()));
        }
        shape[d] += x.shape()[d];
    }
    let outer: usize = count(&shape[..d]);
    let mut floats = vec![];
    let mut ints = vec![];
    let rows: Vec<(Vec<f64>, Vec<i64>, usize)> = kept
        .iter()
        .map(|x| {
            let row = count(&x.shape()[d..]);
            if kind.is_float() {
                (x.to_f64(), vec![], row)
            } else {
                (vec![], x.to_i64(), row)
            }
        })
        .collect();
    for o in 0..outer {
        for (f, i, row) in &rows {
            let range = o * row..(o + 1) * row;
            if kind.is_float() {
                floats.extend_from_slice(&f[range]);
            } else {
                ints.extend_from_slice(&i[range]);
            }
        }
    }
    Ok(if kind.is_float() {
        Tensor::from_f64(kind, &shape, floats)
    } else {
        Tensor::from_i64(kind, &shape, ints)
    })
}

fn repeat(a: &Args<'_>) -> Out<Tensor> {
    let (x, times) = (a.tensor(0)?, a.ints(1)?);
    let Some(extra) = times.len().checked_sub(x.rank()) else {
        return a.invalid("fewer repeats than dimensions");
    };
    // Each dimension n becomes the pair (times, n), of which the first has stride 0.
    let strides = x.strides();
    let (mut paired, mut steps, mut shape) = (vec![], vec![], vec![]);
    for (d, n) in times.iter().enumerate() {
        let (size, stride) = d.checked_sub(extra).map_or((1, 0), |d| (x.shape()[d], strides[d]));
        paired.extend([*n, size]);
        steps.extend([0, stride]);
        shape.push(n * size);
    }
    x.strided(&paired, &steps, 0).reshape(&shape)
}

fn flip(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let (mut strides, mut offset) = (x.strides(), 0);
    for d in a.ints(1)? {
        let d = a.wrap_dim(*d, x.rank())?;
        if x.rank() > 0 && x.numel() > 0 {
            offset += (x.shape()[d] - 1) * strides[d];
            strides[d] = -strides[d];
        }
    }
    Ok(x.strided(x.shape(), &strides, offset))
}

fn roll(a: &Args<'_>) -> Out<Tensor> {
    let (x, shifts, dims) = (a.tensor(0)?, a.ints(1)?, a.ints(2)?);
    if x.numel() == 0 {
        return Ok(x.clone());
    }
    if dims.is_empty() {
        let Some(shift) = shifts.first() else {
            return a.invalid("needs a shift");
        };
        return rolled(&x.reshape(&[x.numel() as i64])?, 0, *shift).reshape(x.shape());
    }
    let mut out = x.clone();
    for (shift, d) in shifts.iter().zip(dims) {
        out = rolled(&out, a.wrap_dim(*d, x.rank())?, *shift);
    }
    Ok(out)
}

fn rolled(x: &Tensor, d: usize, shift: i64) -> Tensor {
    let n = x.shape()[d];
    let stride = x.strides()[d];
    let at: Vec<usize> = (0..x.numel() as i64)
        .map(|flat| {
            let i = flat / stride % n;
            (flat + ((i - shift).rem_euclid(n) - i) * stride) as usize
        })
        .collect();
    x.pick(x.shape(), &at)
}

fn pieces(a: &Args<'_>, sizes: &[i64]) -> Out<Vec<Value>> {
    let x = a.tensor(0)?;
    let d = a.dim(2, x.rank())?;
    if x.rank() == 0 || sizes.iter().sum::<i64>() != x.shape()[d] {
        return a.invalid(format!("{sizes:?} does not split {:?}", x.shape()));
    }
    let mut start = 0;
    Ok(sizes
        .iter()
        .map(|n| {
            let piece = part(x, d, start, *n, 1);
            start += n;
            piece.into()
        })
        .collect())
}

fn split_by(a: &Args<'_>, size: i64) -> Out<Vec<Value>> {
    let x = a.tensor(0)?;
    let d = a.dim(2, x.rank())?;
    let n = x.shape().get(d).copied().ok_or_else(|| InterpError::invalid("0-dim"))?;
    if n == 0 || size <= 0 {
        return if n == 0 && size >= 0 {
            pieces(a, &[0])
        } else {
            a.invalid("a size of zero")
        };
    }
    let sizes: Vec<i64> = (0..n).step_by(size as usize).map(|s| size.min(n - s)).collect();
    pieces(a, &sizes)
}

fn split(a: &Args<'_>) -> Out<Vec<Value>> {
    split_by(a, a.int(1)?)
}

fn chunk(a: &Args<'_>) -> Out<Vec<Value>> {
    let x = a.tensor(0)?;
    let (chunks, d) = (a.int(1)?, a.dim(2, x.rank())?);
    let Some(n) = x.shape().get(d).copied().filter(|_| chunks > 0) else {
        return a.invalid("needs a dimension and at least one chunk");
    };
    if n == 0 {
        return pieces(a, &vec![0; chunks as usize]);
    }
    split_by(a, (n + chunks - 1) / chunks)
}

fn unbind(a: &Args<'_>) -> Out<Vec<Value>> {
    let x = a.tensor(0)?;
    if x.rank() == 0 {
        return a.invalid("a 0-dim tensor cannot be taken apart");
    }
    let d = a.dim(1, x.rank())?;
    Ok((0..x.shape()[d]).map(|i| at(x, d, i).into()).collect())
}
