//! Convolutions, of any number of spatial dimensions.

use super::args::Kernel::{self, One};
use super::args::{Args, Out};
use super::tensor::{Tensor, count, strides};

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("conv1d", One(|a| plain(a, 1))),
    ("conv2d", One(|a| plain(a, 2))),
    ("conv3d", One(|a| plain(a, 3))),
    ("conv_transpose1d", One(|a| transposed(a, 1))),
    ("conv_transpose2d", One(|a| transposed(a, 2))),
    ("conv_transpose3d", One(|a| transposed(a, 3))),
    ("convolution", One(convolution)),
];

/// Per spatial dimension.
struct Geometry {
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    output_padding: Vec<i64>,
    groups: i64,
}

/// A list of one entry stands for as many equal ones.
pub(super) fn spread(a: &Args<'_>, i: usize, n: usize) -> Out<Vec<i64>> {
    match a.ints(i)? {
        [one] => Ok(vec![*one; n]),
        list if list.len() == n => Ok(list.to_vec()),
        list => a.invalid(format!("{list:?} does not have {n} entries")),
    }
}

fn plain(a: &Args<'_>, n: usize) -> Out<Tensor> {
    let geometry = Geometry {
        stride: spread(a, 3, n)?,
        padding: spread(a, 4, n)?,
        dilation: spread(a, 5, n)?,
        output_padding: vec![0; n],
        groups: a.int(6)?,
    };
    batched(a, n, |x| forward(a, x, a.tensor(1)?, &geometry))
}

fn transposed(a: &Args<'_>, n: usize) -> Out<Tensor> {
    let geometry = Geometry {
        stride: spread(a, 3, n)?,
        padding: spread(a, 4, n)?,
        output_padding: spread(a, 5, n)?,
        groups: a.int(6)?,
        dilation: spread(a, 7, n)?,
    };
    batched(a, n, |x| backward(a, x, a.tensor(1)?, &geometry))
}

fn convolution(a: &Args<'_>) -> Out<Tensor> {
    let n = a.tensor(1)?.rank().saturating_sub(2);
    let geometry = Geometry {
        stride: spread(a, 3, n)?,
        padding: spread(a, 4, n)?,
        dilation: spread(a, 5, n)?,
        output_padding: spread(a, 7, n)?,
        groups: a.int(8)?,
    };
    let transposed = a.flag(6)?;
    batched(a, n, |x| match transposed {
        false => forward(a, x, a.tensor(1)?, &geometry),
        true => backward(a, x, a.tensor(1)?, &geometry),
    })
}

/// Checks the ranks, gives an unbatched input a batch of one, and adds the bias.
fn batched(a: &Args<'_>, n: usize, f: impl FnOnce(&Tensor) -> Out<Tensor>) -> Out<Tensor> {
    let (x, w) = (a.tensor(0)?, a.tensor(1)?);
    if w.rank() != n + 2 || (x.rank() != n + 1 && x.rank() != n + 2) || x.kind() != w.kind() {
        return a.invalid(format!("input {:?} and weight {:?} do not fit", x.shape(), w.shape()));
    }
    let single = x.rank() == n + 1;
    let x = if single {
        x.reshape(&[&[1], x.shape()].concat())?
    } else {
        x.clone()
    };
    let mut y = f(&x)?;
    if let Some(bias) = a.opt_tensor(2)? {
        let mut along = vec![1; n + 2];
        along[1] = bias.numel() as i64;
        y = super::matmul::plus(&bias.reshape(&along)?, &y)?;
    }
    if single { y.reshape(&y.shape()[1..]) } else { Ok(y) }
}

/// Calls `f` with every index of a shape and its number.
fn each_index(shape: &[i64], mut f: impl FnMut(usize, &[i64])) {
    let mut index = vec![0; shape.len()];
    for flat in 0..count(shape) {
        f(flat, &index);
        for d in (0..shape.len()).rev() {
            index[d] += 1;
            if index[d] < shape[d] {
                break;
            }
            index[d] = 0;
        }
    }
}

/// Flat offset of a spatial position; `None` outside.
fn inside(at: &[i64], shape: &[i64], steps: &[i64]) -> Option<usize> {
    let within = at.iter().zip(shape).all(|(i, n)| (0..*n).contains(i));
    within.then(|| at.iter().zip(steps).map(|(i, s)| i * s).sum::<i64>() as usize)
}

