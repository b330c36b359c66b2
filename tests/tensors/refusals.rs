//! What cannot be raised is refused with the reason, and never differentiated wrongly.
//! The crate is built so that refused functions fail when they are called.
use cotangent::{custom_vjp, differentiable};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use tch::Tensor;

#[macro_use]
#[path = "support.rs"]
mod support;
use support::*;

#[differentiable]
fn printing(x: &Tensor) -> Tensor {
    x.print();
    x.exp()
}

static CALLS: AtomicI64 = AtomicI64::new(0);

#[differentiable]
fn numbered(x: &Tensor) -> Tensor {
    let number = CALLS.fetch_add(1, Ordering::Relaxed);
    x * number as f64
}

#[differentiable]
fn negated_together(x: &Tensor) -> Tensor {
    CALLS.fetch_nand(3, Ordering::Relaxed);
    x.exp()
}

static LOCK: Mutex<f64> = Mutex::new(2.0);

#[differentiable]
fn locking(x: &Tensor) -> Tensor {
    x * *LOCK.lock().unwrap()
}

#[differentiable]
fn hashed(x: &Tensor) -> Tensor {
    let named = HashMap::from([("a", x.sin()), ("b", x.cos())]);
    &named["a"] * &named["b"]
}

struct Called {
    f: fn(&Tensor) -> Tensor,
}

#[differentiable(wrt(x))]
fn calling(x: &Tensor, by: &Called) -> Tensor {
    (by.f)(x)
}

#[differentiable]
fn scaled_without_grad(x: &Tensor) -> Tensor {
    let mut h = x.sin();
    tch::no_grad(|| h *= 2.0);
    h
}

#[differentiable]
fn dropped(x: &Tensor, p: f64) -> Tensor {
    x.dropout(p, true)
}

fn refused<T>(result: Result<T, cotangent::Error>, reason: &str) {
    let text = result.err().expect("a refusal").to_string();
    assert!(
        text.contains("cannot be differentiated") && text.contains(reason),
        "{text}"
    );
}

#[test]
fn output_of_a_tensor_is_refused() {
    refused(printing::try_vjp(&r64(1, &[3])), "at_print");
}

#[test]
fn what_an_atomic_update_found_is_refused() {
    refused(numbered::try_vjp(&r64(1, &[3])), "atomic update");
}

#[custom_vjp(forward = ruled_forward, backward = ruled_backward)]
fn ruled(x: &Tensor) -> Tensor {
    x * CALLS.load(Ordering::Relaxed)
}

fn ruled_forward(x: &Tensor) -> (Tensor, ()) {
    (ruled(x), ())
}

fn ruled_backward((): (), seed: Tensor) -> Tensor {
    seed
}

#[differentiable]
fn written_for_a_rule(x: &Tensor) -> Tensor {
    CALLS.store(3, Ordering::Relaxed);
    ruled(x)
}

#[test]
fn a_static_written_before_a_rule_that_may_read_it_is_refused() {
    refused(
        written_for_a_rule::try_vjp(&r64(1, &[3])),
        "writes to a static before it calls",
    );
}

#[test]
fn an_atomic_update_without_a_counterpart_is_refused() {
    refused(negated_together::try_vjp(&r64(1, &[3])), "`nand`");
}

#[test]
fn a_lock_is_refused() {
    refused(locking::try_vjp(&r64(1, &[3])), "compare-and-exchange");
}

#[test]
fn a_map_with_random_hashes_is_refused() {
    refused(hashed::try_vjp(&r64(1, &[3])), "a `BTreeMap` does not");
}

#[test]
fn a_function_pointer_from_outside_is_refused() {
    refused(
        calling::try_vjp(&r64(1, &[3]), &Called { f: Tensor::sin }),
        "function pointer",
    );
}

#[test]
fn a_write_without_grad_to_a_tensor_that_depends_on_others_is_refused() {
    refused(scaled_without_grad::try_vjp(&r64(1, &[3])), "no_grad");
}

#[test]
fn a_derivative_for_a_probability_is_refused() {
    refused(dropped::try_vjp(&r64(1, &[3]), 0.5), "`p`");
}
