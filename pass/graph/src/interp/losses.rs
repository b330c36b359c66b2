//! Losses and their derivatives; dropout where it does not draw.

use super::args::Kernel::{self, One};
use super::args::{Args, Out};
use super::elementwise::{common, map, zip};
use super::lanes::map_lanes;
use super::normalisation::log_softmax_lane;
use super::reductions::sum_dims;
use super::tensor::{Tensor, count};
use crate::ir::Kind;

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("mse_loss", One(|a| pointwise(a, |x, t| (x - t) * (x - t)))),
    (
        "mse_loss_backward",
        One(|a| pointwise_backward(a, |x, t| 2.0 * (x - t))),
    ),
    ("smooth_l1_loss_backward", One(smooth_l1_backward)),
    ("huber_loss_backward", One(huber_backward)),
    ("l1_loss", One(|a| pointwise(a, |x, t| (x - t).abs()))),
    ("smooth_l1_loss", One(smooth_l1)),
    ("huber_loss", One(huber)),
    ("kl_div", One(kl_div)),
    ("binary_cross_entropy_with_logits", One(bce_with_logits)),
    ("nll_loss", One(nll_loss)),
    ("nll_loss_nd", One(nll_loss)),
    ("nll_loss2d", One(nll_loss)),
    ("nll_loss_backward", One(nll_loss_backward)),
    ("nll_loss2d_backward", One(nll_loss_backward)),
    ("cross_entropy_loss", One(cross_entropy)),
    ("dropout", One(dropout)),
    ("native_dropout_backward", One(native_dropout_backward)),
];

/// LibTorch's numbers for how a loss is reduced.
#[derive(Clone, Copy, PartialEq)]
enum Reduction {
    None,
    Mean,
    Sum,
}

fn reduction(a: &Args<'_>, i: usize) -> Out<Reduction> {
    match a.int(i)? {
        0 => Ok(Reduction::None),
        1 => Ok(Reduction::Mean),
        2 => Ok(Reduction::Sum),
        n => a.invalid(format!("{n} is no reduction")),
    }
}

fn total(x: &Tensor) -> f64 {
    x.to_f64().iter().sum()
}

fn scalar(kind: Kind, x: f64) -> Tensor {
    Tensor::from_f64(kind, &[], vec![x])
}

fn reduce(x: &Tensor, how: Reduction) -> Tensor {
    match how {
        Reduction::None => x.clone(),
        Reduction::Sum => scalar(x.kind(), total(x)),
        Reduction::Mean => scalar(x.kind(), total(x) / x.numel() as f64),
    }
}

fn pointwise(a: &Args<'_>, f: impl Fn(f64, f64) -> f64) -> Out<Tensor> {
    let (kind, _, xs) = common(&[a.operand(0)?, a.operand(1)?])?;
    Ok(reduce(&zip(kind, &xs[0], &xs[1], f), reduction(a, 2)?))
}

/// Gradient, point, target, reduction.
fn pointwise_backward(a: &Args<'_>, slope: impl Fn(f64, f64) -> f64) -> Out<Tensor> {
    let (kind, shape, xs) = common(&[a.operand(1)?, a.operand(2)?])?;
    let g = a.tensor(0)?.cast(kind).expand(&shape)?;
    let scale = match reduction(a, 3)? {
        Reduction::Mean => 1.0 / count(&shape) as f64,
        _ => 1.0,
    };
    let values: Vec<f64> = xs[0]
        .to_f64()
        .into_iter()
        .zip(xs[1].to_f64())
        .map(|(x, t)| slope(x, t))
        .collect();
    let out = values.into_iter().zip(g.to_f64()).map(|(s, g)| s * scale * g).collect();
    Ok(Tensor::from_f64(kind, &shape, out))
}

fn smooth_l1(a: &Args<'_>) -> Out<Tensor> {
    let beta = a.float(3)?;
    pointwise(a, |x, t| match (x - t).abs() {
        d if d < beta => 0.5 * d * d / beta,
        d => d - 0.5 * beta,
    })
}

