//! Derivatives of derivatives through LibTorch's graph (`create_graph`).

use crate::functions::*;
use crate::support::*;
use tch::{Kind, Tensor};

type F<'a> = &'a dyn Fn(&Tensor, &Tensor) -> Tensor;

#[test]
fn second_and_third_derivatives_are_native_ones() {
    let run = |f: F| {
        let (x, w) = (leaf(&random(1, &[3, 3])), leaf(&random(2, &[3, 3])));
        let y = f(&x, &w) * x.sum(Kind::Double);
        let g = gradients(&y, &[&x, &w], true, true);
        let s = (&g[0] * &g[1]).sum(Kind::Double) + g[0].square().sum(Kind::Double);
        let h = gradients(&s, &[&x, &w], true, true);
        let third = gradients(&h[0].sum(Kind::Double), &[&x], true, false);
        let all = [&g[0], &g[1], &h[0], &h[1], &third[0]];
        Vec::from(all.map(|t| t.detach()))
    };
    let function = compiled_energy();
    same_all(&run(&|x, w| autograd(function, &[&x, &w]).unwrap()), &run(&energy));
}

#[test]
fn a_gradient_that_depends_on_the_seed_alone_is_differentiable_for_the_seed() {
    let run = |f: F| {
        let (x, w) = (leaf(&random(1, &[3])), leaf(&random(2, &[3])));
        let y = f(&x, &w);
        let g = gradients(&(&y * &y).sum(Kind::Double), &[&x], true, true);
        gradients(&g[0].sum(Kind::Double), &[&x, &w], false, false)
    };
    let function = compiled_pair();
    let compiled = |x: &Tensor, w: &Tensor| {
        let Two(a, b) = autograd(function, &[&x, &w]).unwrap();
        a + b
    };
    same_all(
        &run(&compiled),
        &run(&|x, w| {
            let Two(a, b) = pair(x, w);
            a + b
        }),
    );
}

#[test]
fn an_op_that_libtorch_differentiates_has_a_first_derivative_and_no_silent_second() {
    assert!(
        cotangent_graph::ops::Op::named("i0").own.is_none(),
        "the test needs an op without a rule"
    );
    let function = compiled_bessel();
    let (x, a) = (leaf(&random(1, &[3])), leaf(&random(1, &[3])));
    let y: Tensor = autograd(function, &[&&x]).unwrap();
    y.sum(Kind::Double).backward();
    bessel(&a).sum(Kind::Double).backward();
    same(&x.grad(), &a.grad());

    let y: Tensor = autograd(function, &[&&x]).unwrap();
    let text = Tensor::f_run_backward(&[y.sum(Kind::Double)], &[&x], true, true)
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("cannot be differentiated again") && text.contains("`i0`"),
        "{text}"
    );
}
