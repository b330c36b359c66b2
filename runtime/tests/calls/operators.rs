//! Compiled functions as operators, called through LibTorch's dispatcher.

use crate::functions::*;
use crate::support::*;
use cotangent_graph::ir::Arg;
use cotangent_runtime::engine::{Function, dispatch, register_function};
use tch::{Kind, Tensor};

/// The product, as a function that says its types.
fn typed() -> &'static Function {
    let mut f = Open::new();
    let (x, w) = (f.tensor(0), f.tensor(1));
    let y = f.op("mul", [x.into(), w.into()]);
    let y = f.op("mul_scalar", [y.into(), Arg::Float(2.0)]);
    f.give(0, y);
    f.typed(
        "tests::twice_the_product",
        &[("x", "& Tensor", true), ("w", "& Tensor", false)],
        "Tensor",
    )
}

#[test]
fn a_registered_function_is_an_operator_with_the_same_autograd() {
    assert_eq!(
        register_function("cotangent_tests", typed()).unwrap().as_deref(),
        Some("twice_the_product")
    );
    let (x, w) = (leaf(&random(1, &[3])), random(2, &[3]));
    let call = |x: &Tensor, w: &Tensor| dispatch("cotangent_tests::twice_the_product", &[x, w], 1);
    let y = call(&x, &w).unwrap().remove(0);
    assert!(y.requires_grad());
    same(&y.detach(), &(x.detach() * &w * 2.0));
    y.sum(Kind::Double).backward();
    same(&x.grad(), &(&w * 2.0));
    assert!(!tch::no_grad(|| call(&x, &w)).unwrap()[0].requires_grad());

    let text = call(&x, &leaf(&w)).unwrap_err().to_string();
    assert!(text.contains("`w` requires grad"), "{text}");
    let text = call(&x, &random(1, &[4])).unwrap_err().to_string();
    assert!(text.contains("must match the size"), "{text}");
    let text = register_function("cotangent_tests", typed()).unwrap_err().to_string();
    assert!(text.contains("cotangent_tests::twice_the_product"), "{text}");
}

#[test]
fn what_a_schema_cannot_express_is_not_registered() {
    assert_eq!(register_function("cotangent_tests", compiled_net()).unwrap(), None);
}
