//! One training step (forward, backward, update) of the MNIST model on random data, three ways.
#![allow(missing_docs, reason = "Criterion's macros write functions without documentation")]

use cotangent::differentiable;
use criterion::{Criterion, criterion_group, criterion_main};
use tch::{Device, Kind, Tensor};

#[differentiable(wrt(w1, b1, w2, b2))]
fn loss(x: &Tensor, y: &Tensor, w1: &Tensor, b1: &Tensor, w2: &Tensor, b2: &Tensor) -> Tensor {
    let h = (x.matmul(w1) + b1).relu();
    let d = h.matmul(w2) + b2 - y;
    (&d * &d).sum(Kind::Float) / (2.0 * x.size()[0] as f64)
}

fn update(parameters: &[Tensor; 4], gradients: &[Tensor]) {
    tch::no_grad(|| {
        for (p, g) in parameters.iter().zip(gradients) {
            let mut p = p.shallow_clone();
            p -= g * 0.01;
        }
    });
}

fn step(c: &mut Criterion) {
    tch::set_num_threads(1);
    let random = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu)) * 0.05;
    let (x, y) = (random(&[128, 784]), random(&[128, 10]));
    let start = || [random(&[784, 64]), random(&[64]), random(&[64, 10]), random(&[10])];
    let mut group = c.benchmark_group("training step");
    let p = start().map(|t| t.set_requires_grad(true));
    let [w1, b1, w2, b2] = &p;
    group.bench_function("native", |b| {
        b.iter(|| {
            let value = loss(&x, &y, w1, b1, w2, b2);
            update(&p, &Tensor::run_backward(&[&value], &[w1, b1, w2, b2], false, false));
        });
    });
    group.bench_function("autograd", |b| {
        b.iter(|| {
            let value = loss::autograd(&x, &y, w1, b1, w2, b2);
            update(&p, &Tensor::run_backward(&[&value], &[w1, b1, w2, b2], false, false));
        });
    });
    let p = start();
    let [w1, b1, w2, b2] = &p;
    group.bench_function("direct", |b| {
        b.iter(|| {
            let (_, c) = loss::value_and_grad(&x, &y, w1, b1, w2, b2);
            update(&p, &[c.w1, c.b1, c.w2, c.b2]);
        });
    });
    group.finish();
}

criterion_group!(benches, step);
criterion_main!(benches);
