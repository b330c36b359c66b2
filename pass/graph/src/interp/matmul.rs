//! Products of matrices.

use super::InterpError;
use super::args::Kernel::{self, One};
use super::args::{Args, Out};
use super::promote::{broadcast, promote};
use super::tensor::{Data, Tensor, count};

pub(super) const OPS: &[(&str, Kernel)] = &[
    ("mm", One(|a| ranked(a, 2))),
    ("bmm", One(|a| ranked(a, 3))),
    ("matmul", One(|a| matmul(a.tensor(0)?, a.tensor(1)?))),
    ("dot", One(dot)),
    ("vdot", One(dot)),
    ("inner", One(inner)),
    ("mv", One(|a| matmul(a.tensor(0)?, a.tensor(1)?))),
    ("outer", One(outer)),
    ("ger", One(outer)),
    ("linear", One(linear)),
    (
        "addmm",
        One(|a| plus(a.tensor(0)?, &matmul(a.tensor(1)?, a.tensor(2)?)?)),
    ),
    ("baddbmm", One(baddbmm)),
    (
        "addmv",
        One(|a| plus(a.tensor(0)?, &matmul(a.tensor(1)?, a.tensor(2)?)?)),
    ),
];

fn ranked(a: &Args<'_>, rank: usize) -> Out<Tensor> {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    if x.rank() != rank || y.rank() != rank || (rank == 3 && x.shape()[0] != y.shape()[0]) {
        return a.invalid(format!("{:?} and {:?} do not fit", x.shape(), y.shape()));
    }
    matmul(x, y)
}

/// LibTorch's `matmul`: 1-D operands become a row or a column, leading dimensions broadcast.
pub(super) fn matmul(x: &Tensor, y: &Tensor) -> Out<Tensor> {
    let refused = || InterpError::invalid(format!("{:?} and {:?} do not multiply", x.shape(), y.shape()));
    if x.rank() == 0 || y.rank() == 0 || x.kind() != y.kind() {
        return Err(refused());
    }
    let left = if x.rank() == 1 {
        x.reshape(&[1, x.shape()[0]])?
    } else {
        x.clone()
    };
    let right = if y.rank() == 1 {
        y.reshape(&[y.shape()[0], 1])?
    } else {
        y.clone()
    };
    let (ls, rs) = (left.shape(), right.shape());
    let (m, k) = (ls[ls.len() - 2], ls[ls.len() - 1]);
    let n = rs[rs.len() - 1];
    if rs[rs.len() - 2] != k {
        return Err(refused());
    }
    let batch = broadcast(&ls[..ls.len() - 2], &rs[..rs.len() - 2])?;
    let with = |a: i64, b: i64| [batch.as_slice(), &[a, b]].concat();
    let (left, right) = (left.expand(&with(m, k))?, right.expand(&with(k, n))?);
    let mut shape = batch.clone();
    shape.extend((x.rank() > 1).then_some(m));
    shape.extend((y.rank() > 1).then_some(n));
    let sizes = [count(&batch), m as usize, k as usize, n as usize];
    Ok(match (left.data(), right.data()) {
        (Data::Int(l), Data::Int(r)) => {
            let out = products(sizes, |i, j| l[i].wrapping_mul(r[j]), i64::wrapping_add, 0);
            Tensor::from_i64(x.kind(), &shape, out)
        }
        _ => {
            let (l, r) = (left.to_f64(), right.to_f64());
            let out = products(sizes, |i, j| l[i] * r[j], |a, b| a + b, 0.0);
            Tensor::from_f64(x.kind(), &shape, out)
        }
    })
}

fn products<T: Copy>(
    [batch, m, k, n]: [usize; 4],
    times: impl Fn(usize, usize) -> T,
    add: impl Fn(T, T) -> T,
    zero: T,
) -> Vec<T> {
    let mut out = Vec::with_capacity(batch * m * n);
    for b in 0..batch {
        for i in 0..m {
            for j in 0..n {
                out.push((0..k).fold(zero, |sum, l| add(sum, times((b * m + i) * k + l, (b * k + l) * n + j))));
            }
        }
    }
    out
}

