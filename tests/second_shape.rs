//! Counts of compilations. Alone in its process: the counters are the process's own.

use cotangent::{differentiable, materializations, specializations};
use tch::{Device, Kind, Tensor};

#[differentiable(wrt(w))]
fn product(x: &Tensor, w: &Tensor) -> Tensor {
    x.matmul(w).tanh()
}

fn call(batch: i64) {
    let t = |shape: &[i64]| Tensor::ones(shape, (Kind::Double, Device::Cpu));
    let (out, pullback) = product::vjp(&t(&[batch, 3]), &t(&[3, 2]));
    drop(pullback.call(out));
}

#[test]
fn a_second_shape_compiles_once_and_a_known_one_not_at_all() {
    let counts = || (specializations(), materializations());
    assert_eq!(counts(), (0, 0), "nothing is compiled before the first call");
    call(3);
    let first = counts();
    assert!(
        first.0 == 1 && first.1 >= 2,
        "forward and backward of one shape: {first:?}"
    );
    call(3);
    assert_eq!(counts(), first, "a known shape compiles nothing");
    call(5);
    assert_eq!(
        counts(),
        (2, 2 * first.1),
        "another shape compiles as much again, without a rebuild"
    );
    call(3);
    assert_eq!(counts(), (2, 2 * first.1), "the first shape is still known");
}
