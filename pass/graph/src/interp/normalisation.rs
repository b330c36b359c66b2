//! Softmax and the normalisations.

use super::Value;
use super::args::Kernel::{self, Many, One};
use super::args::{Args, Out};
use super::elementwise::larger;
use super::lanes::{map_lanes, zip_lanes};
use super::tensor::{Tensor, count};
use crate::ir::Kind;

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("softmax", One(|a| along(a, a.opt_kind(2)?, softmax_lane))),
    ("_softmax", One(|a| along(a, half_to_float(a)?, softmax_lane))),
    ("log_softmax", One(|a| along(a, a.opt_kind(2)?, log_softmax_lane))),
    ("_log_softmax", One(|a| along(a, half_to_float(a)?, log_softmax_lane))),
    ("_softmax_backward_data", One(softmax_backward)),
    ("_log_softmax_backward_data", One(log_softmax_backward)),
    ("layer_norm", One(|a| Ok(layer_norm(a)?.y))),
    ("native_layer_norm", Many(native_layer_norm)),
    ("rms_norm", One(rms_norm)),
    (
        "group_norm",
        One(|a| Ok(group_norm(a, a.int(1)?, 2, 3, a.float(4)?)?.y)),
    ),
    ("batch_norm", One(|a| Ok(batch_norm(a)?.y))),
    ("native_batch_norm", Many(native_batch_norm)),
];

fn half_to_float(a: &Args<'_>) -> Out<Option<Kind>> {
    Ok(a.flag(2)?.then_some(Kind::F32))
}

fn along(a: &Args<'_>, kind: Option<Kind>, f: fn(&[f64]) -> Vec<f64>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let kind = kind.unwrap_or(x.kind());
    if !kind.is_float() {
        return a.invalid("needs a floating kind");
    }
    Ok(map_lanes(&x.cast(kind), a.dim(1, x.rank())?, kind, f))
}

fn max(v: &[f64]) -> f64 {
    v.iter().copied().fold(f64::NEG_INFINITY, larger)
}

/// A line of minus infinities has no softmax: NaN, as LibTorch gives.
pub(super) fn softmax_lane(v: &[f64]) -> Vec<f64> {
    let max = max(v);
    let e: Vec<f64> = v.iter().map(|x| (x - max).exp()).collect();
    let sum: f64 = e.iter().sum();
    e.into_iter().map(|e| e / sum).collect()
}

pub(super) fn log_softmax_lane(v: &[f64]) -> Vec<f64> {
    let max = max(v);
    let log_sum = v.iter().map(|x| (x - max).exp()).sum::<f64>().ln();
    v.iter().map(|x| x - max - log_sum).collect()
}

fn softmax_backward(a: &Args<'_>) -> Out<Tensor> {
    let (g, y) = (a.tensor(0)?, a.tensor(1)?);
    zip_lanes(a, g, y, a.dim(2, y.rank())?, a.kind(3)?, |g, y| {
        let dot: f64 = g.iter().zip(y).map(|(g, y)| g * y).sum();
        g.iter().zip(y).map(|(g, y)| y * (g - dot)).collect()
    })
}

fn log_softmax_backward(a: &Args<'_>) -> Out<Tensor> {
    let (g, y) = (a.tensor(0)?, a.tensor(1)?);
    zip_lanes(a, g, y, a.dim(2, y.rank())?, a.kind(3)?, |g, y| {
        let sum: f64 = g.iter().sum();
        g.iter().zip(y).map(|(g, y)| g - y.exp() * sum).collect()
    })
}

/// What a normalisation gives: the result, and mean and reciprocal deviation per row.
struct Normalised {
    y: Tensor,
    mean: Vec<f64>,
    rstd: Vec<f64>,
}

/// Normalises each row of `inner` elements, then scales and shifts element `i` of all by what the two closures say.
fn normalise(
    x: &Tensor,
    inner: usize,
    eps: f64,
    scale: impl Fn(usize) -> f64,
    shift: impl Fn(usize) -> f64,
) -> Normalised {
    let values = x.to_f64();
    let (mut out, mut means, mut rstds) = (vec![], vec![], vec![]);
    for (r, row) in values.chunks(inner.max(1)).enumerate() {
        let n = row.len() as f64;
        let mean = row.iter().sum::<f64>() / n;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
        let rstd = 1.0 / (variance + eps).sqrt();
        out.extend(row.iter().enumerate().map(|(i, x)| {
            let at = r * inner + i;
            (x - mean) * rstd * scale(at) + shift(at)
        }));
        means.push(mean);
        rstds.push(rstd);
    }
    Normalised {
        y: Tensor::from_f64(x.kind(), x.shape(), out),
        mean: means,
        rstd: rstds,
    }
}

/// The number of trailing dimensions that `normalized_shape` names, checked.
fn trailing(a: &Args<'_>) -> Out<usize> {
    let (x, shape) = (a.tensor(0)?, a.ints(1)?);
    if shape.is_empty() || !x.shape().ends_with(shape) {
        return a.invalid(format!("normalized_shape {shape:?} does not end {:?}", x.shape()));
    }
    Ok(shape.len())
}

