//! Sorting, scanning, and what finds elements by their value.

use super::Value;
use super::args::Kernel::{self, Many, One};
use super::args::{Args, Out};
use super::indexing::gathered;
use super::lanes::map_lanes;
use super::promote::broadcast_all;
use super::tensor::Tensor;
use crate::ir::Kind;

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("one_hot", One(one_hot)),
    ("sort", Many(sort)),
    ("topk", Many(topk)),
    ("cumsum", One(cumsum)),
    ("masked_select", One(masked_select)),
    ("nonzero", One(nonzero)),
];

fn one_hot(a: &Args<'_>) -> Out<Tensor> {
    let (x, classes) = (a.tensor(0)?, a.int(1)?);
    let index = x.to_i64();
    let classes = match classes {
        -1 => index.iter().max().map_or(0, |m| m + 1),
        n => n,
    };
    let mut out = vec![0; index.len() * classes.max(0) as usize];
    for (k, i) in index.into_iter().enumerate() {
        if !(0..classes).contains(&i) {
            return a.invalid(format!("class {i} is out of range"));
        }
        out[k * classes as usize + i as usize] = 1;
    }
    Ok(Tensor::from_i64(Kind::I64, &[x.shape(), &[classes]].concat(), out))
}

/// Positions of the elements of a line in sorted order; stable, NaN counts as the largest.
fn order(v: &[f64], descending: bool) -> Vec<usize> {
    let mut at: Vec<usize> = (0..v.len()).collect();
    let key = |i: usize, j: usize| match (v[i].is_nan(), v[j].is_nan()) {
        (false, false) => v[i].partial_cmp(&v[j]).expect("neither is NaN"),
        (x, y) => x.cmp(&y),
    };
    at.sort_by(|i, j| if descending { key(*j, *i) } else { key(*i, *j) });
    at
}

fn ordered(a: &Args<'_>, d: usize, descending: bool, keep: Option<usize>) -> Out<Vec<Value>> {
    let x = a.tensor(0)?;
    let index = map_lanes(x, d, Kind::I64, |v| {
        let mut at = order(v, descending);
        at.truncate(keep.unwrap_or(at.len()));
        at.into_iter().map(|i| i as f64).collect()
    });
    let index = if x.numel() == 0 && keep.is_some() {
        return a.not_interpreted();
    } else {
        index
    };
    let at = gathered(a, x.shape(), d, &index)?;
    Ok(vec![x.pick(index.shape(), &at).into(), index.into()])
}

fn sort(a: &Args<'_>) -> Out<Vec<Value>> {
    ordered(a, a.dim(1, a.tensor(0)?.rank())?, a.flag(2)?, None)
}

fn topk(a: &Args<'_>) -> Out<Vec<Value>> {
    let x = a.tensor(0)?;
    let (k, d) = (a.int(1)?, a.dim(2, x.rank())?);
    if k < 0 || k > x.shape().get(d).copied().unwrap_or(1) {
        return a.invalid("k is out of range");
    }
    if k == 0 {
        return a.not_interpreted();
    }
    ordered(a, d, a.flag(3)?, Some(k as usize))
}

fn cumsum(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let kind = a.opt_kind(2)?.unwrap_or(super::reductions::accumulator(x.kind()));
    Ok(map_lanes(&x.cast(kind), a.dim(1, x.rank())?, kind, |v| {
        v.iter()
            .scan(0.0, |sum, x| {
                *sum += x;
                Some(*sum)
            })
            .collect()
    }))
}

/// Indices of the elements that are not zero.
pub(super) fn places(x: &Tensor) -> Vec<Vec<i64>> {
    let steps = x.strides();
    let truth = x.to_bool().into_iter().enumerate().filter(|(_, b)| *b);
    truth
        .map(|(flat, _)| steps.iter().zip(x.shape()).map(|(s, n)| flat as i64 / s % n).collect())
        .collect()
}

fn nonzero(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let found = places(x);
    Ok(Tensor::from_i64(
        Kind::I64,
        &[found.len() as i64, x.rank() as i64],
        found.concat(),
    ))
}

fn masked_select(a: &Args<'_>) -> Out<Tensor> {
    let shape = broadcast_all([a.tensor(0)?, a.tensor(1)?])?;
    let mask = a.tensor(1)?.expand(&shape)?.to_bool();
    let at: Vec<usize> = (0..mask.len()).filter(|i| mask[*i]).collect();
    Ok(a.tensor(0)?.expand(&shape)?.pick(&[at.len() as i64], &at))
}
