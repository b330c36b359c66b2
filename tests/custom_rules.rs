//! Rules of one's own and inactive functions inside tensor functions.
//!
//! Needs the pass: `cargo cotangent test`. Each rule's derivative is not the true one, so that tests can tell which of
//! the two was used.

use cotangent::{Saved, custom_vjp, differentiable, inactive};
use std::sync::atomic::{AtomicUsize, Ordering};
use tch::{Device, Kind, Tensor};

fn t(values: &[f64]) -> Tensor {
    Tensor::from_slice(values)
}

fn assert_is(got: &Tensor, want: &[f64]) {
    let want = t(want).view(got.size().as_slice());
    assert!(got.defined(), "undefined, not {want:?}");
    assert!(
        got.allclose(&want, 1e-12, 1e-12, false),
        "{:?} is not {:?}",
        got.print(),
        want.print()
    );
}

// `x * x * k`, with the derivative of `10 * x` and, in `k`, of `x.sum()`.
#[custom_vjp(forward = square_forward, backward = square_backward)]
fn square(x: &Tensor, k: f64) -> Tensor {
    x * x * k
}

fn square_forward(x: &Tensor, k: f64) -> (Tensor, (Saved, f64)) {
    (x * x * k, (Saved::new(x), k))
}

fn square_backward((x, _k): (Saved, f64), seed: Tensor) -> (Tensor, f64) {
    let k = (&*x * &seed).sum(Kind::Double).double_value(&[]);
    (seed * 10.0, k)
}

#[differentiable]
fn once(x: &Tensor, k: f64) -> Tensor {
    (square(&(x + 1.0), k * 2.0) * 3.0).sum(Kind::Double)
}

#[test]
fn the_rule_is_used_and_not_the_body() {
    let x = t(&[1.0, 2.0]);
    let (value, pullback) = once::vjp(&x, 0.5);
    assert_is(&value, &[3.0 * (4.0 + 9.0)]);
    for seed in [1.0, -2.0] {
        let c = pullback.call(Tensor::from(seed));
        assert_is(&c.x, &[30.0 * seed, 30.0 * seed]);
        assert!((c.k - 2.0 * 3.0 * 5.0 * seed).abs() < 1e-12, "{}", c.k);
    }
}

#[test]
fn the_rule_is_used_in_libtorchs_graph() {
    let x = t(&[1.0, 2.0]).set_requires_grad(true);
    let y = once::autograd(&(&x * 2.0), 0.5) + x.sum(Kind::Double);
    y.backward();
    assert_is(&x.grad(), &[61.0, 61.0]);
}

#[test]
fn forward_mode_stops_at_a_rule_for_the_way_back_unless_nothing_moves_there() {
    let x = t(&[1.0, 2.0]);
    let moves = once::Tangents {
        x: t(&[1.0, 0.0]),
        k: 0.0,
    };
    let text = once::try_jvp(&x, 0.5, moves)
        .expect_err("it has no tangent")
        .to_string();
    assert!(
        text.contains("`custom_rules::square`") && text.contains("use `vjp`"),
        "{text}"
    );
    let moves = selected::Tangents { w: t(&[2.0, 3.0]) };
    let (value, tangent) = selected::jvp(&x, &t(&[5.0, 7.0]), moves);
    assert_is(&value, &[5.0, 28.0]);
    assert_is(&tangent, &[2.0, 12.0]);
}

#[test]
fn shapes_may_change_from_call_to_call() {
    for n in [3, 1, 5, 3] {
        let x = Tensor::ones([n], (Kind::Double, Device::Cpu));
        let c = once::grad(&x, 1.0);
        assert_is(&c.x, &vec![30.0; n as usize]);
    }
}

#[differentiable(wrt(x))]
fn in_a_loop(x: &Tensor, rounds: usize) -> Tensor {
    let mut y = x.shallow_clone();
    for i in 0..rounds {
        y = helper(&y) + x * i as f64;
    }
    y
}

fn helper(y: &Tensor) -> Tensor {
    square(y, 1.0).sin()
}

#[test]
fn rules_in_loops_and_helpers_chain() {
    let x = t(&[0.3, -0.7]);
    for rounds in [1, 3, 0, 2] {
        let (_, pullback) = in_a_loop::vjp(&x, rounds);
        // The same chain by hand: dy' = cos(y * y) * 10 * dy + i.
        let (mut y, mut dy) = (x.copy(), x.ones_like());
        for i in 0..rounds {
            dy = (&y * &y).cos() * 10.0 * dy + i as f64;
            y = (&y * &y).sin() + &x * i as f64;
        }
        let c = pullback.call(x.ones_like());
        assert!(c.x.allclose(&dy, 1e-10, 1e-12, false), "{rounds} rounds");
    }
}

// Two results; the derivative exchanges the seeds.
#[custom_vjp(forward = parts_forward, backward = parts_backward)]
fn parts(x: &Tensor) -> (Tensor, f64) {
    (x * 2.0, x.sum(Kind::Double).double_value(&[]))
}

