//! Forward mode: tangents of the outputs, with the pullback as the oracle.

use crate::functions::*;
use crate::support::*;
use cotangent_runtime::differentiable::{LeafKind, Number};
use cotangent_runtime::engine::Function;
use tch::{Kind, Tensor};

fn tensor(number: Number) -> Tensor {
    match number {
        Number::Tensor(t) => t,
        other => panic!("{other:?} is no tensor"),
    }
}

/// The tangents of so many outputs that are tensors.
fn push<R: Returned>(
    function: &'static Function,
    args: &[&dyn Argument],
    tangents: Vec<Number>,
    outputs: usize,
) -> Result<Vec<Tensor>, cotangent_runtime::Error> {
    let (_, run) = vjp::<R>(function, args)?;
    let numbers = run.push(tangents, &vec![LeafKind::Tensor; outputs])?;
    Ok(numbers.into_iter().map(tensor).collect())
}

fn dot(a: &[Tensor], b: &[Tensor]) -> f64 {
    let products = a.iter().zip(b).filter(|(a, b)| a.defined() && b.defined());
    products.map(|(a, b)| (a * b).sum(Kind::Double).double_value(&[])).sum()
}

#[test]
fn tangents_agree_with_cotangents() {
    let [x, w, v] = [random(1, &[4, 3]), random(2, &[3, 5]), random(3, &[5, 2])];
    let [s, t] = [random(4, &[3, 3]), random(5, &[3, 3])];
    let (a, b) = (random(6, &[3]), random(7, &[3]));
    let check = |function, args: &[&dyn Argument], wrt: &[&Tensor], shapes: &[&[i64]]| {
        let tangents: Vec<Tensor> = wrt.iter().map(|x| random(20, &x.size())).collect();
        let seeds: Vec<Tensor> = shapes.iter().map(|s| random(30, s)).collect();
        let numbers = || tangents.iter().map(|t| Number::Tensor(t.shallow_clone())).collect();
        let (pushed, bars) = match shapes.len() {
            1 => {
                let (_, run) = vjp::<Tensor>(function, args).unwrap();
                (push::<Tensor>(function, args, numbers(), 1), pull(&run, &seeds))
            }
            _ => {
                let (_, run) = vjp::<Two>(function, args).unwrap();
                (push::<Two>(function, args, numbers(), 2), pull(&run, &seeds))
            }
        };
        let (forward, backward) = (dot(&seeds, &pushed.unwrap()), dot(&bars.unwrap(), &tangents));
        assert!(
            (forward - backward).abs() < 1e-12 * (1.0 + backward.abs()),
            "{function:?}: {forward} {backward}"
        );
        assert!(backward != 0.0);
    };
    check(compiled_net(), &[&&x, &&w, &&v], &[&x, &w, &v], &[&[4, 2]]);
    check(compiled_energy(), &[&&s, &&t], &[&s, &t], &[&[]]);
    check(compiled_with_buffer(), &[&&s, &&t], &[&s], &[&[]]);
    check(compiled_pair(), &[&&a, &&b], &[&a, &b], &[&[3], &[]]);
    check(compiled_doubled(), &[&&s], &[&s], &[&[3, 3], &[3, 3]]);
    check(compiled_unchanged(), &[&&s], &[&s], &[&[3, 3]]);
}

#[test]
fn floats_have_tangents_too() {
    let x = random(1, &[3]);
    let y = push::<Tensor>(
        compiled_scaled(),
        &[&&x, &2.0],
        vec![Number::Tensor(Tensor::new()), Number::F64(0.5)],
        1,
    );
    same_all(&y.unwrap(), &[&x * &x * 0.5]);
}

#[test]
fn without_a_tangent_there_is_none() {
    let (x, w, v) = (random(1, &[4, 3]), random(2, &[3, 5]), random(3, &[5, 2]));
    let none = (0..3).map(|_| Number::Tensor(Tensor::new())).collect();
    let y = push::<Tensor>(compiled_net(), &[&&x, &&w, &&v], none, 1).unwrap();
    assert!(!y[0].defined());
}

#[test]
fn a_tangent_of_another_shape_is_refused() {
    let x = random(1, &[3, 3]);
    let text = push::<Two>(compiled_doubled(), &[&&x], vec![Number::Tensor(random(1, &[2]))], 2);
    let text = text.unwrap_err().to_string();
    assert!(
        text.contains("the tangent of `tests::f`") && text.contains("[3, 3]"),
        "{text}"
    );
}

#[test]
fn an_op_that_libtorch_differentiates_has_no_forward_mode_and_is_named() {
    let x = random(1, &[3]);
    let text = push::<Tensor>(compiled_bessel(), &[&&x], vec![Number::Tensor(random(2, &[3]))], 1);
    let text = text.unwrap_err().to_string();
    assert!(text.contains("no forward mode") && text.contains("`i0`"), "{text}");
}
