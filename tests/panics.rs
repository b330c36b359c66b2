//! A panic inside a differentiated function is the program's own: its hook sees it, `catch_unwind` catches it, and the
//! next call works. Alone in its process: the hook is the process's own.
//!
//! Needs the pass: `cargo cotangent test`.

use cotangent::differentiable;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Mutex;
use tch::{Kind, Tensor};

#[differentiable(wrt(x))]
fn limited(x: &Tensor, limit: f64) -> Tensor {
    let sum = x.sum(Kind::Double);
    assert!(x.size()[0] < 4, "too long: {:?}", x.size());
    if sum.double_value(&[]) > limit {
        panic!("too much: more than {limit}");
    }
    x * sum
}

static SEEN: Mutex<Vec<String>> = Mutex::new(vec![]);

#[test]
fn the_hook_sees_a_panic_once_and_the_next_call_is_right() {
    let outer = take_hook();
    set_hook(Box::new(|info| {
        let at = info.location().map_or(0, |l| l.line());
        let text = info.payload().downcast_ref::<String>().cloned().unwrap_or_default();
        SEEN.lock()
            .expect("no panic while it is held")
            .push(format!("{text} at {at}"));
    }));
    let long = Tensor::from_slice(&[0.5; 4]);
    let x = Tensor::from_slice(&[1.0, 2.0]);
    let caught = |x: &Tensor, limit: f64| {
        let payload = catch_unwind(AssertUnwindSafe(|| limited::vjp(x, limit).0)).expect_err("it panics");
        payload.downcast_ref::<String>().cloned().unwrap_or_default()
    };
    for _ in 0..2 {
        assert_eq!(caught(&long, 10.0), "too long: [4]");
        assert_eq!(caught(&x, 2.5), "too much: more than 2.5");
        let c = limited::vjp(&x, 3.5).1.call(x.ones_like());
        assert!(c.x.equal(&Tensor::from_slice(&[6.0, 6.0])));
    }
    set_hook(outer);
    let seen = std::mem::take(&mut *SEEN.lock().expect("no panic while it is held"));
    assert_eq!(seen.len(), 4, "{seen:?}");
    assert!(seen[0].starts_with("too long: [4] at 1") && seen[1].starts_with("too much: more than 2.5 at 1"));
}
