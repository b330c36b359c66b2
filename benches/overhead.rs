//! What a call costs beside the work: a region of one op on a small tensor, against the op itself.
#![allow(missing_docs, reason = "Criterion's macros write functions without documentation")]

use cotangent::differentiable;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tch::{Device, Kind, Tensor};

#[differentiable]
fn one_op(x: &Tensor) -> Tensor {
    x.tanh()
}

fn overhead(c: &mut Criterion) {
    tch::set_num_threads(1);
    let x = Tensor::randn([8], (Kind::Float, Device::Cpu));
    let leaf = x.copy().set_requires_grad(true);
    let mut group = c.benchmark_group("one tanh of eight floats");
    group.bench_function("native, no graph", |b| b.iter(|| tch::no_grad(|| black_box(&x).tanh())));
    group.bench_function("native, with graph", |b| b.iter(|| black_box(&leaf).tanh()));
    group.bench_function("compiled, vjp", |b| b.iter(|| one_op::vjp(black_box(&x))));
    group.bench_function("compiled, autograd", |b| b.iter(|| one_op::autograd(black_box(&leaf))));
    group.finish();
}

criterion_group!(benches, overhead);
criterion_main!(benches);
