//! The MNIST loss, end to end: gradients against differences, memory over many steps.
//!
//! Needs the pass: `cargo cotangent test`.

use cotangent::{differentiable, measure_storage};
use tch::{Device, Kind, Tensor};

#[differentiable(wrt(w1, b1, w2, b2))]
fn loss(x: &Tensor, y: &Tensor, w1: &Tensor, b1: &Tensor, w2: &Tensor, b2: &Tensor) -> Tensor {
    let h = (x.matmul(w1) + b1).relu();
    let d = h.matmul(w2) + b2 - y;
    (&d * &d).sum(d.kind()) / (2.0 * x.size()[0] as f64)
}

fn inputs(batch: i64, hidden: i64) -> [Tensor; 6] {
    let t = |shape: &[i64], k: f64| Tensor::randn(shape, (Kind::Double, Device::Cpu)) * k;
    [
        t(&[batch, 7], 1.0),
        t(&[batch, 3], 1.0),
        t(&[7, hidden], 0.5),
        t(&[hidden], 0.5),
        t(&[hidden, 3], 0.5),
        t(&[3], 0.5),
    ]
}

/// Compares every element of a cotangent with a central difference of the plain function.
fn check_differences(t: &[Tensor; 6], which: usize, cotangent: &Tensor, seed: f64) {
    let value = |t: &[Tensor; 6]| loss(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5]).double_value(&[]);
    let h = 1e-6;
    for i in 0..t[which].numel() as i64 {
        let bump = |by: f64| {
            let mut moved = t.each_ref().map(Tensor::shallow_clone);
            let unit = Tensor::zeros([t[which].numel() as i64], (Kind::Double, Device::Cpu));
            let _ = unit.get(i).fill_(by);
            moved[which] = &t[which] + unit.view(t[which].size().as_slice());
            value(&moved)
        };
        let difference = seed * (bump(h) - bump(-h)) / (2.0 * h);
        let got = cotangent.contiguous().view([-1]).double_value(&[i]);
        assert!(
            (difference - got).abs() <= 1e-6 * difference.abs().max(1.0),
            "input {which}, element {i}: {got} is not the difference {difference}"
        );
    }
}

#[test]
fn gradients_of_the_loss_are_central_differences_with_strided_weights_and_any_seed() {
    tch::manual_seed(3);
    for strided in [false, true] {
        let mut t = inputs(4, 5);
        if strided {
            t[2] = t[2].tr().contiguous().tr();
            t[4] = Tensor::stack(&[&t[4], &t[4]], 2).select(2, 1);
            assert!(!t[2].is_contiguous() && !t[4].is_contiguous());
        }
        for seed in [1.0, -2.5] {
            let (_, pullback) = loss::vjp(&t[0], &t[1], &t[2], &t[3], &t[4], &t[5]);
            let c = pullback.call(Tensor::from(seed));
            for (which, cotangent) in [(2, &c.w1), (3, &c.b1), (4, &c.w2), (5, &c.b2)] {
                check_differences(&t, which, cotangent, seed);
            }
        }
    }
}

#[test]
fn a_thousand_steps_hold_no_more_memory_than_one() {
    let [x, y, w1, b1, w2, b2] = inputs(8, 6);
    let step = || {
        let (value, c) = loss::value_and_grad(&x, &y, &w1, &b1, &w2, &b2);
        drop((value, c));
        let w = w1.detach().set_requires_grad(true);
        loss::autograd(&x, &y, &w, &b1, &w2, &b2).backward();
    };
    step();
    let first = measure_storage(step).1;
    assert_eq!(first.live, 0, "a step keeps nothing");
    for i in 0..1000 {
        let now = measure_storage(step).1;
        assert_eq!(
            (now.live, now.peak, now.allocated),
            (0, first.peak, first.allocated),
            "step {i}"
        );
    }
}

#[test]
fn results_of_the_direct_path_have_no_graph() {
    let [x, y, w1, b1, w2, b2] = inputs(2, 3);
    let w1 = w1.set_requires_grad(true);
    let (value, c) = loss::value_and_grad(&x, &y, &w1, &b1, &w2, &b2);
    for t in [&value, &c.w1, &c.b1, &c.w2, &c.b2] {
        assert!(!t.requires_grad());
    }
}
