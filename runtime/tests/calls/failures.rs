//! Calls that fail, fail as the function itself does, and leave everything usable.

use crate::functions::*;
use crate::support::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tch::Tensor;

#[test]
fn a_shape_mismatch_has_the_native_text_on_every_path() {
    let (x, w, good, bad) = (
        random(1, &[4, 3]),
        random(2, &[3, 5]),
        random(3, &[5, 2]),
        random(3, &[6, 2]),
    );
    let native = headline(&random(0, &[4, 5]).f_matmul(&bad).unwrap_err().to_string());
    let function = compiled_net();
    for _ in 0..3 {
        let direct = vjp::<Tensor>(function, &[&&x, &&w, &&bad]).expect_err("an error");
        let attached = autograd::<Tensor>(function, &[&&leaf(&x), &&leaf(&w), &&leaf(&bad)]);
        for error in [direct, attached.expect_err("an error")] {
            assert!(error.to_string().contains(&native), "{error} does not say: {native}");
        }
        let (y, _) = vjp::<Tensor>(function, &[&&x, &&w, &&good]).unwrap();
        same(&y, &net(&x, &w, &good));
    }
}

#[test]
fn raising_the_error_goes_on_with_the_panic_of_the_function() {
    let (x, w, bad) = (random(1, &[4, 3]), random(2, &[3, 5]), random(3, &[6, 2]));
    let text = |f: &dyn Fn()| {
        let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("a panic");
        let text = payload.downcast_ref::<String>().expect("a message").clone();
        headline(&text)
    };
    let native = text(&|| drop(net(&x, &w, &bad)));
    let compiled = text(&|| {
        vjp::<Tensor>(compiled_net(), &[&&x, &&w, &&bad])
            .expect_err("an error")
            .raise()
    });
    assert_eq!(native, compiled);
}

#[test]
fn a_seed_for_a_tensor_of_integers_has_no_effect() {
    let x = Tensor::from_slice(&[1i64, 2, 3]);
    let (y, run) = vjp::<Tensor>(compiled_unchanged(), &[&&x]).unwrap();
    assert_eq!(y.kind(), tch::Kind::Int64);
    assert!(!pull(&run, &[x.ones_like()]).unwrap()[0].defined());
}