fn smooth_l1_backward(a: &Args<'_>) -> Out<Tensor> {
    let beta = a.float(4)?;
    pointwise_backward(a, |x, t| match x - t {
        d if d <= -beta => -1.0,
        d if d >= beta => 1.0,
        d => d / beta,
    })
}

fn huber_backward(a: &Args<'_>) -> Out<Tensor> {
    let delta = a.float(4)?;
    pointwise_backward(a, |x, t| match x - t {
        d if d <= -delta => -delta,
        d if d >= delta => delta,
        d => d,
    })
}

fn huber(a: &Args<'_>) -> Out<Tensor> {
    let delta = a.float(3)?;
    pointwise(a, |x, t| match (x - t).abs() {
        d if d <= delta => 0.5 * d * d,
        d => delta * (d - 0.5 * delta),
    })
}

fn kl_div(a: &Args<'_>) -> Out<Tensor> {
    let log_target = a.flag(3)?;
    pointwise(a, |x, t| match log_target {
        true => t.exp() * (t - x),
        false if t == 0.0 => 0.0 * x * 0.0,
        false => t * (t.ln() - x),
    })
}

fn bce_with_logits(a: &Args<'_>) -> Out<Tensor> {
    let (x, t) = (a.tensor(0)?, a.tensor(1)?);
    let t = t.expand(x.shape())?.to_f64();
    let extra = |i: usize| -> Out<Vec<f64>> {
        Ok(a.opt_tensor(i)?
            .map_or(Ok(Tensor::full(x.kind(), x.shape(), 1.0)), |w| w.expand(x.shape()))?
            .to_f64())
    };
    let (w, p) = (extra(2)?, extra(3)?);
    let values = x.to_f64().into_iter().enumerate().map(|(i, x)| {
        let softplus = (-x.abs()).exp().ln_1p() + (-x).max(0.0);
        ((1.0 - t[i]) * x + (1.0 + (p[i] - 1.0) * t[i]) * softplus) * w[i]
    });
    Ok(reduce(
        &Tensor::from_f64(x.kind(), x.shape(), values.collect()),
        reduction(a, 4)?,
    ))
}

/// The classes of a loss over class indices.
struct Classes {
    /// For each target in order: flat position of its class's input and its weight; `None` where it is ignored.
    at: Vec<Option<(usize, f64)>>,
    total_weight: f64,
}

fn classes(a: &Args<'_>, x: &Tensor, target: &Tensor, weight: Option<&Tensor>, ignore: i64) -> Out<Classes> {
    let d = usize::from(x.rank() > 1);
    let Some(&n) = x.shape().get(d) else {
        return a.invalid("the input has no class dimension");
    };
    let mut rest = x.shape().to_vec();
    rest.remove(d);
    if target.shape() != rest && !(x.rank() == 1 && target.numel() == 1) {
        return a.invalid(format!(
            "target {:?} does not fit input {:?}",
            target.shape(),
            x.shape()
        ));
    }
    let inner = count(&x.shape()[d + 1..]);
    let weights = weight.map_or_else(|| vec![1.0; n as usize], Tensor::to_f64);
    let mut at = vec![];
    for (k, class) in target.to_i64().into_iter().enumerate() {
        if class == ignore {
            at.push(None);
        } else if (0..n).contains(&class) {
            let (o, i) = (k / inner, k % inner);
            at.push(Some((
                (o * n as usize + class as usize) * inner + i,
                weights[class as usize],
            )));
        } else {
            return a.invalid(format!("target {class} is out of bounds"));
        }
    }
    let total_weight = at.iter().flatten().map(|(_, w)| w).sum();
    Ok(Classes { at, total_weight })
}

fn nll(a: &Args<'_>, x: &Tensor, target: &Tensor, weight: Option<&Tensor>, ignore: i64, how: Reduction) -> Out<Tensor> {
    let classes = classes(a, x, target, weight, ignore)?;
    let values = x.to_f64();
    let losses: Vec<f64> = classes
        .at
        .iter()
        .map(|at| at.map_or(0.0, |(k, w)| -w * values[k]))
        .collect();
    let sum: f64 = losses.iter().sum();
    Ok(match how {
        Reduction::None => Tensor::from_f64(x.kind(), target.shape(), losses),
        Reduction::Sum => scalar(x.kind(), sum),
        Reduction::Mean => scalar(x.kind(), sum / classes.total_weight),
    })
}

