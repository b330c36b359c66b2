//! Pooling, padding and resampling of images.

use super::Value;
use super::args::Kernel::{self, Many, One};
use super::args::{Args, Out};
use super::convolution::spread;
use super::tensor::{Tensor, count};
use crate::ir::Kind;

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("max_pool2d", One(|a| Ok(max_pool(a)?.0))),
    ("max_pool2d_with_indices", Many(max_pool_with_indices)),
    ("avg_pool2d", One(avg_pool)),
    ("adaptive_avg_pool2d", One(adaptive_avg_pool)),
    ("_adaptive_avg_pool2d", One(adaptive_avg_pool)),
    ("pixel_shuffle", One(pixel_shuffle)),
    ("upsample_nearest2d", One(nearest)),
    ("upsample_bilinear2d", One(bilinear)),
];

/// Height and width, and what comes before them.
fn image(a: &Args<'_>) -> Out<(usize, [i64; 2])> {
    match *a.tensor(0)?.shape() {
        [ref outer @ .., h, w] if matches!(outer.len(), 1 | 2) => Ok((count(outer), [h, w])),
        ref other => a.invalid(format!("{other:?} is not an image")),
    }
}

/// Every plane of an image turned into one of another size: `f` gets the plane and the new row and column.
fn map_planes<T>(a: &Args<'_>, size: [i64; 2], f: impl Fn(&[f64], i64, i64) -> T) -> Out<(Vec<i64>, Vec<T>)> {
    let x = a.tensor(0)?;
    let (planes, [h, w]) = image(a)?;
    let values = x.to_f64();
    let mut out = vec![];
    for p in 0..planes {
        let plane = &values[p * (h * w) as usize..(p + 1) * (h * w) as usize];
        for r in 0..size[0] {
            out.extend((0..size[1]).map(|c| f(plane, r, c)));
        }
    }
    let mut shape = x.shape().to_vec();
    let n = shape.len();
    shape[n - 2..].copy_from_slice(&size);
    Ok((shape, out))
}

/// Kernel, stride and padding of a pooling, and its output size.
struct Windows {
    kernel: Vec<i64>,
    stride: Vec<i64>,
    padding: Vec<i64>,
    size: [i64; 2],
}

impl Windows {
    fn new(a: &Args<'_>, dilation: &[i64], ceil: bool) -> Out<Self> {
        let (_, image) = image(a)?;
        let kernel = spread(a, 1, 2)?;
        let stride = if a.ints(2)?.is_empty() {
            kernel.clone()
        } else {
            spread(a, 2, 2)?
        };
        let padding = spread(a, 3, 2)?;
        let mut size = [0; 2];
        for d in 0..2 {
            let room = image[d] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
            size[d] = match ceil {
                false => room.div_euclid(stride[d]) + 1,
                // The last window must start inside the image or its left padding.
                true => {
                    let n = (room + stride[d] - 1).div_euclid(stride[d]) + 1;
                    if (n - 1) * stride[d] >= image[d] + padding[d] {
                        n - 1
                    } else {
                        n
                    }
                }
            };
        }
        if size.iter().any(|n| *n < 1) {
            return a.invalid("the output would be empty");
        }
        Ok(Self {
            kernel,
            stride,
            padding,
            size,
        })
    }
}

/// Values and, within each plane, the position of the first maximum; NaN counts as the largest.
fn max_pool(a: &Args<'_>) -> Out<(Tensor, Tensor)> {
    let dilation = spread(a, 4, 2)?;
    let win = Windows::new(a, &dilation, a.flag(5)?)?;
    let (_, [h, w]) = image(a)?;
    let (shape, found) = map_planes(a, win.size, |plane, r, c| {
        let mut best: Option<(f64, i64)> = None;
        for k in 0..win.kernel[0] * win.kernel[1] {
            let y = r * win.stride[0] - win.padding[0] + k / win.kernel[1] * dilation[0];
            let x = c * win.stride[1] - win.padding[1] + k % win.kernel[1] * dilation[1];
            if (0..h).contains(&y) && (0..w).contains(&x) {
                let value = plane[(y * w + x) as usize];
                if best.is_none_or(|(b, _)| value > b || value.is_nan()) {
                    best = Some((value, y * w + x));
                }
            }
        }
        best.unwrap_or((f64::NEG_INFINITY, 0))
    })?;
    let (values, index) = found.into_iter().unzip();
    let kind = a.tensor(0)?.kind();
    Ok((
        Tensor::from_f64(kind, &shape, values),
        Tensor::from_i64(Kind::I64, &shape, index),
    ))
}

fn max_pool_with_indices(a: &Args<'_>) -> Out<Vec<Value>> {
    let (values, index) = max_pool(a)?;
    Ok(vec![values.into(), index.into()])
}

