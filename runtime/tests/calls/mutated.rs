//! Functions that write to their arguments: the write happens once, is on LibTorch's record, and is differentiated.

use crate::functions::*;
use crate::support::*;
use tch::{Kind, Tensor};

#[test]
fn result_and_final_value_take_seeds_and_the_cotangent_is_that_of_the_initial_value() {
    let (state, x) = (random(1, &[4]), random(2, &[4]));
    let (s0, x0) = (leaf(&state), leaf(&x));
    let mut s = s0.copy();
    let out = decay(&mut s, &x0);
    let seeds = [Tensor::from(0.7), random(3, &[4])];
    let want = native(&[&out, &s], &[share(&seeds[0]), share(&seeds[1])], &[&s0, &x0]);

    let mine = state.copy();
    let version = mine.internal_version();
    let (ret, run) = vjp::<Tensor>(compiled_decay(), &[&&mine, &&x]).unwrap();
    same(&ret, &out.detach());
    same(&mine, &s.detach());
    assert!(mine.internal_version() > version);
    for _ in 0..2 {
        same_all(&pull(&run, &seeds).unwrap(), &want);
    }
}

#[test]
fn the_graph_outside_sees_the_write() {
    let run = |compiled: bool| {
        let (s0, x) = (leaf(&random(4, &[3])), leaf(&random(5, &[3])));
        let mut s = &s0 * 2.0;
        let loss = match compiled {
            true => autograd(compiled_decay(), &[&&s, &&x]).unwrap(),
            false => decay(&mut s, &x),
        };
        (loss + s.square().sum(Kind::Double)).backward();
        [s.detach(), s0.grad(), x.grad()]
    };
    same_all(&run(true), &run(false));
}

#[test]
fn a_leaf_that_requires_grad_is_refused_with_native_words_and_untouched() {
    let (s, x) = (leaf(&random(6, &[3])), random(7, &[3]));
    let native = s.shallow_clone().f_mul_(&Tensor::from(0.9)).unwrap_err().to_string();
    for error in [
        autograd::<Tensor>(compiled_decay(), &[&&s, &&x]).unwrap_err(),
        vjp::<Tensor>(compiled_decay(), &[&&s, &&x]).expect_err("an error"),
    ] {
        assert!(
            error.to_string().contains(&headline(&native)),
            "{error} does not say: {native}"
        );
    }
    same(&s.detach(), &random(6, &[3]));
}

#[test]
fn a_buffer_is_written_once_per_call_and_by_no_pullback() {
    let (x, w) = (random(8, &[2]), random(9, &[2]));
    let (mean, plain) = (Tensor::from_slice(&[0.5, -0.5]), Tensor::from_slice(&[0.5, -0.5]));
    for _ in 0..3 {
        let before = mean.internal_version();
        let (out, run) = vjp::<Tensor>(compiled_counted(), &[&&x, &&w, &&mean]).unwrap();
        let after = mean.internal_version();
        assert!(after > before);
        let (a, b) = (leaf(&x), leaf(&w));
        let want = counted(&a, &b, &plain);
        same(&out, &want.detach());
        let seed = random(10, &[2]);
        for _ in 0..2 {
            let got = pull(&run, &[seed.shallow_clone()]).unwrap();
            same_all(&got, &native(&[&want], &[seed.shallow_clone()], &[&a, &b]));
        }
        assert_eq!(mean.internal_version(), after);
    }
    same(&mean, &plain);
}

#[test]
fn a_view_of_what_was_written_is_one_and_carries_gradients() {
    let run = |compiled: bool| {
        let s0 = leaf(&random(11, &[3]));
        let mut s = &s0 * 1.5;
        let view = match compiled {
            true => autograd(compiled_swollen(), &[&&s]).unwrap(),
            false => swollen(&mut s),
        };
        (&view * 3.0 + s.sum(Kind::Double)).sum(Kind::Double).backward();
        (
            view.data_ptr() == s.data_ptr(),
            vec![s.detach(), view.detach(), s0.grad()],
        )
    };
    let ((compiled, a), (native, b)) = (run(true), run(false));
    assert!(compiled && native);
    same_all(&a, &b);

    let state = random(12, &[3]);
    let mine = state.copy();
    let (view, pullback) = vjp::<Tensor>(compiled_swollen(), &[&&mine]).unwrap();
    assert_eq!(view.data_ptr(), mine.data_ptr());
    let got = pull(
        &pullback,
        &[Tensor::from_slice(&[2.0]), Tensor::from_slice(&[1.0, 1.0, 1.0])],
    )
    .unwrap();
    same(
        &got[0],
        &(state.exp() * (&state + 1.0) * Tensor::from_slice(&[3.0, 1.0, 1.0])),
    );
}