fn parts_forward(x: &Tensor) -> ((Tensor, f64), Saved) {
    (parts(x), Saved::new(x))
}

fn parts_backward(x: Saved, (tensor, float): (Tensor, f64)) -> Tensor {
    let seed = if tensor.defined() { tensor } else { x.zeros_like() };
    seed * 100.0 + float
}

#[differentiable(wrt(x))]
fn of_parts(x: &Tensor, which: i64) -> Tensor {
    let (a, s) = parts(x);
    match which {
        0 => a,
        1 => x.ones_like() * s,
        _ => a * s,
    }
}

#[test]
fn a_rule_gives_tensors_and_floats_and_a_result_without_a_path_has_no_seed() {
    let x = t(&[1.0, 2.0]);
    let seed = || t(&[1.0, 1.0]);
    assert_is(&of_parts::vjp(&x, 0).1.call(seed()).x, &[100.0, 100.0]);
    assert_is(&of_parts::vjp(&x, 1).1.call(seed()).x, &[2.0, 2.0]);
    // a * s: the seed of `a` is 3, that of `s` is 2 + 4.
    assert_is(&of_parts::vjp(&x, 2).1.call(seed()).x, &[306.0, 306.0]);
}

#[differentiable(wrt(x))]
fn under_no_grad(x: &Tensor) -> Tensor {
    let constant = tch::no_grad(|| square(x, 1.0));
    x * constant
}

#[test]
fn under_no_grad_a_rule_gives_constants() {
    let x = t(&[2.0, 3.0]);
    assert_is(&under_no_grad::vjp(&x).1.call(x.ones_like()).x, &[4.0, 9.0]);
}

#[differentiable(wrt(w))]
fn selected(x: &Tensor, w: &Tensor) -> Tensor {
    square(x, 1.0) * w
}

static BACKWARDS: AtomicUsize = AtomicUsize::new(0);

#[custom_vjp(forward = watched_forward, backward = watched_backward)]
fn watched(x: &Tensor) -> Tensor {
    x.shallow_clone()
}

fn watched_forward(x: &Tensor) -> (Tensor, ()) {
    (x.shallow_clone(), ())
}

fn watched_backward((): (), seed: Tensor) -> Tensor {
    BACKWARDS.fetch_add(1, Ordering::Relaxed);
    seed
}

#[differentiable(wrt(w))]
fn of_another(x: &Tensor, w: &Tensor) -> Tensor {
    watched(x) * w
}

#[test]
fn the_backward_of_a_rule_runs_only_for_what_was_asked_for() {
    let (x, w) = (t(&[1.0, 2.0]), t(&[3.0, 4.0]));
    assert_is(&selected::vjp(&x, &w).1.call(x.ones_like()).w, &[1.0, 4.0]);
    assert_is(&of_another::vjp(&x, &w).1.call(x.ones_like()).w, &[1.0, 2.0]);
    assert_eq!(BACKWARDS.load(Ordering::Relaxed), 0);
}

// The identity: its result is its argument, its cotangent is its seed.
#[custom_vjp(forward = identity_forward, backward = identity_backward)]
fn identity(x: &Tensor) -> Tensor {
    x.shallow_clone()
}

fn identity_forward(x: &Tensor) -> (Tensor, ()) {
    (x.shallow_clone(), ())
}

fn identity_backward((): (), seed: Tensor) -> Tensor {
    seed
}

#[differentiable]
fn of_identity(x: &Tensor) -> Tensor {
    identity(x)
}

#[test]
fn a_rule_that_hands_on_its_argument_and_its_seed_shares_neither() {
    let x = t(&[1.0, 2.0]);
    let seed = t(&[5.0, 7.0]);
    let (value, pullback) = of_identity::vjp(&x);
    assert_is(&value, &[1.0, 2.0]);
    let c = pullback.call(seed.shallow_clone());
    assert_is(&c.x, &[5.0, 7.0]);
    assert_ne!(c.x.data_ptr(), seed.data_ptr());
    let x = x.set_requires_grad(true);
    let y = of_identity::autograd(&x);
    assert!(y.requires_grad() && !y.is_leaf());
    y.sum(Kind::Double).backward();
    assert_is(&x.grad(), &[1.0, 1.0]);
}

#[test]
fn a_pullback_with_a_rule_is_called_from_another_thread() {
    let (_, pullback) = once::vjp(&t(&[1.0, 2.0]), 1.0);
    let call = || pullback.call(Tensor::from(1.0)).x;
    let x = std::thread::scope(|scope| scope.spawn(call).join().expect("no panic"));
    assert_is(&x, &[30.0, 30.0]);
    assert_is(&call(), &[30.0, 30.0]);
}

#[test]
fn a_call_with_a_rule_frees_what_it_keeps() {
    let x = t(&[1.0, 2.0]);
    let call = || {
        let (value, pullback) = once::vjp(&x, 1.0);
        drop((
            value,
            pullback.call(Tensor::from(1.0)),
            pullback.call(Tensor::from(2.0)),
        ));
        let x = x.detach().set_requires_grad(true);
        once::autograd(&x, 1.0).backward();
    };
    call();
    let (_, used) = cotangent::measure_storage(call);
    assert_eq!(used.live, 0);
}

