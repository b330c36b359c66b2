//! Ops along one dimension.

use super::args::{Args, Out};
use super::tensor::{Tensor, count};
use crate::ir::Kind;

/// Every line of a tensor along dimension `d`, replaced by what `f` gives for it: lines of one common length.
/// A 0-dim tensor is one line of one element.
pub(super) fn map_lanes(x: &Tensor, d: usize, kind: Kind, f: impl Fn(&[f64]) -> Vec<f64>) -> Tensor {
    let values = x.to_f64();
    if x.rank() == 0 {
        return Tensor::from_f64(kind, &[], f(&values));
    }
    let n = x.shape()[d] as usize;
    let (outer, inner) = (count(&x.shape()[..d]), count(&x.shape()[d + 1..]));
    let mut lanes = Vec::with_capacity(outer * inner);
    for o in 0..outer {
        for i in 0..inner {
            let lane: Vec<f64> = (0..n).map(|k| values[(o * n + k) * inner + i]).collect();
            lanes.push(f(&lane));
        }
    }
    let m = lanes.first().map_or(n, Vec::len);
    let mut out = vec![0.0; outer * m * inner];
    for (l, lane) in lanes.iter().enumerate() {
        let (o, i) = (l / inner, l % inner);
        for (k, value) in lane.iter().enumerate() {
            out[(o * m + k) * inner + i] = *value;
        }
    }
    let mut shape = x.shape().to_vec();
    shape[d] = m as i64;
    Tensor::from_f64(kind, &shape, out)
}

/// The same for two tensors of one shape.
pub(super) fn zip_lanes(
    a: &Args<'_>,
    x: &Tensor,
    y: &Tensor,
    d: usize,
    kind: Kind,
    f: impl Fn(&[f64], &[f64]) -> Vec<f64>,
) -> Out<Tensor> {
    if x.shape() != y.shape() {
        return a.invalid(format!("{:?} is not {:?}", x.shape(), y.shape()));
    }
    // Joined along the dimension, the two lines of a pair are the halves of one line.
    let (x, y) = match x.rank() {
        0 => (x.reshape(&[1])?, y.reshape(&[1])?),
        _ => (x.cast(Kind::F64), y.cast(Kind::F64)),
    };
    let joined = super::pieces::join(a, vec![x.cast(Kind::F64), y.cast(Kind::F64)], d as i64)?;
    let out = map_lanes(&joined, d, kind, |v| {
        let (l, r) = v.split_at(v.len() / 2);
        f(l, r)
    });
    match a.tensor(0)?.rank() {
        0 => out.reshape(&[]),
        _ => Ok(out),
    }
}
