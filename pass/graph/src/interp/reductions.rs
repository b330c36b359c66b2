//! Reductions over dimensions.

use super::Value;
use super::args::Kernel::{self, Many, One};
use super::args::{Args, Out};
use super::elementwise::{larger, smaller};
use super::promote::DEFAULT;
use super::tensor::{Data, Tensor, count, strided_indices};
use crate::ir::Kind;

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("sum", One(|a| sum(a, all(a)?, false, 1))),
    ("sum_dim_intlist", One(|a| sum(a, some(a, 1)?, a.flag(2)?, 3))),
    ("sum_to_size", One(sum_to_size)),
    ("mean", One(|a| mean(a, all(a)?, false, 1))),
    ("mean_dim", One(|a| mean(a, some(a, 1)?, a.flag(2)?, 3))),
    ("prod", One(|a| prod(a, all(a)?, false, 1))),
    ("prod_dim_int", One(|a| prod(a, one_dim(a, 1)?, a.flag(2)?, 3))),
    ("amax", One(|a| extreme(a, some(a, 1)?, a.flag(2)?, larger))),
    ("amin", One(|a| extreme(a, some(a, 1)?, a.flag(2)?, smaller))),
    ("max", One(|a| extreme(a, all(a)?, false, larger))),
    ("min", One(|a| extreme(a, all(a)?, false, smaller))),
    ("max_dim", Many(|a| extreme_dim(a, larger))),
    ("min_dim", Many(|a| extreme_dim(a, smaller))),
    ("argmax", One(|a| arg_extreme(a, larger))),
    ("argmin", One(|a| arg_extreme(a, smaller))),
    ("any", One(|a| truth(a, all(a)?, false, any_of))),
    ("all", One(|a| truth(a, all(a)?, false, all_of))),
    ("any_dim", One(|a| truth(a, one_dim(a, 1)?, a.flag(2)?, any_of))),
    ("all_dim", One(|a| truth(a, one_dim(a, 1)?, a.flag(2)?, all_of))),
    ("var", One(|a| variance(a, all(a)?, false, unbiased(a, 1)?, |v| v))),
    (
        "var_dim",
        One(|a| variance(a, some(a, 1)?, a.flag(3)?, unbiased(a, 2)?, |v| v)),
    ),
    (
        "var_correction",
        One(|a| variance(a, some(a, 1)?, a.flag(3)?, a.float(2)?, |v| v)),
    ),
    ("std", One(|a| variance(a, all(a)?, false, unbiased(a, 1)?, f64::sqrt))),
    (
        "std_dim",
        One(|a| variance(a, some(a, 1)?, a.flag(3)?, unbiased(a, 2)?, f64::sqrt)),
    ),
    (
        "std_correction",
        One(|a| variance(a, some(a, 1)?, a.flag(3)?, a.float(2)?, f64::sqrt)),
    ),
    ("logsumexp", One(logsumexp)),
    ("norm", One(|a| norm(a, 2.0, all(a)?, false))),
    (
        "norm_scalaropt_dim",
        One(|a| norm(a, a.float(1)?, some(a, 2)?, a.flag(3)?)),
    ),
];

/// The elements that each element of a reduction's result is made of.
pub(super) struct Groups {
    pub(super) shape: Vec<i64>,
    at: Vec<usize>,
    outer: usize,
    inner: usize,
}

impl Groups {
    /// Groups over the given dimensions; the elements of a group stand in row-major order.
    pub(super) fn new(shape: &[i64], dims: &[usize], keep: bool) -> Self {
        let strides = super::strides(shape);
        let kept: Vec<usize> = (0..shape.len()).filter(|d| !dims.contains(d)).collect();
        let mut order = kept.clone();
        order.extend((0..shape.len()).filter(|d| dims.contains(d)));
        let pick = |v: &[i64], ds: &[usize]| -> Vec<i64> { ds.iter().map(|d| v[*d]).collect() };
        let ordered = pick(shape, &order);
        let result = match keep {
            true => (0..shape.len())
                .map(|d| if dims.contains(&d) { 1 } else { shape[d] })
                .collect(),
            false => pick(shape, &kept),
        };
        Self {
            shape: result,
            at: strided_indices(&ordered, &pick(&strides, &order), 0),
            outer: count(&ordered[..kept.len()]),
            inner: count(&ordered[kept.len()..]),
        }
    }

    /// Flat positions of each group.
    pub(super) fn each(&self) -> impl Iterator<Item = &[usize]> {
        (0..self.outer).map(|o| &self.at[o * self.inner..(o + 1) * self.inner])
    }

    /// A float result, one per group.
    pub(super) fn floats(&self, kind: Kind, x: &Tensor, f: impl Fn(&[f64]) -> f64) -> Tensor {
        let values = x.to_f64();
        let mut group = Vec::with_capacity(self.inner);
        let out = self
            .each()
            .map(|at| {
                group.clear();
                group.extend(at.iter().map(|i| values[*i]));
                f(&group)
            })
            .collect();
        Tensor::from_f64(kind, &self.shape, out)
    }
}

