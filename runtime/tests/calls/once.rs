//! Calls after which nothing else is asked for: `value_and_grad`, and a backward that releases what was saved.

use crate::functions::*;
use crate::support::*;
use cotangent_runtime::differentiable::Number;
use cotangent_runtime::engine::Function;
use cotangent_runtime::torch::measure_storage;
use std::cell::Cell;
use tch::Tensor;

/// The cotangents for a seed of one, and whether that seed was made.
fn of_one(function: &'static Function, args: &[&dyn Argument]) -> (Vec<Tensor>, bool) {
    let (y, run) = vjp::<Tensor>(function, args).unwrap();
    let made = Cell::new(false);
    let one = || {
        made.set(true);
        Ok(Number::Tensor(y.ones_like()))
    };
    let numbers = run.pullback_of_one(Some(one)).unwrap();
    let tensor = |n: Number| match n {
        Number::Tensor(t) => t,
        other => panic!("{other:?} is no tensor"),
    };
    (numbers.into_iter().map(tensor).collect(), made.get())
}

fn bits(tensors: &[Tensor]) -> Vec<Vec<u64>> {
    let of = |t: &Tensor| Vec::<f64>::try_from(t.reshape([-1])).unwrap();
    tensors
        .iter()
        .map(|t| of(t).into_iter().map(f64::to_bits).collect())
        .collect()
}

#[test]
fn a_seed_of_one_that_is_known_gives_the_bits_of_a_seed_that_is_passed() {
    let (x, w) = (random(1, &[3, 3]), random(2, &[3, 3]));
    let one = random(3, &[1]);
    let cases: [(&'static Function, &[&dyn Argument]); 4] = [
        (compiled_energy(), &[&&x, &&w]),
        (compiled_with_buffer(), &[&&x, &&w]),
        (compiled_unchanged(), &[&&one]),
        (compiled_bessel(), &[&&one]),
    ];
    for (function, args) in cases {
        let (y, run) = vjp::<Tensor>(function, args).unwrap();
        let want = pull(&run, &[y.ones_like()]).unwrap();
        for _ in 0..2 {
            assert_eq!(bits(&of_one(function, args).0), bits(&want), "{function:?}");
        }
    }
}

#[test]
fn a_seed_of_one_is_made_only_where_something_reads_it() {
    let (x, w) = (random(1, &[3, 3]), random(2, &[3, 3]));
    assert!(!of_one(compiled_with_buffer(), &[&&x, &&w]).1);
    let one = random(3, &[1]);
    let (cotangents, made) = of_one(compiled_unchanged(), &[&&one]);
    assert!(made);
    same_all(&cotangents, &[one.ones_like()]);
}

#[test]
fn where_there_is_nothing_to_seed_every_cotangent_is_none() {
    let one = random(3, &[1]);
    let (_, run) = vjp::<Tensor>(compiled_bessel(), &[&&one]).unwrap();
    let none = run.pullback_of_one(None::<fn() -> _>).unwrap();
    assert!(matches!(&none[..], [Number::Tensor(t)] if !t.defined()));
}

#[test]
fn the_last_backward_frees_what_was_saved_as_it_goes() {
    let (x, w) = (leaf(&random(1, &[200, 200])), leaf(&random(2, &[200, 200])));
    let backward = |keep: bool| {
        let y: Tensor = autograd(compiled_energy(), &[&&x, &&w]).unwrap();
        let (gradients, storage) = measure_storage(|| gradients(&y, &[&x, &w], keep, false));
        let want = native(&[&energy(&x, &w)], &[Tensor::from(1.0)], &[&x, &w]);
        assert!(
            gradients
                .iter()
                .zip(&want)
                .all(|(a, b)| a.allclose(b, 1e-12, 1e-12, false))
        );
        storage
    };
    backward(true);
    let (kept, released) = (backward(true), backward(false));
    let matrix = 200 * 200 * 8;
    assert!(released.allocated + matrix <= kept.allocated, "{released:?} {kept:?}");
    assert!(released.peak + matrix <= kept.peak, "{released:?} {kept:?}");
}

#[test]
fn a_backward_that_is_refused_uses_nothing_up() {
    let (x, w) = (random(1, &[3, 3]), leaf(&random(2, &[3, 3])));
    let x = leaf(&x);
    let y: Tensor = autograd(compiled_energy(), &[&&x, &&w]).unwrap();
    let _ = tch::no_grad(|| w.shallow_clone().g_add_scalar_(1.0));
    for _ in 0..2 {
        let text = Tensor::f_run_backward(&[&y], &[&x, &w], false, false)
            .unwrap_err()
            .to_string();
        assert!(text.contains("modified by an inplace operation"), "{text}");
    }
}