fn parameter(a: &Args<'_>, i: usize, default: f64, n: usize) -> Out<Vec<f64>> {
    match a.opt_tensor(i)? {
        Some(t) if t.numel() == n => Ok(t.to_f64()),
        Some(t) => a.invalid(format!(
            "argument {i} has shape {:?}, {n} elements are wanted",
            t.shape()
        )),
        None => Ok(vec![default; n]),
    }
}

fn layer_norm(a: &Args<'_>) -> Out<Normalised> {
    let x = a.tensor(0)?;
    let axis = x.rank() - trailing(a)?;
    let inner = count(&x.shape()[axis..]);
    let (w, b) = (parameter(a, 2, 1.0, inner)?, parameter(a, 3, 0.0, inner)?);
    Ok(normalise(x, inner, a.float(4)?, |i| w[i % inner], |i| b[i % inner]))
}

fn native_layer_norm(a: &Args<'_>) -> Out<Vec<Value>> {
    let x = a.tensor(0)?;
    let out = layer_norm(a)?;
    let axis = x.rank() - trailing(a)?;
    let mut shape = x.shape().to_vec();
    shape[axis..].fill(1);
    let rows = count(&shape);
    let stat = |mut v: Vec<f64>, absent: f64| {
        v.resize(rows, absent); // Rows of no elements have no statistics.
        Value::Tensor(Tensor::from_f64(x.kind(), &shape, v))
    };
    let (mean, rstd) = (stat(out.mean, 0.0), stat(out.rstd, f64::NAN));
    Ok(vec![out.y.into(), mean, rstd])
}

fn rms_norm(a: &Args<'_>) -> Out<Tensor> {
    let x = a.tensor(0)?;
    let inner = count(&x.shape()[x.rank() - trailing(a)?..]);
    let w = parameter(a, 2, 1.0, inner)?;
    let eps = match a.args.get(3) {
        None | Some(super::EvalArg::None) => match x.kind() {
            Kind::F64 => f64::EPSILON,
            Kind::F32 => f64::from(f32::EPSILON),
            _ => return a.not_interpreted(),
        },
        Some(_) => a.float(3)?,
    };
    let mut out = vec![];
    for row in x.to_f64().chunks(inner.max(1)) {
        let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
        let r = 1.0 / (mean + eps).sqrt();
        out.extend(row.iter().zip(&w).map(|(x, w)| x * r * w));
    }
    Ok(Tensor::from_f64(x.kind(), x.shape(), out))
}

fn group_norm(a: &Args<'_>, groups: i64, w_at: usize, b_at: usize, eps: f64) -> Out<Normalised> {
    let x = a.tensor(0)?;
    let [_, c, ..] = *x.shape() else {
        return a.invalid("needs a batch and a channel dimension");
    };
    if groups <= 0 || c % groups != 0 {
        return a.invalid(format!("{c} channels do not fall into {groups} groups"));
    }
    let (w, b) = (
        parameter(a, w_at, 1.0, c as usize)?,
        parameter(a, b_at, 0.0, c as usize)?,
    );
    let spatial = count(&x.shape()[2..]);
    let inner = (c / groups) as usize * spatial;
    let channel = |i: usize| i / spatial.max(1) % c as usize;
    Ok(normalise(x, inner, eps, |i| w[channel(i)], |i| b[channel(i)]))
}

/// Batch norm; the running statistics are not updated (the interpreter's ops are pure).
fn batch_norm(a: &Args<'_>) -> Out<Normalised> {
    let x = a.tensor(0)?;
    let (training, eps) = (a.flag(5)?, a.float(7)?);
    if x.numel() == 0 {
        return Ok(Normalised {
            y: x.clone(),
            mean: vec![],
            rstd: vec![],
        });
    }
    let [_, c, ..] = *x.shape() else {
        return a.invalid("needs a batch and a channel dimension");
    };
    let c = c as usize;
    let (w, b) = (parameter(a, 1, 1.0, c)?, parameter(a, 2, 0.0, c)?);
    // Channels first, so that each is a row.
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(0, 1);
    let rows = x.permute(&order);
    let inner = x.numel().checked_div(c).unwrap_or(0);
    if training {
        let mut out = normalise(&rows, inner, eps, |i| w[i / inner], |i| b[i / inner]);
        out.y = out.y.permute(&order);
        return Ok(out);
    }
    let (Some(mean), Some(var)) = (a.opt_tensor(3)?, a.opt_tensor(4)?) else {
        return a.invalid("evaluation needs running statistics");
    };
    let (mean, var) = (mean.to_f64(), var.to_f64());
    let values = rows.to_f64().into_iter().enumerate().map(|(i, x)| {
        let k = i / inner;
        (x - mean[k]) / (var[k] + eps).sqrt() * w[k] + b[k]
    });
    let y = Tensor::from_f64(x.kind(), rows.shape(), values.collect()).permute(&order);
    Ok(Normalised {
        y,
        mean: vec![],
        rstd: vec![],
    })
}

fn native_batch_norm(a: &Args<'_>) -> Out<Vec<Value>> {
    let kind = a.tensor(0)?.kind();
    let out = batch_norm(a)?;
    let stat = |v: Vec<f64>| Value::Tensor(Tensor::from_f64(kind, &[v.len() as i64], v));
    Ok(vec![out.y.into(), stat(out.mean), stat(out.rstd)])
}
