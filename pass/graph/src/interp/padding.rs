//! Padding.

use super::EvalArg;
use super::args::Kernel::{self, One};
use super::args::{Args, Number, Out};
use super::indexing::{into_view, selected};
use super::tensor::{Tensor, strides};

pub(super) const OPS: &[(&str, Kernel)] = &[
    // The C function has no value: zero.
    (
        "constant_pad_nd",
        One(|a| by_number(a, a.tensor(0)?, a.ints(1)?, Number::Int(0))),
    ),
    ("pad", One(pad)),
];

/// Negative padding cuts.
fn by_number(a: &Args<'_>, x: &Tensor, pad: &[i64], value: Number) -> Out<Tensor> {
    if !pad.len().is_multiple_of(2) || pad.len() / 2 > x.rank() {
        return a.invalid(format!("{pad:?} does not pad {:?}", x.shape()));
    }
    let mut shape = x.shape().to_vec();
    // Of each dimension: the first kept element, how many, and where it goes.
    let (mut from, mut kept, mut to) = (vec![0; x.rank()], shape.clone(), vec![0; x.rank()]);
    for (k, p) in pad.chunks(2).enumerate() {
        let d = x.rank() - 1 - k;
        shape[d] += p[0] + p[1];
        from[d] = (-p[0]).max(0);
        to[d] = p[0].max(0);
        kept[d] -= from[d] + (-p[1]).max(0);
    }
    if shape.iter().any(|n| *n < 0) {
        return a.invalid(format!("{pad:?} leaves a negative extent"));
    }
    let out = value.fill(x.kind(), &shape)?;
    if kept.iter().any(|n| *n <= 0) {
        return Ok(out);
    }
    let start = |at: &[i64], steps: &[i64]| at.iter().zip(steps).map(|(i, s)| i * s).sum::<i64>();
    let part = x.strided(&kept, &x.strides(), start(&from, &x.strides()));
    into_view(a, &out, &kept, &strides(&shape), start(&to, &strides(&shape)), &part)
}

/// Padding by a number, or by the tensor's own elements.
fn pad(a: &Args<'_>) -> Out<Tensor> {
    let (x, widths, mode) = (a.tensor(0)?, a.ints(1)?, a.text(2)?);
    if mode == "constant" {
        let value = if a.args[3] == EvalArg::None { 0.0 } else { a.float(3)? };
        return by_number(a, x, widths, Number::Float(value));
    }
    if !widths.len().is_multiple_of(2) || widths.len() / 2 > x.rank() || widths.iter().any(|n| *n < 0) {
        return a.not_interpreted();
    }
    let mut out = x.clone();
    for (k, p) in widths.chunks(2).enumerate() {
        let d = x.rank() - 1 - k;
        let n = x.shape()[d];
        let source = |i: i64| match mode {
            "replicate" => Some(i.clamp(0, n - 1)),
            "circular" => Some(i.rem_euclid(n)),
            "reflect" if n > 1 => Some((n - 1) - (i.rem_euclid(2 * n - 2) - (n - 1)).abs()),
            _ => None,
        };
        let Some(index) = (-p[0]..n + p[1]).map(source).collect::<Option<Vec<_>>>() else {
            return a.invalid(format!("mode `{mode}` does not pad {n} elements"));
        };
        let (shape, at) = selected(a, out.shape(), d, &index)?;
        out = out.pick(&shape, &at);
    }
    Ok(out)
}
