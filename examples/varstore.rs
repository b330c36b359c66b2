//! A `tch::nn` model whose parameters live in a `VarStore`, trained by `tch`'s own Adam: only the loss is compiled, and
//! `autograd` attaches it to LibTorch's graph, so that the optimizer finds its gradients where it always does.
//!
//!     cargo cotangent run --example varstore

use cotangent::differentiable;
use tch::nn::{self, OptimizerConfig};
use tch::{Device, Kind, Reduction, Tensor};

/// Mean squared error of a network with one hidden layer.
///
/// `x` is `[n, 1]`, `y` is `[n, 1]`; weights are `[out, in]` as `nn::linear` makes them.
#[differentiable(wrt(w1, b1, w2, b2))]
fn loss(x: &Tensor, y: &Tensor, w1: &Tensor, b1: &Tensor, w2: &Tensor, b2: &Tensor) -> Tensor {
    x.linear(w1, Some(b1))
        .tanh()
        .linear(w2, Some(b2))
        .mse_loss(y, Reduction::Mean)
}

fn main() -> Result<(), tch::TchError> {
    tch::manual_seed(1);
    let vs = nn::VarStore::new(Device::Cpu);
    let hidden = nn::linear(vs.root() / "hidden", 1, 32, Default::default());
    let output = nn::linear(vs.root() / "output", 32, 1, Default::default());
    let bias = |layer: &nn::Linear| layer.bs.as_ref().map(Tensor::shallow_clone).expect("made with a bias");
    let (b1, b2) = (bias(&hidden), bias(&output));

    let x = Tensor::linspace(-3.0, 3.0, 256, (Kind::Float, Device::Cpu)).view([256, 1]);
    let y = x.sin();
    let mut optimizer = nn::Adam::default().build(&vs, 1e-2)?;
    for step in 0..=500 {
        let value = loss::autograd(&x, &y, &hidden.ws, &b1, &output.ws, &b2);
        optimizer.backward_step(&value);
        if step % 100 == 0 {
            println!("step {step:3}  loss {:.6}", value.double_value(&[]));
        }
    }
    Ok(())
}