/// The sum of two tensors, in the kind of the second.
pub(super) fn plus(bias: &Tensor, x: &Tensor) -> Out<Tensor> {
    if bias.kind() != x.kind() {
        return Err(InterpError::invalid(format!(
            "{:?} is added to {:?}",
            bias.kind(),
            x.kind()
        )));
    }
    let shape = broadcast(bias.shape(), x.shape())?;
    let (b, x) = (bias.expand(&shape)?, x.expand(&shape)?);
    Ok(match (b.data(), x.data()) {
        (Data::Int(b), Data::Int(v)) => Tensor::from_i64(
            x.kind(),
            &shape,
            b.iter().zip(v).map(|(b, x)| b.wrapping_add(*x)).collect(),
        ),
        _ => super::elementwise::zip(x.kind(), &b, &x, |b, x| b + x),
    })
}

fn dot(a: &Args<'_>) -> Out<Tensor> {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    if x.rank() != 1 || y.rank() != 1 {
        return a.invalid("expects two 1-D tensors");
    }
    matmul(x, y)
}

fn inner(a: &Args<'_>) -> Out<Tensor> {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    if x.rank() == 0 || y.rank() == 0 {
        let shape = broadcast(x.shape(), y.shape())?;
        return Ok(super::elementwise::zip(
            x.kind(),
            &x.expand(&shape)?,
            &y.expand(&shape)?,
            |x, y| x * y,
        ));
    }
    let rows = |t: &Tensor| {
        let n = t.shape()[t.rank() - 1];
        t.reshape(&[count(&t.shape()[..t.rank() - 1]) as i64, n])
    };
    let product = matmul(&rows(x)?, &rows(y)?.permute(&[1, 0]))?;
    product.reshape(&[&x.shape()[..x.rank() - 1], &y.shape()[..y.rank() - 1]].concat())
}

fn outer(a: &Args<'_>) -> Out<Tensor> {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    if x.rank() != 1 || y.rank() != 1 {
        return a.invalid("expects two 1-D tensors");
    }
    let kind = promote(x.kind(), y.kind());
    matmul(
        &x.cast(kind).reshape(&[x.shape()[0], 1])?,
        &y.cast(kind).reshape(&[1, y.shape()[0]])?,
    )
}

fn linear(a: &Args<'_>) -> Out<Tensor> {
    let (x, w) = (a.tensor(0)?, a.tensor(1)?);
    let w = match w.rank() {
        1 => w.clone(),
        2 => w.permute(&[1, 0]),
        _ => return a.invalid("expects a weight of one or two dimensions"),
    };
    let y = matmul(x, &w)?;
    match a.opt_tensor(2)? {
        Some(bias) => plus(bias, &y),
        None => Ok(y),
    }
}

fn baddbmm(a: &Args<'_>) -> Out<Tensor> {
    let (x, y) = (a.tensor(1)?, a.tensor(2)?);
    if x.rank() != 3 || y.rank() != 3 {
        return a.invalid("expects batches of matrices");
    }
    let product = matmul(x, y)?;
    // beta and alpha follow where the C function has them.
    let scale = |i: usize| if a.args.len() > i { a.float(i) } else { Ok(1.0) };
    let (beta, alpha) = (scale(3)?, scale(4)?);
    let scaled = |t: &Tensor, by: f64| super::elementwise::map(t, |x| by * x);
    match (beta, alpha) {
        (1.0, 1.0) => plus(a.tensor(0)?, &product),
        (0.0, _) => Ok(scaled(&product, alpha)),
        _ => plus(&scaled(a.tensor(0)?, beta), &scaled(&product, alpha)),
    }
}
