//! The direct path: forward, then the pullback, as often as wanted.

use crate::functions::*;
use crate::support::*;
use cotangent_runtime::differentiable::Number;
use tch::{Kind, Tensor};

fn net_inputs() -> (Tensor, Tensor, Tensor) {
    (random(1, &[4, 3]), random(2, &[3, 5]), random(3, &[5, 2]))
}

#[test]
fn result_and_cotangents_are_those_of_native_autograd() {
    let function = compiled_net();
    for n in [4, 4, 7] {
        let (x, w, v) = (random(n, &[n, 3]), random(2, &[3, 5]), random(3, &[5, 2]));
        let (y, run) = vjp::<Tensor>(function, &[&&x, &&w, &&v]).unwrap();
        same(&y, &net(&x, &w, &v));
        assert!(!y.requires_grad());
        let leaves = [leaf(&x), leaf(&w), leaf(&v)];
        let [a, b, c] = &leaves;
        for k in 0..3 {
            let seed = random(10 + k, &[n, 2]);
            let want = native(&[&net(a, b, c)], &[seed.shallow_clone()], &[a, b, c]);
            same_all(&pull(&run, &[seed]).unwrap(), &want);
        }
    }
}

#[test]
fn an_output_without_a_seed_contributes_nothing_and_a_parameter_without_a_path_is_undefined() {
    let (x, w) = (random(1, &[3]), random(2, &[3]));
    let (y, run) = vjp::<Two>(compiled_pair(), &[&&x, &&w]).unwrap();
    let (a, b) = (leaf(&x), leaf(&w));
    let s = random(3, &[3]);
    let full = native(&[&pair(&a, &b).0], &[s.shallow_clone()], &[&a, &b]);
    same_all(&pull(&run, &[s, Tensor::new()]).unwrap(), &full);
    let only_sum = pull(&run, &[Tensor::new(), Tensor::from(2.0)]).unwrap();
    same(&only_sum[0], &(x.ones_like() * 2.0));
    assert!(!only_sum[1].defined());
    let nothing = pull(&run, &[Tensor::new(), Tensor::new()]).unwrap();
    assert!(nothing.iter().all(|t| !t.defined()));
    drop(y);
}

#[test]
fn a_seed_of_another_shape_or_kind_is_refused_and_the_next_call_works() {
    let (x, w, v) = net_inputs();
    let (_, run) = vjp::<Tensor>(compiled_net(), &[&&x, &&w, &&v]).unwrap();
    for bad in [random(1, &[5, 2]), random(1, &[4, 2]).to_kind(Kind::Float)] {
        let text = pull(&run, &[bad]).unwrap_err().to_string();
        assert!(
            text.contains("the seed of `tests::f`") && text.contains("[4, 2]"),
            "{text}"
        );
    }
    assert!(pull(&run, &[random(1, &[4, 2])]).is_ok());
}

#[test]
fn a_saved_tensor_that_was_written_to_is_an_error_and_one_that_was_not_saved_is_none() {
    let (x, w, v) = net_inputs();
    let (_, run) = vjp::<Tensor>(compiled_net(), &[&&x, &&w, &&v]).unwrap();
    let _ = w.shallow_clone().g_add_scalar_(1.0);
    let text = pull(&run, &[random(1, &[4, 2])]).unwrap_err().to_string();
    let phrase = "one of the variables needed for gradient computation has been modified by an inplace operation";
    assert!(
        text.contains(phrase) && text.contains("[CPUDoubleType [3, 5]]") && text.contains("version 1"),
        "{text}"
    );

    let (x, buffer) = (random(1, &[3]), random(2, &[3]));
    let (_, run) = vjp::<Tensor>(compiled_with_buffer(), &[&&x, &&buffer]).unwrap();
    let want = buffer.sin();
    let _ = buffer.shallow_clone().g_add_scalar_(1.0);
    same_all(&pull(&run, &[Tensor::from(1.0)]).unwrap(), &[want]);
}

#[test]
fn floats_have_cotangents_too() {
    let (x, k) = (random(1, &[4]), 1.7);
    let (y, run) = vjp::<Tensor>(compiled_scaled(), &[&&x, &k]).unwrap();
    same(&y, &scaled(&x, k));
    let seed = random(2, &[4]);
    let got = run.pullback(vec![Number::Tensor(seed.shallow_clone())]).unwrap();
    let [Number::Tensor(x_bar), Number::F64(k_bar)] = got.as_slice() else {
        panic!("{got:?}")
    };
    same(x_bar, &(&x * &seed * (2.0 * k)));
    let want = f64::try_from((&x * &x * &seed).sum(Kind::Double)).unwrap();
    assert!((k_bar - want).abs() < 1e-12);
    // Another float is no other specialization.
    let (y, _) = vjp::<Tensor>(compiled_scaled(), &[&&x, &2.5]).unwrap();
    same(&y, &scaled(&x, 2.5));
}

#[test]
fn the_same_tensor_in_two_positions_has_a_cotangent_for_each() {
    let x = random(1, &[3, 3]);
    let (_, run) = vjp::<Tensor>(compiled_energy(), &[&&x, &&x]).unwrap();
    let got = pull(&run, &[Tensor::from(1.0)]).unwrap();
    let (a, b) = (leaf(&x), leaf(&x));
    same_all(&got, &native(&[&energy(&a, &b)], &[Tensor::from(1.0)], &[&a, &b]));
}

#[test]
fn strided_and_broadcast_arguments_and_seeds_are_read_by_their_strides() {
    let x = random(1, &[3, 4]).transpose(0, 1);
    let (w, v) = (random(2, &[5, 3]).transpose(0, 1), random(3, &[5, 2]));
    let (_, run) = vjp::<Tensor>(compiled_net(), &[&&x, &&w, &&v]).unwrap();
    let seed = random(4, &[1, 2]).expand([4, 2], false);
    let (a, b, c) = (leaf(&x), leaf(&w), leaf(&v));
    let want = native(&[&net(&a, &b, &c)], &[seed.shallow_clone()], &[&a, &b, &c]);
    same_all(&pull(&run, &[seed]).unwrap(), &want);
}

#[test]
fn cotangents_are_the_callers_own() {
    let x = random(1, &[3]);
    let (_, run) = vjp::<Tensor>(compiled_unchanged(), &[&&x]).unwrap();
    let seed = random(2, &[3]);
    let before = seed.copy();
    let mut got = pull(&run, &[seed.shallow_clone()]).unwrap();
    let _ = got[0].fill_(9.0);
    same(&seed, &before);
}

#[test]
fn threads_share_a_pullback() {
    let (x, w, v) = net_inputs();
    let (_, run) = vjp::<Tensor>(compiled_net(), &[&&x, &&w, &&v]).unwrap();
    let wanted: Vec<(Tensor, Vec<Tensor>)> = (0..8)
        .map(|k| {
            let (a, b, c, seed) = (leaf(&x), leaf(&w), leaf(&v), random(20 + k, &[4, 2]));
            let want = native(&[&net(&a, &b, &c)], &[seed.shallow_clone()], &[&a, &b, &c]);
            (seed, want)
        })
        .collect();
    std::thread::scope(|scope| {
        for (seed, want) in wanted {
            let run = &run;
            scope.spawn(move || {
                for _ in 0..10 {
                    same_all(&pull(run, &[seed.shallow_clone()]).unwrap(), &want);
                }
            });
        }
    });
}