fn forward(a: &Args<'_>, x: &Tensor, w: &Tensor, g: &Geometry) -> Out<Tensor> {
    let (channels, outputs) = (x.shape()[1], w.shape()[0]);
    let (space, kernel) = (&x.shape()[2..], &w.shape()[2..]);
    if g.groups < 1 || channels != w.shape()[1] * g.groups || outputs % g.groups != 0 {
        return a.invalid(format!(
            "{channels} channels, weight {:?}, {} groups",
            w.shape(),
            g.groups
        ));
    }
    let size = |d: usize| {
        let reach = g.dilation[d] * (kernel[d] - 1) + 1;
        (space[d] + 2 * g.padding[d] - reach).div_euclid(g.stride[d].max(1)) + 1
    };
    let out_space: Vec<i64> = (0..space.len()).map(size).collect();
    if out_space.iter().any(|n| *n < 1) {
        return a.invalid("the kernel is larger than the padded input");
    }
    let (xs, ws) = (x.to_f64(), w.to_f64());
    let (plane, taps, steps) = (count(space), count(kernel), strides(space));
    let per_group = w.shape()[1] as usize;
    let shape = [&[x.shape()[0], outputs], out_space.as_slice()].concat();
    let mut out = vec![0.0; count(&shape)];
    each_index(&shape, |flat, index| {
        let (n, o) = (index[0] as usize, index[1] as usize);
        let group = o / (outputs / g.groups) as usize;
        each_index(kernel, |tap, k| {
            let at: Vec<i64> = (0..k.len())
                .map(|d| index[d + 2] * g.stride[d] - g.padding[d] + k[d] * g.dilation[d])
                .collect();
            if let Some(at) = inside(&at, space, &steps) {
                for c in 0..per_group {
                    let from = (n * channels as usize + group * per_group + c) * plane + at;
                    out[flat] += xs[from] * ws[(o * per_group + c) * taps + tap];
                }
            }
        });
    });
    Ok(Tensor::from_f64(x.kind(), &shape, out))
}

/// The transpose: what the forward reads from, this adds to.
fn backward(a: &Args<'_>, x: &Tensor, w: &Tensor, g: &Geometry) -> Out<Tensor> {
    let (channels, per_group) = (x.shape()[1], w.shape()[1]);
    let (space, kernel) = (&x.shape()[2..], &w.shape()[2..]);
    if g.groups < 1 || channels != w.shape()[0] || channels % g.groups != 0 {
        return a.invalid(format!(
            "{channels} channels, weight {:?}, {} groups",
            w.shape(),
            g.groups
        ));
    }
    let size = |d: usize| {
        (space[d] - 1) * g.stride[d] - 2 * g.padding[d] + g.dilation[d] * (kernel[d] - 1) + g.output_padding[d] + 1
    };
    let out_space: Vec<i64> = (0..space.len()).map(size).collect();
    if out_space.iter().any(|n| *n < 0) {
        return a.invalid("the output would have a negative extent");
    }
    let outputs = per_group * g.groups;
    let shape = [&[x.shape()[0], outputs], out_space.as_slice()].concat();
    let (xs, ws) = (x.to_f64(), w.to_f64());
    let (plane, taps, steps) = (count(&out_space), count(kernel), strides(&out_space));
    let mut out = vec![0.0; count(&shape)];
    each_index(x.shape(), |flat, index| {
        let (n, c) = (index[0], index[1]);
        let group = c / (channels / g.groups);
        each_index(kernel, |tap, k| {
            let at: Vec<i64> = (0..k.len())
                .map(|d| index[d + 2] * g.stride[d] - g.padding[d] + k[d] * g.dilation[d])
                .collect();
            if let Some(at) = inside(&at, &out_space, &steps) {
                for o in 0..per_group {
                    let to = (n * outputs + group * per_group + o) as usize * plane + at;
                    out[to] += xs[flat] * ws[(c * per_group + o) as usize * taps + tap];
                }
            }
        });
    });
    Ok(Tensor::from_f64(x.kind(), &shape, out))
}
