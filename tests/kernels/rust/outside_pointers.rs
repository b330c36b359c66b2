//! Functions known by pointer alone. Shape: closures, function pointers and trait objects as arguments, made by the caller.
//! Hard: no derivative of them is part of the program; the call must say so, in a panic like any other.
use cotangent::differentiable;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[differentiable(wrt(x))]
fn through(f: fn(f64) -> f64, x: &[f64]) -> f64 {
    let squares: Vec<f64> = x.iter().map(|x| x * x).collect();
    match x.len() {
        1 => squares[0],
        _ => squares.iter().map(|s| f(*s)).sum(),
    }
}

fn never_seen(x: f64) -> f64 {
    x.sin() * x
}

trait Potential {
    fn at(&self, r: f64) -> f64;
}

struct Unforeseen(f64);

impl Potential for Unforeseen {
    fn at(&self, r: f64) -> f64 {
        self.0 / r
    }
}

#[differentiable(wrt(r))]
fn energy(potential: &dyn Potential, r: f64) -> f64 {
    let boxed = Box::new(r * r);
    potential.at(*boxed) + r
}

fn message(call: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(call)).expect_err("it panics");
    payload.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn a_function_made_outside_is_named_in_a_panic_and_the_next_call_works() {
    for _ in 0..3 {
        let says = message(|| drop(through::grad(never_seen, &[0.5, 2.0])));
        assert!(says.contains("never_seen"), "{says}");
        assert_eq!(through::grad(never_seen, &[3.0]).x, [6.0]);
    }
}

#[test]
fn a_trait_object_made_outside_is_named_in_a_panic() {
    let says = message(|| drop(energy::value_and_grad(&Unforeseen(2.0), 1.5)));
    assert!(says.contains("Unforeseen") && says.contains("at"), "{says}");
}

#[test]
fn forward_mode_says_the_same() {
    let says = message(|| _ = energy::jvp(&Unforeseen(2.0), 1.5, energy::Tangents { r: 1.0 }));
    assert!(says.contains("Unforeseen"), "{says}");
}

#[test]
fn the_twins_return_it_as_an_error() {
    let error = through::try_grad(never_seen, &[0.5, 2.0]).err().expect("it fails");
    assert!(error.to_string().contains("never_seen"), "{error}");
}
