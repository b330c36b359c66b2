//! The path through LibTorch's graph: `backward` runs the compiled pullback.

use crate::functions::*;
use crate::support::*;
use cotangent_runtime::engine::Function;
use tch::{Kind, Tensor};

fn net_leaves() -> (Tensor, Tensor, Tensor) {
    (
        leaf(&random(1, &[4, 3])),
        leaf(&random(2, &[3, 5])),
        leaf(&random(3, &[5, 2])),
    )
}

fn net_by(function: &'static Function, x: &Tensor, w: &Tensor, v: &Tensor) -> Tensor {
    autograd(function, &[&x, &w, &v]).unwrap()
}

#[test]
fn backward_gives_native_gradients_also_for_an_expanded_upstream_gradient() {
    let (x, w, v) = net_leaves();
    let y = net_by(compiled_net(), &x, &w, &v);
    assert!(y.requires_grad());
    same(&y, &net(&x, &w, &v));
    y.sum(Kind::Double).backward();
    let (a, b, c) = net_leaves();
    net(&a, &b, &c).sum(Kind::Double).backward();
    same_all(&[x.grad(), w.grad(), v.grad()], &[a.grad(), b.grad(), c.grad()]);
}

#[test]
fn only_what_the_engine_asks_for_is_computed_and_given() {
    let (x, w, v) = net_leaves();
    let y = net_by(compiled_net(), &x, &w, &v).sum(Kind::Double);
    let want = gradients(&net(&x, &w, &v).sum(Kind::Double), &[&v, &x], false, false);
    same_all(&gradients(&y, &[&v, &x], true, false), &want);
    same_all(&gradients(&y, &[&v], false, false), &want[..1]);
    assert!(!x.grad().defined());
}

#[test]
fn inputs_that_need_no_gradient_get_none() {
    let (x, w, v) = (random(1, &[4, 3]), leaf(&random(2, &[3, 5])), random(3, &[5, 2]));
    net_by(compiled_net(), &x, &w, &v).sum(Kind::Double).backward();
    let b = leaf(&w);
    net(&x, &b, &v).sum(Kind::Double).backward();
    same(&w.grad(), &b.grad());
    assert!(!x.grad().defined() && !v.grad().defined());
}

#[test]
fn without_gradients_nothing_is_attached() {
    let (x, w, v) = net_leaves();
    let function = compiled_net();
    let y = tch::no_grad(|| net_by(function, &x, &w, &v));
    assert!(!y.requires_grad());
    let y = net_by(function, &x.detach(), &w.detach(), &v.detach());
    assert!(!y.requires_grad());
}

#[test]
fn each_output_requires_grad_exactly_where_native_code_does() {
    let (x, w) = (random(1, &[3]), leaf(&random(2, &[3])));
    let Two(a, b) = autograd::<Two>(compiled_pair(), &[&&x, &&w]).unwrap();
    assert!(a.requires_grad() && !b.requires_grad());
    let Two(a, b) = autograd::<Two>(compiled_pair(), &[&&leaf(&x), &&w]).unwrap();
    assert!(a.requires_grad() && b.requires_grad());
}

#[test]
fn an_undefined_upstream_gradient_stays_undefined() {
    let (x, w) = (leaf(&random(1, &[3])), leaf(&random(2, &[3])));
    let Two(_, b) = autograd::<Two>(compiled_pair(), &[&&x, &&w]).unwrap();
    b.backward();
    same(&x.grad(), &x.detach().ones_like());
    assert!(!w.grad().defined());
}

#[test]
fn a_parameter_that_is_not_differentiated_must_not_require_grad() {
    let (x, buffer) = (leaf(&random(1, &[3])), leaf(&random(2, &[3])));
    let function = compiled_with_buffer();
    let text = autograd::<Tensor>(function, &[&&x, &&buffer]).unwrap_err().to_string();
    assert!(text.contains("`buffer`") && text.contains("pass it detached"), "{text}");
    let y = autograd::<Tensor>(function, &[&&x, &&buffer.detach()]).unwrap();
    y.backward();
    same(&x.grad(), &buffer.sin().detach());
    assert!(tch::no_grad(|| autograd::<Tensor>(function, &[&&x, &&buffer])).is_ok());
}

