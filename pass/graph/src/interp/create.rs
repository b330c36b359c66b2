//! Tensors from nothing, or from another's type.

use super::args::Kernel::{self, One};
use super::args::{Args, Number, Out};
use super::promote::DEFAULT;
use super::tensor::{Tensor, count};
use crate::ir::Kind;

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("zeros_like", One(|a| like(a, Number::Int(0)))),
    ("ones_like", One(|a| like(a, Number::Int(1)))),
    // What LibTorch leaves uninitialized is NaN here, so that a read of it shows.
    ("empty_like", One(|a| like(a, Number::Float(f64::NAN)))),
    ("zero", One(|a| like(a, Number::Int(0)))),
    ("full_like", One(|a| like(a, a.number(1)?))),
    ("fill", One(|a| like(a, a.number(1)?))),
    ("fill_tensor", One(fill_tensor)),
    ("zeros", One(|a| Number::Int(0).fill(a.kind(1)?, a.ints(0)?))),
    ("ones", One(|a| Number::Int(1).fill(a.kind(1)?, a.ints(0)?))),
    ("empty", One(|a| Number::Float(f64::NAN).fill(a.kind(1)?, a.ints(0)?))),
    ("full", One(|a| a.number(1)?.fill(a.kind(2)?, a.ints(0)?))),
    ("new_zeros", One(|a| Number::Int(0).fill(a.kind(2)?, a.ints(1)?))),
    ("new_ones", One(|a| Number::Int(1).fill(a.kind(2)?, a.ints(1)?))),
    ("new_full", One(|a| a.number(2)?.fill(a.kind(3)?, a.ints(1)?))),
    ("scalar_tensor", One(|a| a.number(0)?.fill(a.kind(1)?, &[]))),
    (
        "arange",
        One(|a| arange(a, Number::Int(0), a.number(0)?, Number::Int(1), 1)),
    ),
    (
        "arange_start",
        One(|a| arange(a, a.number(0)?, a.number(1)?, Number::Int(1), 2)),
    ),
    (
        "arange_start_step",
        One(|a| arange(a, a.number(0)?, a.number(1)?, a.number(2)?, 3)),
    ),
    ("eye", One(eye)),
    ("tril", One(|a| triangle(a, |offset, d| offset <= d))),
    ("triu", One(|a| triangle(a, |offset, d| offset >= d))),
];

fn like(a: &Args<'_>, value: Number) -> Out<Tensor> {
    let x = a.tensor(0)?;
    value.fill(x.kind(), x.shape())
}

fn fill_tensor(a: &Args<'_>) -> Out<Tensor> {
    let (x, value) = (a.tensor(0)?, a.tensor(1)?);
    if value.rank() != 0 {
        return a.invalid("the value must be a 0-dim tensor");
    }
    value.cast(x.kind()).expand(x.shape())
}

fn arange(a: &Args<'_>, start: Number, end: Number, step: Number, kind_at: usize) -> Out<Tensor> {
    let integral = |n: &Number| !matches!(n, Number::Float(_));
    let default = if [start, end, step].iter().all(integral) {
        Kind::I64
    } else {
        DEFAULT
    };
    let kind = a.opt_kind(kind_at)?.unwrap_or(default);
    let (first, last, by) = (start.f64(), end.f64(), step.f64());
    let n = ((last - first) / by).ceil();
    if n.is_nan() || n < 0.0 {
        return a.invalid("the bounds are inconsistent with the step");
    }
    let values = (0..n as i64).map(|i| first + i as f64 * by).collect();
    Ok(Tensor::from_f64(kind, &[n as i64], values))
}

fn eye(a: &Args<'_>) -> Out<Tensor> {
    let n = a.int(0)?;
    let values = (0..n * n).map(|i| f64::from(i % n == i / n)).collect();
    Ok(Tensor::from_f64(a.kind(1)?, &[n, n], values))
}

/// Keeps the elements whose column minus row stands in that relation to the diagonal.
fn triangle(a: &Args<'_>, keeps: fn(i64, i64) -> bool) -> Out<Tensor> {
    let (x, diagonal) = (a.tensor(0)?, a.int(1)?);
    let [.., rows, columns] = *x.shape() else {
        return a.invalid("needs at least two dimensions");
    };
    let keep = (0..count(x.shape()) as i64).map(|i| keeps(i % columns - i / columns % rows, diagonal));
    Ok(match x.kind() {
        k if k.is_float() => {
            let values = keep.zip(x.to_f64()).map(|(k, v)| if k { v } else { 0.0 });
            Tensor::from_f64(k, x.shape(), values.collect())
        }
        k => {
            let values = keep.zip(x.to_i64()).map(|(k, v)| if k { v } else { 0 });
            Tensor::from_i64(k, x.shape(), values.collect())
        }
    })
}