fn avg_pool(a: &Args<'_>) -> Out<Tensor> {
    let win = Windows::new(a, &[1, 1], a.flag(4)?)?;
    let (with_padding, divisor) = (a.flag(5)?, a.opt_int(6)?);
    let (_, [h, w]) = image(a)?;
    let range = |i: i64, d: usize, n: i64| {
        let start = i * win.stride[d] - win.padding[d];
        let end = (start + win.kernel[d]).min(n + win.padding[d]);
        (end - start, start.max(0)..end.min(n))
    };
    let (shape, values) = map_planes(a, win.size, |plane, r, c| {
        let ((tall, rows), (wide, columns)) = (range(r, 0, h), range(c, 1, w));
        let covered = (rows.end - rows.start).max(0) * (columns.end - columns.start).max(0);
        let sum: f64 = rows
            .flat_map(|y| columns.clone().map(move |x| plane[(y * w + x) as usize]))
            .sum();
        let count = divisor.unwrap_or(if with_padding { tall * wide } else { covered });
        if covered == 0 { 0.0 } else { sum / count as f64 }
    })?;
    Ok(Tensor::from_f64(a.tensor(0)?.kind(), &shape, values))
}

fn adaptive_avg_pool(a: &Args<'_>) -> Out<Tensor> {
    let (_, [h, w]) = image(a)?;
    let size = spread(a, 1, 2)?;
    let size = [size[0], size[1]];
    let range = |i: i64, n: i64, to: i64| i * n / to..((i + 1) * n + to - 1) / to;
    let (shape, values) = map_planes(a, size, |plane, r, c| {
        let (rows, columns) = (range(r, h, size[0]), range(c, w, size[1]));
        let count = (rows.end - rows.start) * (columns.end - columns.start);
        let sum: f64 = rows
            .flat_map(|y| columns.clone().map(move |x| plane[(y * w + x) as usize]))
            .sum();
        sum / count as f64
    })?;
    Ok(Tensor::from_f64(a.tensor(0)?.kind(), &shape, values))
}

fn pixel_shuffle(a: &Args<'_>) -> Out<Tensor> {
    let (x, r) = (a.tensor(0)?, a.int(1)?);
    let [ref outer @ .., c, h, w] = *x.shape() else {
        return a.invalid("needs a channel dimension and an image");
    };
    if r < 1 || c % (r * r) != 0 {
        return a.invalid(format!("{c} channels do not fill squares of {r}"));
    }
    let n = outer.len();
    let split = x.reshape(&[outer, &[c / (r * r), r, r, h, w]].concat())?;
    let mut order: Vec<usize> = (0..n).collect();
    order.extend([n, n + 3, n + 1, n + 4, n + 2]);
    split
        .permute(&order)
        .reshape(&[outer, &[c / (r * r), h * r, w * r]].concat())
}

/// Output size, and per dimension the input step of one output step.
fn resampling(a: &Args<'_>, scales: [usize; 2]) -> Out<([i64; 2], [f64; 2])> {
    let (_, image) = image(a)?;
    let size = spread(a, 1, 2)?;
    let mut step = [0.0; 2];
    for d in 0..2 {
        step[d] = match a.args[scales[d]] {
            super::EvalArg::None => image[d] as f64 / size[d] as f64,
            _ => 1.0 / a.float(scales[d])?,
        };
    }
    Ok(([size[0], size[1]], step))
}

fn nearest(a: &Args<'_>) -> Out<Tensor> {
    let (_, [h, w]) = image(a)?;
    let (size, step) = resampling(a, [2, 3])?;
    let source = |i: i64, d: usize, n: i64| ((i as f64 * step[d]).floor() as i64).min(n - 1);
    let (shape, values) = map_planes(a, size, |plane, r, c| {
        plane[(source(r, 0, h) * w + source(c, 1, w)) as usize]
    })?;
    Ok(Tensor::from_f64(a.tensor(0)?.kind(), &shape, values))
}

fn bilinear(a: &Args<'_>) -> Out<Tensor> {
    let (_, [h, w]) = image(a)?;
    let corners = a.flag(2)?;
    let (size, step) = resampling(a, [3, 4])?;
    // The two neighbours and the weight of the second.
    let source = |i: i64, d: usize, n: i64| {
        let x = match corners {
            true if size[d] > 1 => i as f64 * (n - 1) as f64 / (size[d] - 1) as f64,
            true => 0.0,
            false => (step[d] * (i as f64 + 0.5) - 0.5).max(0.0),
        };
        let low = (x.floor() as i64).min(n - 1);
        (low, (low + 1).min(n - 1), x - low as f64)
    };
    let (shape, values) = map_planes(a, size, |plane, r, c| {
        let ((y0, y1, v), (x0, x1, u)) = (source(r, 0, h), source(c, 1, w));
        let at = |y: i64, x: i64| plane[(y * w + x) as usize];
        (1.0 - v) * ((1.0 - u) * at(y0, x0) + u * at(y0, x1)) + v * ((1.0 - u) * at(y1, x0) + u * at(y1, x1))
    })?;
    Ok(Tensor::from_f64(a.tensor(0)?.kind(), &shape, values))
}
