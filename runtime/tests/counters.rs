//! What the engine counts. A process of its own: other tests would be counted too.
#![allow(unreachable_pub, reason = "a test is no library")]

#[macro_use]
#[path = "calls/support.rs"]
#[allow(dead_code, reason = "shared with the tests of calls")]
mod support;
#[path = "calls/functions.rs"]
#[allow(dead_code, reason = "shared with the tests of calls")]
mod functions;

use cotangent_runtime::engine::{materializations, residual_bytes, specializations};
use functions::compiled_net;
use support::{leaf, pull, random, vjp};
use tch::{Kind, Tensor};

#[test]
fn shapes_are_compiled_once_and_residuals_are_freed() {
    let function = compiled_net();
    let (w, v) = (random(2, &[3, 5]), random(3, &[5, 2]));
    let call = |n: i64| {
        let x = random(n, &[n, 3]);
        let (_, run) = vjp::<Tensor>(function, &[&&x, &&w, &&v]).unwrap();
        pull(&run, &[random(1, &[n, 2])]).unwrap();
        run
    };
    let first = call(4);
    let made = materializations();
    assert_eq!((specializations(), made >= 2), (1, true));
    drop(call(4));
    assert_eq!((specializations(), materializations()), (1, made));
    drop(call(7));
    drop(call(4));
    assert_eq!(specializations(), 2);
    assert!(materializations() > made);

    // Of the forward's own values, the backward reads the activation: 4 by 5 doubles.
    assert_eq!(residual_bytes(), 4 * 5 * 8);
    drop(first);
    assert_eq!(residual_bytes(), 0);

    let (x, w, v) = (leaf(&random(1, &[4, 3])), leaf(&w), leaf(&v));
    let y: Tensor = support::autograd(function, &[&&x, &&w, &&v]).unwrap();
    assert_eq!(residual_bytes(), 4 * 5 * 8);
    y.sum(Kind::Double).backward();
    assert_eq!(residual_bytes(), 0);
}
