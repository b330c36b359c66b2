//! A derivative rule of one's own: the gradient is clipped on its way back, the value is untouched.
//!
//!     cargo cotangent run --example custom_rule

use cotangent::{custom_vjp, differentiable};
use tch::{Kind, Tensor};

/// The identity, with a cotangent that is cut to `[-1, 1]`.
#[custom_vjp(forward = clip_forward, backward = clip_backward)]
fn clip_gradient(x: &Tensor) -> Tensor {
    x.shallow_clone()
}

/// Result and residuals: the backward needs none.
fn clip_forward(x: &Tensor) -> (Tensor, ()) {
    (x.shallow_clone(), ())
}

/// The cotangent of `x` from that of the result.
fn clip_backward((): (), seed: Tensor) -> Tensor {
    seed.clamp(-1.0, 1.0)
}

#[differentiable]
fn steep(x: &Tensor) -> Tensor {
    (clip_gradient(x) * 100.0).sum(Kind::Double)
}

fn main() {
    let x = Tensor::from_slice(&[1.0, -2.0, 3.0]);
    let (value, c) = steep::value_and_grad(&x);
    println!("value {}", value.double_value(&[]));
    println!("gradient, clipped from 100 to 1:");
    c.x.print();
}
