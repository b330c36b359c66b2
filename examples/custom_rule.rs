//! A rule of one's own in a `tch` model: a layer whose weights are rounded on the way forward, with the derivative of
//! the identity on the way back (the straight-through estimator).
//!
//!     cargo cotangent run --example custom_rule

use cotangent::{custom_vjp, differentiable};
use tch::{Device, Kind, Tensor};

/// Rounds to multiples of a quarter. Its true derivative is zero wherever it has one, so that nothing would be learnt.
#[custom_vjp(forward = quantize_forward, backward = quantize_backward)]
fn quantize(w: &Tensor) -> Tensor {
    (w * 4.0).round() / 4.0
}

/// The result, and what the backward half needs: nothing.
fn quantize_forward(w: &Tensor) -> (Tensor, ()) {
    (quantize(w), ())
}

fn quantize_backward((): (), seed: Tensor) -> Tensor {
    seed
}

/// Mean squared error of a linear layer with quantized weights.
#[differentiable(wrt(w))]
fn loss(x: &Tensor, y: &Tensor, w: &Tensor) -> Tensor {
    let d = x.matmul(&quantize(w)) - y;
    (&d * &d).mean(Kind::Double)
}

fn main() {
    tch::manual_seed(1);
    let options = (Kind::Double, Device::Cpu);
    let x = Tensor::randn([256, 3], options);
    let target = Tensor::from_slice(&[0.5, -1.25, 2.0]).view([3, 1]);
    let y = x.matmul(&target);
    let mut w = Tensor::zeros([3, 1], options);
    for step in 0..=60 {
        let (value, gradient) = loss::value_and_grad(&x, &y, &w);

        // In closed form: the derivative of the loss at the rounded weights.
        let residual = x.matmul(&quantize(&w)) - &y;
        let expected = x.tr().matmul(&residual) * (2.0 / 256.0);
        assert!(gradient.w.allclose(&expected, 1e-10, 1e-12, false));

        w -= gradient.w * 0.1;
        if step % 20 == 0 {
            println!("step {step:2}  loss {:.6}", value.double_value(&[]));
        }
    }
    assert!(
        quantize(&w).equal(&target),
        "the target's weights are multiples of a quarter"
    );
    println!(
        "weights {:?}",
        Vec::<f64>::try_from(quantize(&w).view([3])).expect("three numbers")
    );
}

#[cfg(test)]
mod tests {
    #[test]
    fn training_finds_the_target() {
        super::main();
    }
}