#[test]
fn kept_graphs_run_again_and_released_ones_say_so() {
    let run = |compiled: bool| {
        let (x, w) = (leaf(&random(1, &[3, 3])), leaf(&random(2, &[3, 3])));
        let y = match compiled {
            true => autograd(compiled_energy(), &[&&x, &&w]).unwrap(),
            false => energy(&x, &w),
        };
        let first = gradients(&y, &[&x], true, false);
        let second = gradients(&y, &[&w, &x], true, false);
        y.backward();
        let again = headline(&y.f_backward().expect_err("the graph is gone").to_string());
        let all: Vec<Tensor> = first.into_iter().chain(second).chain([x.grad(), w.grad()]).collect();
        (all, again)
    };
    let ((compiled, again), (native, native_again)) = (run(true), run(false));
    same_all(&compiled, &native);
    let phrase = "Trying to backward through the graph a second time";
    assert!(native_again.contains(phrase) && again.contains(phrase), "{again}");
}

#[test]
fn a_saved_tensor_changed_before_backward_is_an_error_with_native_words() {
    let (x, w, v) = net_leaves();
    let y = net_by(compiled_net(), &x, &w, &v).sum(Kind::Double);
    tch::no_grad(|| {
        let _ = w.shallow_clone().g_add_scalar_(1.0);
    });
    let text = y.f_backward().unwrap_err().to_string();
    assert!(text.contains("has been modified by an inplace operation"), "{text}");
}

#[test]
fn an_output_that_was_saved_and_is_changed_is_an_error() {
    let x = leaf(&random(1, &[2, 3]));
    let Two(t, mut y) = autograd::<Two>(compiled_doubled(), &[&&x]).unwrap();
    let mut kept = t;
    tch::no_grad(|| {
        let _ = kept.fill_(1.0);
    });
    let text = y.sum(Kind::Double).f_backward().unwrap_err().to_string();
    assert!(text.contains("has been modified by an inplace operation"), "{text}");
    y = Tensor::new();
    drop(y);
}

#[test]
fn backward_runs_on_other_threads() {
    let function = compiled_net();
    let handles: Vec<_> = (1..5)
        .map(|n| {
            std::thread::spawn(move || {
                for k in 0..5 {
                    let rows = 1 + (n + k) % 3;
                    let (x, w, v) = (
                        leaf(&random(n, &[rows, 3])),
                        leaf(&random(2, &[3, 5])),
                        leaf(&random(3, &[5, 2])),
                    );
                    let y = net_by(function, &x, &w, &v).sum(Kind::Double);
                    std::thread::spawn(move || y.backward()).join().unwrap();
                    let (a, b, c) = (leaf(&x), leaf(&w), leaf(&v));
                    net(&a, &b, &c).sum(Kind::Double).backward();
                    same_all(&[x.grad(), w.grad(), v.grad()], &[a.grad(), b.grad(), c.grad()]);
                }
            })
        })
        .collect();
    handles.into_iter().for_each(|h| h.join().unwrap());
}

#[test]
fn gradients_flow_through_what_stands_around_the_call() {
    let (x, w, v) = net_leaves();
    let run = |f: &dyn Fn(&Tensor, &Tensor, &Tensor) -> Tensor| {
        let h = &x * 2.0;
        let y = f(&h, &w, &v);
        gradients(&(y.square() * 0.5).sum(Kind::Double), &[&x, &w, &v], false, false)
    };
    let function = compiled_net();
    same_all(&run(&|x, w, v| net_by(function, x, w, v)), &run(&net));
}
