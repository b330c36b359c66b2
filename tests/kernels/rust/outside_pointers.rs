//! Functions known by pointer alone. Shape: function pointers and trait objects made by the caller, within structs, where no
//! parameter's type names them.
//! Hard: no derivative of them is part of the program; the call must say so, in a panic like any other.
use cotangent::differentiable;
use std::panic::{AssertUnwindSafe, catch_unwind};

struct Law {
    force: fn(f64) -> f64,
}

#[differentiable(wrt(x))]
fn through(law: &Law, x: &[f64]) -> f64 {
    let squares: Vec<f64> = x.iter().map(|x| x * x).collect();
    match x.len() {
        1 => squares[0],
        _ => squares.iter().map(|s| (law.force)(*s)).sum(),
    }
}

fn never_seen(x: f64) -> f64 {
    x.sin() * x
}

const NEVER_SEEN: Law = Law { force: never_seen };

trait Potential {
    fn at(&self, r: f64) -> f64;
}

struct Unforeseen(f64);

impl Potential for Unforeseen {
    fn at(&self, r: f64) -> f64 {
        self.0 / r
    }
}

struct Field(Box<dyn Potential>);

fn field() -> Field {
    Field(Box::new(Unforeseen(2.0)))
}

#[differentiable(wrt(r))]
fn energy(field: &Field, r: f64) -> f64 {
    let boxed = Box::new(r * r);
    field.0.at(*boxed) + r
}

fn message(call: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(call)).expect_err("it panics");
    payload.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn a_function_made_outside_is_named_in_a_panic_and_the_next_call_works() {
    for _ in 0..3 {
        let says = message(|| drop(through::grad(&NEVER_SEEN, &[0.5, 2.0])));
        assert!(says.contains("never_seen"), "{says}");
        assert_eq!(through::grad(&NEVER_SEEN, &[3.0]).x, [6.0]);
    }
}

#[test]
fn a_trait_object_made_outside_is_named_in_a_panic() {
    let says = message(|| drop(energy::value_and_grad(&field(), 1.5)));
    assert!(says.contains("Unforeseen") && says.contains("at"), "{says}");
}

#[test]
fn forward_mode_says_the_same() {
    let says = message(|| _ = energy::jvp(&field(), 1.5, energy::Tangents { r: 1.0 }));
    assert!(says.contains("Unforeseen"), "{says}");
}

#[test]
fn the_twins_return_it_as_an_error() {
    let error = through::try_grad(&NEVER_SEEN, &[0.5, 2.0]).err().expect("it fails");
    assert!(error.to_string().contains("never_seen"), "{error}");
}
