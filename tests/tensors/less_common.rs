//! Ops that are less common: losses, orderings, scans, linear algebra, resized and padded pictures, one of each
//! pointwise function.
//! Hard: each has a rule or goes through LibTorch's own, and all are summed in one function.
use cotangent::differentiable;
use tch::{Kind, Reduction, Tensor};

#[macro_use]
#[path = "support.rs"]
mod support;
use support::*;

#[differentiable(wrt(a, b))]
fn losses(a: &Tensor, b: &Tensor) -> Tensor {
    let m = a.mse_loss(b, Reduction::Mean);
    let h = a.huber_loss(b, Reduction::Sum, 0.7);
    let s = a.smooth_l1_loss(b, Reduction::Mean, 0.5);
    let l = a.l1_loss(b, Reduction::Sum);
    let k = a
        .log_softmax(1, Kind::Double)
        .kl_div(&b.softmax(1, Kind::Double), Reduction::Sum, false);
    let c = Tensor::cosine_similarity(a, b, 1, 1e-8).sum(Kind::Double);
    m + h * 2.0 + s - l / 3.0 + k + c
}

#[test]
fn many_losses() {
    let (a, b) = (r64(1, &[3, 4]), r64(2, &[3, 4]));
    check_scalar!(losses(&a, &b) wrt a, b);
}

#[differentiable(wrt(x))]
fn ordering(x: &Tensor) -> (Tensor, Tensor, Tensor) {
    let (top, _) = x.topk(2, 1, true, true);
    let (sorted, index) = x.sort(0, false);
    let (m, _) = x.max_dim(1, false);
    let g = x.gather(0, &index, false) - &sorted + &sorted * 2.0;
    (top, g, m + x.amin([1i64].as_slice(), false))
}

#[test]
fn sorted_and_selected() {
    let x = r64(1, &[4, 5]);
    check!(ordering(&x) wrt x);
}

#[differentiable(wrt(x))]
fn scans(x: &Tensor) -> Tensor {
    let a = x.cumsum(0, Kind::Double);
    let b = x.cumprod(1, Kind::Double);
    let c = x.logcumsumexp(0);
    a.flip([0i64]) + b.roll([1i64], [0i64]) + c * x.tril(0)
        - x.triu(1)
            .diff(1, 0, None::<&Tensor>, None::<&Tensor>)
            .constant_pad_nd([0, 0, 0, 1])
}

#[test]
fn running_sums() {
    let x = pos(1, &[4, 4]);
    check!(scans(&x) wrt x);
}

#[differentiable(wrt(a, b))]
fn algebra(a: &Tensor, b: &Tensor) -> Tensor {
    let inv = a.inverse();
    let s = Tensor::linalg_solve(a, b, true);
    let d = a.slogdet().1;
    let o = Tensor::outer(&b.select(1, 0), &b.select(1, 1));
    inv.sum(Kind::Double) + s.sum(Kind::Double) + d + o.trace() + Tensor::kron(a, b).mean(Kind::Double)
}

#[test]
fn linear_algebra() {
    let a = r64(1, &[3, 3]) + Tensor::eye(3, (Kind::Double, tch::Device::Cpu)) * 3.0;
    let b = r64(2, &[3, 2]);
    check_scalar!(algebra(&a, &b) wrt a, b);
}

#[differentiable(wrt(x))]
fn pictures(x: &Tensor) -> Tensor {
    let up = x.upsample_bilinear2d([8, 8], false, None, None);
    let near = x.upsample_nearest2d([6, 6], None, None);
    let pad = x.reflection_pad2d([1, 1, 1, 1]);
    let u = x.unfold(2, 2, 1);
    let cols = x.im2col([2, 2], [1, 1], [0, 0], [1, 1]);
    up.mean(Kind::Double)
        + near.square().mean(Kind::Double)
        + pad.sum(Kind::Double)
        + u.sin().sum(Kind::Double)
        + cols.exp().mean(Kind::Double)
}

#[test]
fn resized_and_padded() {
    let x = r64(1, &[1, 2, 4, 4]);
    check_scalar!(pictures(&x) wrt x);
}

#[differentiable(wrt(x))]
fn pointwise(x: &Tensor) -> Tensor {
    let p = x.abs() + 0.5;
    x.sin()
        + x.cos() * x.tan()
        + p.log()
        + p.log1p()
        + p.sqrt().rsqrt()
        + x.expm1()
        + x.erf()
        + x.asinh()
        + x.atan()
        + p.lgamma()
        + p.digamma()
        + x.elu()
        + x.celu()
        + x.selu()
        + x.softplus()
        + x.hardtanh()
        + x.leaky_relu()
        + x.mish()
        + x.hardswish()
        + x.hardsigmoid()
        + x.log_sigmoid()
        + x.softsign_like()
        + x.sinh()
        - x.cosh()
        + p.reciprocal()
        + x.frac()
        + x.square().exp2()
}

trait Extra {
    fn softsign_like(&self) -> Tensor;
}

impl Extra for Tensor {
    fn softsign_like(&self) -> Tensor {
        self / (self.abs() + 1.0)
    }
}

#[test]
fn unary_functions() {
    let x = r64(1, &[7]);
    check!(pointwise(&x) wrt x);
}
