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
    ("_native_batch_norm_legit_no_stats", Many(batch_norm_no_stats)),
    ("_native_batch_norm_legit_no_training", Many(batch_norm_no_training)),
    ("_native_batch_norm_legit_functional", Many(batch_norm_functional)),
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

/// The arguments of a batch norm, whichever of LibTorch's functions they come from.
struct BatchNorm<'a> {
    running: Option<(&'a Tensor, &'a Tensor)>,
    training: bool,
    eps: f64,
}

/// Statistics of each channel: mean, and biased variance.
fn moments(rows: &Tensor, c: usize) -> (Vec<f64>, Vec<f64>) {
    let values = rows.to_f64();
    let of = |row: &[f64]| {
        let n = row.len() as f64;
        let mean = row.iter().sum::<f64>() / n;
        (mean, row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n)
    };
    values.chunks((values.len() / c.max(1)).max(1)).map(of).unzip()
}

/// Channels first, so that each is a row; and the number of channels.
fn channel_rows(a: &Args<'_>) -> Out<(Tensor, Vec<usize>, usize)> {
    let x = a.tensor(0)?;
    let [_, c, ..] = *x.shape() else {
        return a.invalid("needs a batch and a channel dimension");
    };
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(0, 1);
    Ok((x.permute(&order), order, c as usize))
}

/// Batch norm. The running statistics are not updated: the interpreter's ops are pure.
fn normalise_batch(a: &Args<'_>, how: &BatchNorm<'_>) -> Out<Normalised> {
    let x = a.tensor(0)?;
    if x.numel() == 0 {
        return Ok(Normalised {
            y: x.clone(),
            mean: vec![],
            rstd: vec![],
        });
    }
    let (rows, order, c) = channel_rows(a)?;
    let (w, b) = (parameter(a, 1, 1.0, c)?, parameter(a, 2, 0.0, c)?);
    let (mean, var) = match (how.training, how.running) {
        (true, _) => moments(&rows, c),
        (false, Some((mean, var))) => (mean.to_f64(), var.to_f64()),
        (false, None) => return a.invalid("evaluation needs running statistics"),
    };
    let rstd: Vec<f64> = var.iter().map(|v| 1.0 / (v + how.eps).sqrt()).collect();
    let inner = rows.numel() / c;
    let values = rows.to_f64().into_iter().enumerate().map(|(i, x)| {
        let k = i / inner;
        (x - mean[k]) * rstd[k] * w[k] + b[k]
    });
    let y = Tensor::from_f64(x.kind(), rows.shape(), values.collect()).permute(&order);
    // In evaluation LibTorch saves nothing.
    let saved = |v: Vec<f64>| if how.training { v } else { vec![] };
    Ok(Normalised {
        y,
        mean: saved(mean),
        rstd: saved(rstd),
    })
}

fn running<'a>(a: &'a Args<'_>, at: usize) -> Out<Option<(&'a Tensor, &'a Tensor)>> {
    Ok(a.opt_tensor(at)?.zip(a.opt_tensor(at + 1)?))
}

fn batch_norm(a: &Args<'_>) -> Out<Normalised> {
    let how = BatchNorm {
        running: running(a, 3)?,
        training: a.flag(5)?,
        eps: a.float(7)?,
    };
    normalise_batch(a, &how)
}

fn batch_norm_results(a: &Args<'_>, how: &BatchNorm<'_>) -> Out<Vec<Value>> {
    let kind = a.tensor(0)?.kind();
    let out = normalise_batch(a, how)?;
    let stat = |v: Vec<f64>| Value::Tensor(Tensor::from_f64(kind, &[v.len() as i64], v));
    Ok(vec![out.y.into(), stat(out.mean), stat(out.rstd)])
}

fn native_batch_norm(a: &Args<'_>) -> Out<Vec<Value>> {
    let how = BatchNorm {
        running: running(a, 3)?,
        training: a.flag(5)?,
        eps: a.float(7)?,
    };
    batch_norm_results(a, &how)
}

fn batch_norm_no_stats(a: &Args<'_>) -> Out<Vec<Value>> {
    let how = BatchNorm {
        running: None,
        training: a.flag(3)?,
        eps: a.float(5)?,
    };
    batch_norm_results(a, &how)
}

fn batch_norm_no_training(a: &Args<'_>) -> Out<Vec<Value>> {
    let how = BatchNorm {
        running: running(a, 3)?,
        training: false,
        eps: a.float(6)?,
    };
    batch_norm_results(a, &how)
}

/// The same with the updated running statistics as two results more.
fn batch_norm_functional(a: &Args<'_>) -> Out<Vec<Value>> {
    let mut results = native_batch_norm(a)?;
    let (mean, var) = (a.tensor(3)?, a.tensor(4)?);
    let x = a.tensor(0)?;
    if !a.flag(5)? || x.numel() == 0 {
        results.extend([mean.clone().into(), var.clone().into()]);
        return Ok(results);
    }
    let (rows, _, c) = channel_rows(a)?;
    let (new_mean, new_var) = moments(&rows, c);
    let n = (rows.numel() / c) as f64;
    let momentum = a.float(6)?;
    let update = |old: &Tensor, new: Vec<f64>| {
        let mixed = old.to_f64().into_iter().zip(new);
        let mixed = mixed.map(|(o, n)| momentum * n + (1.0 - momentum) * o).collect();
        Value::Tensor(Tensor::from_f64(old.kind(), old.shape(), mixed))
    };
    results.push(update(mean, new_mean));
    results.push(update(var, new_var.into_iter().map(|v| v * n / (n - 1.0)).collect()));
    Ok(results)
}