#[custom_vjp(forward = failing_forward, backward = failing_backward)]
fn failing(x: &Tensor, in_forward: bool) -> Tensor {
    let _ = in_forward;
    x.shallow_clone()
}

fn failing_forward(x: &Tensor, in_forward: bool) -> (Tensor, bool) {
    assert!(!in_forward, "the forward half fails");
    (x.shallow_clone(), in_forward)
}

fn failing_backward(_: bool, _: Tensor) -> Tensor {
    panic!("the backward half fails")
}

#[differentiable(wrt(x))]
fn of_failing(x: &Tensor, in_forward: bool) -> Tensor {
    failing(&(x * 2.0), in_forward)
}

#[test]
fn a_panic_in_a_rule_is_that_panic_and_the_next_call_works() {
    let x = t(&[1.0]);
    let error = of_failing::try_vjp(&x, true).map(|_| ()).expect_err("it panics");
    assert!(error.to_string().contains("the forward half fails"), "{error}");
    let (_, pullback) = of_failing::try_vjp(&x, false).expect("the forward works");
    let error = pullback.try_call(t(&[1.0])).map(|_| ()).expect_err("it panics");
    assert!(error.to_string().contains("the backward half fails"), "{error}");
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| pullback.call(t(&[1.0]))));
    let payload = panic.map(|_| ()).expect_err("it panics");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"the backward half fails"));
    let y = t(&[1.0]).set_requires_grad(true) * 2.0;
    assert!(y.requires_grad(), "grad mode is as it was");
    assert_is(&once::grad(&t(&[1.0]), 1.0).x, &[30.0]);
}

#[custom_vjp(forward = wrong_forward, backward = wrong_backward)]
fn wrong(x: &Tensor) -> Tensor {
    x.shallow_clone()
}

fn wrong_forward(x: &Tensor) -> (Tensor, ()) {
    (x.shallow_clone(), ())
}

fn wrong_backward((): (), seed: Tensor) -> Tensor {
    seed.sum(Kind::Double)
}

#[differentiable]
fn of_wrong(x: &Tensor) -> Tensor {
    wrong(x).exp()
}

#[test]
fn a_cotangent_of_another_shape_is_an_error() {
    let (_, pullback) = of_wrong::vjp(&t(&[1.0, 2.0]));
    let error = pullback
        .try_call(t(&[1.0, 1.0]))
        .map(|_| ())
        .expect_err("a wrong shape");
    assert!(
        error.to_string().contains("wrong") && error.to_string().contains("[2]"),
        "{error}"
    );
}

#[test]
fn a_second_derivative_through_a_rule_is_refused() {
    let x = t(&[1.0, 2.0]).set_requires_grad(true);
    let y = once::autograd(&x, 0.5);
    let error = Tensor::f_run_backward(&[&y], &[&x], true, true)
        .map(|_| ())
        .expect_err("refused");
    assert!(error.to_string().contains("twice"), "{error}");
}

// By value; the derivative is that of `-x`.
#[custom_vjp(forward = consumed_forward, backward = consumed_backward)]
fn consumed(x: Tensor, scale: f32, n: i64) -> Tensor {
    x * f64::from(scale) * n
}

fn consumed_forward(x: Tensor, scale: f32, n: i64) -> (Tensor, ()) {
    (consumed(x, scale, n), ())
}

fn consumed_backward((): (), seed: Tensor) -> (Tensor, f32) {
    (-seed, 2.5)
}

#[differentiable]
fn of_consumed(x: &Tensor, scale: f32) -> Tensor {
    consumed(x * 2.0, scale, x.size()[0])
}

#[test]
fn arguments_by_value_are_moved_into_the_rule() {
    let x = t(&[1.0, 2.0]);
    let (value, pullback) = of_consumed::vjp(&x, 0.5);
    assert_is(&value, &[2.0, 4.0]);
    let c = pullback.call(x.ones_like());
    assert_is(&c.x, &[-2.0, -2.0]);
    assert_eq!(c.scale, 2.5);
}

#[inactive]
fn noise(x: &Tensor, k: f64) -> (Tensor, f64) {
    (x.sin() * k, k * 2.0)
}

#[differentiable]
fn of_noise(x: &Tensor, k: f64) -> Tensor {
    let (n, twice) = noise(x, k);
    x * n * twice * k
}

#[test]
fn what_an_inactive_function_returns_is_constant() {
    let x = t(&[1.0, 2.0]);
    let (_, pullback) = of_noise::vjp(&x, 0.5);
    let c = pullback.call(x.ones_like());
    // n = sin(x) / 2, twice = 1
    let n = x.sin() * 0.5;
    assert!(c.x.allclose(&(&n * 0.5), 1e-12, 1e-12, false));
    assert!((c.k - (&x * &n).sum(Kind::Double).double_value(&[])).abs() < 1e-12);
}