fn all(a: &Args<'_>) -> Out<Vec<usize>> {
    Ok((0..a.tensor(0)?.rank()).collect())
}

fn some(a: &Args<'_>, i: usize) -> Out<Vec<usize>> {
    a.dims(i, a.tensor(0)?.rank())
}

fn unbiased(a: &Args<'_>, i: usize) -> Out<f64> {
    Ok(f64::from(a.flag(i)?))
}

/// The kind in which integers are added and multiplied.
pub(super) fn accumulator(kind: Kind) -> Kind {
    if kind.is_float() { kind } else { Kind::I64 }
}

fn fold(x: &Tensor, groups: &Groups, f: fn(&[f64]) -> f64, i: fn(&mut dyn Iterator<Item = i64>) -> i64) -> Tensor {
    match x.data() {
        Data::Float(_) => groups.floats(x.kind(), x, f),
        Data::Int(v) => {
            let out = groups.each().map(|at| i(&mut at.iter().map(|k| v[*k]))).collect();
            Tensor::from_i64(x.kind(), &groups.shape, out)
        }
    }
}

fn wrapping_sum(v: &mut dyn Iterator<Item = i64>) -> i64 {
    v.fold(0, i64::wrapping_add)
}

/// The sum of a tensor over dimensions, in its own kind.
pub(super) fn sum_dims(x: &Tensor, dims: &[usize], keep: bool) -> Tensor {
    fold(x, &Groups::new(x.shape(), dims, keep), |v| v.iter().sum(), wrapping_sum)
}

fn sum(a: &Args<'_>, dims: Vec<usize>, keep: bool, kind_at: usize) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let kind = a.opt_kind(kind_at)?.unwrap_or(accumulator(x.kind()));
    Ok(sum_dims(&x.cast(kind), &dims, keep))
}

fn sum_to_size(a: &Args<'_>) -> Out<Tensor> {
    sum_to(a.tensor(0)?, a.ints(1)?)
}

/// Undoes broadcasting from `shape`.
pub(super) fn sum_to(x: &Tensor, shape: &[i64]) -> Out<Tensor> {
    let extra = x.rank().saturating_sub(shape.len());
    let dims: Vec<usize> = (0..x.rank())
        .filter(|d| *d < extra || (shape[d - extra] == 1 && x.shape()[*d] != 1))
        .collect();
    if dims.is_empty() {
        return x.reshape(shape);
    }
    sum_dims(x, &dims, true).reshape(shape)
}

fn mean(a: &Args<'_>, dims: Vec<usize>, keep: bool, kind_at: usize) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let kind = a.opt_kind(kind_at)?.unwrap_or(x.kind());
    if !kind.is_float() {
        return a.invalid("the mean of integers needs a floating result kind");
    }
    let groups = Groups::new(x.shape(), &dims, keep);
    Ok(groups.floats(kind, &x.cast(kind), |v| v.iter().sum::<f64>() / v.len() as f64))
}

fn prod(a: &Args<'_>, dims: Vec<usize>, keep: bool, kind_at: usize) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let x = x.cast(a.opt_kind(kind_at)?.unwrap_or(accumulator(x.kind())));
    let groups = Groups::new(x.shape(), &dims, keep);
    Ok(fold(
        &x,
        &groups,
        |v| v.iter().product(),
        |v| v.fold(1, i64::wrapping_mul),
    ))
}

/// The position of the first extreme; NaN counts as the most extreme of all.
fn first_extreme(v: &[f64], better: fn(f64, f64) -> f64) -> usize {
    let mut best = 0;
    for i in 1..v.len() {
        let beats = !v[best].is_nan() && (v[i].is_nan() || (v[i] != v[best] && better(v[i], v[best]) == v[i]));
        if beats {
            best = i;
        }
    }
    best
}

/// Positions of the extreme of each group. Comparison goes through floats, which hold every kind but huge integers;
/// those are compared by difference to the first element.
fn extremes(a: &Args<'_>, groups: &Groups, better: fn(f64, f64) -> f64) -> Out<Vec<(usize, usize)>> {
    let x = a.tensor(0)?;
    if groups.inner == 0 && groups.outer > 0 {
        return a.invalid("the extreme of no elements does not exist; specify the dimensions");
    }
    let floats = x.to_f64();
    let origin = |at: &[usize]| match x.data() {
        Data::Int(v) => v[at[0]],
        Data::Float(_) => 0,
    };
    Ok(groups
        .each()
        .map(|at| {
            let zero = origin(at);
            let values: Vec<f64> = match x.data() {
                Data::Float(_) => at.iter().map(|i| floats[*i]).collect(),
                Data::Int(v) => at.iter().map(|i| v[*i].saturating_sub(zero) as f64).collect(),
            };
            let k = first_extreme(&values, better);
            (k, at[k])
        })
        .collect())
}

