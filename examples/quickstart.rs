//! The shortest program: a function in plain `tch`, its gradient by `backward()` and by a direct call.
//!
//!     cargo cotangent run --example quickstart

use cotangent::differentiable;
use tch::{Device, Kind, Tensor};

#[differentiable]
fn block(x: &Tensor, w: &Tensor) -> Tensor {
    x.matmul(w).relu().sum(Kind::Float)
}

fn main() {
    tch::manual_seed(0);
    let x = Tensor::randn([4, 3], (Kind::Float, Device::Cpu));
    let w = Tensor::randn([3, 2], (Kind::Float, Device::Cpu)).set_requires_grad(true);

    // Inside LibTorch's graph: the compiled pullback is one node.
    let y = block::autograd(&x, &w);
    y.backward();
    println!("through backward():");
    w.grad().print();

    // Directly, without a graph.
    let (value, cotangents) = block::value_and_grad(&x, &w);
    println!("value {:.4}, by a direct call:", value.double_value(&[]));
    cotangents.w.print();
}