fn nll_loss(a: &Args<'_>) -> Out<Tensor> {
    nll(
        a,
        a.tensor(0)?,
        a.tensor(1)?,
        a.opt_tensor(2)?,
        a.int(4)?,
        reduction(a, 3)?,
    )
}

fn nll_loss_backward(a: &Args<'_>) -> Out<Tensor> {
    let (g, x) = (a.tensor(0)?.to_f64(), a.tensor(1)?);
    let how = reduction(a, 4)?;
    let classes = classes(a, x, a.tensor(2)?, a.opt_tensor(3)?, a.int(5)?)?;
    let total_weight = total(a.tensor(6)?);
    let mut out = vec![0.0; x.numel()];
    for (k, (at, w)) in classes.at.iter().enumerate().filter_map(|(k, c)| c.map(|c| (k, c))) {
        out[at] = -w
            * match how {
                Reduction::None => g[k],
                Reduction::Sum => g[0],
                Reduction::Mean => g[0] / total_weight,
            };
    }
    Ok(Tensor::from_f64(x.kind(), x.shape(), out))
}

fn cross_entropy(a: &Args<'_>) -> Out<Tensor> {
    let (x, target, weight) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    let (how, ignore, smoothing) = (reduction(a, 3)?, a.int(4)?, a.float(5)?);
    if x.rank() == 0 {
        return a.invalid("the input has no class dimension");
    }
    let d = usize::from(x.rank() > 1);
    let n = x.shape()[d] as f64;
    let logs = map_lanes(x, d, x.kind(), log_softmax_lane);
    // The weights, standing along the class dimension.
    let mut along = vec![1; x.rank()];
    along[d] = x.shape()[d];
    let weights = match weight {
        Some(w) => w.reshape(&along)?.expand(x.shape())?,
        None => Tensor::full(x.kind(), x.shape(), 1.0),
    };
    let weighted = zip(x.kind(), &logs, &weights, |x, w| -x * w);
    if target.kind().is_float() && target.shape() == x.shape() {
        let target = map(target, |t| t * (1.0 - smoothing) + smoothing / n);
        let losses = sum_dims(&zip(x.kind(), &weighted, &target, |x, t| x * t), &[d], false);
        return Ok(match how {
            Reduction::Mean => scalar(x.kind(), total(&losses) / (x.numel() as f64 / n)),
            _ => reduce(&losses, how),
        });
    }
    let nll = nll(a, &logs, target, weight, ignore, how)?;
    if smoothing == 0.0 {
        return Ok(nll);
    }
    let classes = classes(a, x, target, weight, ignore)?;
    let smooth = sum_dims(&weighted, &[d], false);
    let kept = smooth
        .to_f64()
        .into_iter()
        .zip(&classes.at)
        .map(|(s, c)| if c.is_some() { s } else { 0.0 });
    let smooth = Tensor::from_f64(x.kind(), target.shape(), kept.collect());
    let smooth = match how {
        Reduction::Mean => scalar(x.kind(), total(&smooth) / classes.total_weight),
        _ => reduce(&smooth, how),
    };
    Ok(zip(x.kind(), &nll, &smooth, |l, s| {
        (1.0 - smoothing) * l + s * (smoothing / n)
    }))
}

/// Dropout that keeps all or nothing; anything between draws from LibTorch's generator.
fn dropout(a: &Args<'_>) -> Out<Tensor> {
    let (x, p, train) = (a.tensor(0)?, a.float(1)?, a.flag(2)?);
    match p {
        _ if p == 0.0 || !train || x.numel() == 0 => Ok(x.clone()),
        1.0 => Ok(map(x, |x| x * 0.0)),
        _ => a.not_interpreted(),
    }
}

fn native_dropout_backward(a: &Args<'_>) -> Out<Tensor> {
    let (g, mask, scale) = (a.tensor(0)?, a.tensor(1)?, a.float(2)?);
    let mask = mask.expand(g.shape())?;
    Ok(zip(g.kind(), g, &mask, |g, m| g * m * scale))
}