fn extreme(a: &Args<'_>, dims: Vec<usize>, keep: bool, better: fn(f64, f64) -> f64) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let groups = Groups::new(x.shape(), &dims, keep);
    let at: Vec<usize> = extremes(a, &groups, better)?.into_iter().map(|(_, at)| at).collect();
    Ok(x.pick(&groups.shape, &at))
}

fn one_dim(a: &Args<'_>, i: usize) -> Out<Vec<usize>> {
    let x = a.tensor(0)?;
    Ok(vec![a.dim(i, x.rank())?]
        .into_iter()
        .filter(|d| *d < x.rank())
        .collect())
}

fn extreme_dim(a: &Args<'_>, better: fn(f64, f64) -> f64) -> Out<Vec<Value>> {
    let x = a.tensor(0)?;
    let groups = Groups::new(x.shape(), &one_dim(a, 1)?, a.flag(2)?);
    let found = extremes(a, &groups, better)?;
    let at: Vec<usize> = found.iter().map(|(_, at)| *at).collect();
    let index = found.iter().map(|(k, _)| *k as i64).collect();
    Ok(vec![
        x.pick(&groups.shape, &at).into(),
        Tensor::from_i64(Kind::I64, &groups.shape, index).into(),
    ])
}

fn arg_extreme(a: &Args<'_>, better: fn(f64, f64) -> f64) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let dims = match a.opt_int(1)? {
        Some(_) => one_dim(a, 1)?,
        None => all(a)?,
    };
    let groups = Groups::new(x.shape(), &dims, a.flag(2)?);
    let index = extremes(a, &groups, better)?
        .into_iter()
        .map(|(k, _)| k as i64)
        .collect();
    Ok(Tensor::from_i64(Kind::I64, &groups.shape, index))
}

fn any_of(v: &[bool]) -> bool {
    v.contains(&true)
}

fn all_of(v: &[bool]) -> bool {
    !v.contains(&false)
}

fn truth(a: &Args<'_>, dims: Vec<usize>, keep: bool, f: fn(&[bool]) -> bool) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let groups = Groups::new(x.shape(), &dims, keep);
    let values = x.to_bool();
    let of = |at: &[usize]| f(&at.iter().map(|i| values[*i]).collect::<Vec<_>>());
    let out = Tensor::from_bool(&groups.shape, groups.each().map(of));
    // LibTorch keeps bytes as bytes here.
    Ok(if x.kind() == Kind::U8 { out.cast(Kind::U8) } else { out })
}

fn variance(a: &Args<'_>, dims: Vec<usize>, keep: bool, correction: f64, then: fn(f64) -> f64) -> Out<Tensor> {
    let x = a.tensor(0)?;
    if !x.kind().is_float() {
        return a.invalid("needs a floating tensor");
    }
    let groups = Groups::new(x.shape(), &dims, keep);
    Ok(groups.floats(x.kind(), x, |v| {
        let n = v.len() as f64;
        let mean = v.iter().sum::<f64>() / n;
        let squares: f64 = v.iter().map(|x| (x - mean) * (x - mean)).sum();
        then(squares / (n - correction).max(0.0))
    }))
}

fn logsumexp(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let kind = if x.kind().is_float() { x.kind() } else { DEFAULT };
    let groups = Groups::new(x.shape(), &some(a, 1)?, a.flag(2)?);
    Ok(groups.floats(kind, x, |v| {
        let max = v.iter().copied().fold(f64::NEG_INFINITY, larger);
        // An infinite maximum would give NaN; LibTorch subtracts nothing then.
        let shift = if max.is_infinite() { 0.0 } else { max };
        v.iter().map(|x| (x - shift).exp()).sum::<f64>().ln() + shift
    }))
}

fn norm(a: &Args<'_>, p: f64, dims: Vec<usize>, keep: bool) -> Out<Tensor> {
    let x = a.tensor(0)?;
    if !x.kind().is_float() {
        return a.invalid("needs a floating tensor");
    }
    let groups = Groups::new(x.shape(), &dims, keep);
    let magnitudes = Tensor::from_f64(x.kind(), x.shape(), x.to_f64().into_iter().map(f64::abs).collect());
    Ok(groups.floats(x.kind(), &magnitudes, |v| match p {
        _ if v.is_empty() && p < 0.0 => f64::INFINITY,
        0.0 => v.iter().filter(|x| **x != 0.0).count() as f64,
        1.0 => v.iter().sum(),
        2.0 => v.iter().map(|x| x * x).sum::<f64>().sqrt(),
        f64::INFINITY => v.iter().copied().fold(0.0, larger),
        f64::NEG_INFINITY => v.iter().copied().fold(f64::INFINITY, smaller),
        _ => v.iter().map(|x| x.powf(p)).sum::<f64>().powf(1.0 / p),
    }))
}
