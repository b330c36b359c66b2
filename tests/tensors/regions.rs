//! Shape: elements of tensors decide how a function goes on, between writes, views, integers and early returns.
//! Hard: a region of the graph ends at each such decision; what was made, viewed and written before must still be what
//! later regions use and differentiate.
use cotangent::differentiable;
use tch::{IndexOp, Kind, Tensor};

#[macro_use]
#[path = "support.rs"]
mod support;
use support::*;

#[differentiable]
fn halves_until_small(x: &Tensor) -> Tensor {
    let mut y = x * 2.0;
    let mut sum = y.sum(Kind::Double);
    while sum.double_value(&[]) > 1.0 {
        y *= 0.5;
        sum = (&y * &y).sum(Kind::Double);
    }
    y * sum
}

#[differentiable]
fn a_view_over_the_decision(x: &Tensor) -> Tensor {
    let y = x.exp();
    let row = y.get(0);
    if x.sum(Kind::Double).double_value(&[]) > 0.0 {
        &y * &row
    } else {
        row.sin()
    }
}

#[differentiable(wrt(x))]
fn counts(x: &Tensor, index: &Tensor) -> Tensor {
    let n = index.i(0).int64_value(&[]);
    let mut y = x.shallow_clone();
    for _ in 0..n {
        y = y.sin() * x;
    }
    if index.i(1).gt(2).int64_value(&[]) != 0 {
        y = -y;
    }
    y.narrow(0, 0, n.max(1))
}

#[differentiable]
fn written_before(buffer: &mut Tensor, x: &Tensor) -> Tensor {
    *buffer += x;
    let s = buffer.sum(Kind::Double);
    if s.double_value(&[]) > 0.0 {
        *buffer *= x;
        &*buffer * 3.0
    } else {
        buffer.tanh()
    }
}

#[differentiable(wrt(x))]
fn early(x: &Tensor, limit: f64) -> Option<Tensor> {
    let norm = x.norm();
    if norm.double_value(&[]) > limit {
        return None;
    }
    Some(x / norm)
}

#[differentiable]
fn a_number_that_decides_and_scales(x: &Tensor, k: f64) -> Tensor {
    let m = x.max().double_value(&[]);
    let scale = m * k;
    if scale > 1.0 { x / scale } else { x * x * (k + m) }
}

#[test]
fn a_loop_ends_on_what_it_computes_in_place() {
    for k in [0.1, 1.0, 3.0] {
        let x = r64(1, &[3]).abs() * k;
        check!(halves_until_small(&x) wrt x);
    }
}

#[test]
fn a_view_lives_over_a_decision() {
    for shift in [2.0, -2.0] {
        let x = r64(2, &[2, 3]) + shift;
        check!(a_view_over_the_decision(&x) wrt x);
    }
}

#[test]
fn integers_and_flags_are_read_from_tensors() {
    let x = r64(3, &[4]);
    for (n, flag) in [(2, 1), (0, 5), (3, 3), (2, 4)] {
        let index = Tensor::from_slice(&[n as i64, flag]);
        check!(counts(&x, &index) wrt x);
    }
}

#[test]
fn a_parameter_that_was_written_before_is_seeded_and_differentiated() {
    for shift in [1.0, -1.0] {
        let x = r64(5, &[3]) * 0.1 + shift;
        let start = r64(4, &[3]) * 0.1;
        let mut buffer = start.copy();
        let (value, pullback) = written_before::vjp(&mut buffer, &x);
        let seed = |b: f64, r: f64| written_before::Seed {
            buffer: Tensor::ones_like(&start) * b,
            ret: Tensor::ones_like(&start) * r,
        };
        // The same with LibTorch's own autograd.
        let (b, y) = (start.copy().set_requires_grad(true), x.copy().set_requires_grad(true));
        let mut plain = &b * 1.0;
        let expected = written_before(&mut plain, &y);
        assert!(value.allclose(&expected, 1e-12, 1e-12, false) && buffer.allclose(&plain, 1e-12, 1e-12, false));
        for (of_buffer, of_result) in [(1.0, 0.0), (0.5, 2.0)] {
            let total = (&plain * of_buffer + &expected * of_result).sum(Kind::Double);
            let g = Tensor::run_backward(&[&total], &[&b, &y], true, false);
            let c = pullback.call(seed(of_buffer, of_result));
            assert!(c.buffer.allclose(&g[0], 1e-10, 1e-12, false), "{shift} {of_buffer}");
            assert!(c.x.allclose(&g[1], 1e-10, 1e-12, false), "{shift} {of_buffer}");
        }
    }
}

#[test]
fn a_function_may_return_early() {
    let x = r64(6, &[3]);
    for limit in [0.01, 100.0] {
        let (value, pullback) = early::vjp(&x, limit);
        assert_eq!(value.is_none(), limit < 1.0);
        let c = pullback.call(Tensor::ones_like(&x));
        let y = x.copy().set_requires_grad(true);
        match early(&y, limit) {
            None => assert!(!c.x.defined()),
            Some(z) => {
                z.sum(Kind::Double).backward();
                assert!(c.x.allclose(&y.grad(), 1e-10, 1e-12, false));
            }
        }
    }
}

#[test]
fn a_number_read_is_a_constant_where_it_scales() {
    for k in [0.1, 10.0] {
        let x = r64(7, &[4]).abs() + 0.5;
        check!(a_number_that_decides_and_scales(&x, k) wrt x);
    }
}

#[test]
fn forward_mode_goes_through_the_regions() {
    let dot = |a: &Tensor, b: &Tensor| (a * b).sum(Kind::Double).double_value(&[]);
    for k in [0.1, 1.0, 3.0] {
        let (x, t, seed) = (r64(20, &[3]).abs() * k, r64(21, &[3]), r64(22, &[3]));
        let (value, tangent) = halves_until_small::jvp(&x, halves_until_small::Tangents { x: t.shallow_clone() });
        let (other, pullback) = halves_until_small::vjp(&x);
        assert!(value.equal(&other));
        let (forward, backward) = (dot(&seed, &tangent), dot(&pullback.call(seed.shallow_clone()).x, &t));
        assert!((forward - backward).abs() <= 1e-12 * backward.abs() && backward != 0.0, "{forward} {backward}");
    }
}

#[test]
fn threads_share_the_regions() {
    std::thread::scope(|scope| {
        for t in 0..4u64 {
            scope.spawn(move || {
                for i in 0..10 {
                    let x = r64(10 + t, &[3]).abs() * (0.1 + i as f64 * 0.3);
                    let c = halves_until_small::vjp(&x).1.call(x.ones_like());
                    let y = x.copy().set_requires_grad(true);
                    halves_until_small(&y).sum(Kind::Double).backward();
                    assert!(c.x.allclose(&y.grad(), 1e-10, 1e-12, false));
                }
            });
        }
    });
}

#[test]
fn a_call_that_reads_elements_keeps_nothing() {
    let x = r64(8, &[64]).abs();
    let call = || {
        let (value, pullback) = halves_until_small::vjp(&x);
        drop((value, pullback.call(x.ones_like())));
        let x = x.detach().set_requires_grad(true);
        halves_until_small::autograd(&x).sum(Kind::Double).backward();
    };
    call();
    assert_eq!(cotangent::measure_storage(call).1.live, 0);
}
