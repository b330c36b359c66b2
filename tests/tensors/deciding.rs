//! Algorithms that decide on what they computed: iterations until convergence, labels, an argmax as a trip count, recursion,
//! a search along a line, rows written by decision, numbers of every kind read back.
//! Hard: the decisions lie between compiled regions of one call, whose gradient crosses all of them.
use cotangent::differentiable;
use tch::{Kind, Tensor};

#[macro_use]
#[path = "support.rs"]
mod support;
use support::*;

#[differentiable]
fn newton(a: &Tensor) -> Tensor {
    let mut x = a.ones_like();
    loop {
        let next = (&x + a / &x) * 0.5;
        let done = (&next - &x).abs().max().double_value(&[]) < 1e-9;
        x = next;
        if done {
            return x;
        }
    }
}

#[test]
fn iterates_until_convergence() {
    let a = pos(1, &[4]) * 3.0;
    check!(newton(&a) wrt a);
}

#[differentiable(wrt(x, w))]
fn by_labels(x: &Tensor, w: &Tensor, labels: &Tensor) -> Tensor {
    let labels = Vec::<i64>::try_from(labels).unwrap();
    let mut total = Tensor::zeros([], (Kind::Double, x.device()));
    for (i, label) in labels.iter().enumerate() {
        let row = x.get(i as i64);
        total = total
            + match label {
                0 => row.dot(w),
                1 => (&row * 2.0).exp().sum(Kind::Double),
                n => row.get(n % 3) * *n as f64,
            };
    }
    total
}

#[test]
fn labels_choose_the_path() {
    let (x, w) = (r64(1, &[4, 3]), r64(2, &[3]));
    for labels in [[0i64, 1, 2, 5], [1, 1, 0, 3]] {
        let labels = Tensor::from_slice(&labels);
        check!(by_labels(&x, &w, &labels) wrt x, w);
    }
}

#[differentiable(wrt(scores, values))]
fn best_of(scores: &Tensor, values: &Tensor) -> Tensor {
    let best = scores.argmax(0, false).int64_value(&[]);
    let mut state: Option<Tensor> = None;
    for i in 0..=best {
        let v = values.get(i) * scores.get(i);
        state = Some(match state.take() {
            None => v,
            Some(s) if i % 2 == 0 => s * v,
            Some(s) => s + v,
        });
    }
    state.unwrap()
}

#[test]
fn an_argmax_is_a_trip_count() {
    for seed in 1..5 {
        let (scores, values) = (r64(seed, &[5]), r64(seed + 10, &[5, 2]));
        check!(best_of(&scores, &values) wrt scores, values);
    }
}

fn halve(x: &Tensor, depth: u32) -> Tensor {
    if depth == 0 || x.norm().double_value(&[]) < 0.5 {
        return x.sin();
    }
    let parts = x.chunk(2, 0);
    let left = halve(&(&parts[0] * 0.9), depth - 1);
    let right = if parts.len() > 1 {
        halve(&(&parts[1] * 0.8), depth - 1)
    } else {
        left.ones_like()
    };
    left.sum(Kind::Double) * right.sum(Kind::Double) + x.mean(Kind::Double)
}

#[differentiable]
fn recursive_decisions(x: &Tensor) -> Tensor {
    halve(x, 3)
}

#[test]
fn decisions_in_recursion() {
    for seed in 1..4 {
        let x = r64(seed, &[8]);
        check!(recursive_decisions(&x) wrt x);
    }
}

#[differentiable(wrt(x, step))]
fn line_search(x: &Tensor, step: &Tensor) -> Tensor {
    let f = |p: &Tensor| (p * p * p).sum(Kind::Double) + p.square().sum(Kind::Double);
    let mut best = x.shallow_clone();
    let mut value = f(&best).double_value(&[]);
    let mut t = 1.0;
    for _ in 0..6 {
        let candidate = &best - step * t;
        let v = f(&candidate).double_value(&[]);
        if v < value {
            best = candidate;
            value = v;
        } else {
            t *= 0.5;
        }
    }
    best * value
}

#[test]
fn a_search_along_a_line() {
    let (x, step) = (r64(1, &[3]), r64(2, &[3]));
    check!(line_search(&x, &step) wrt x, step);
}

#[differentiable]
fn buffer(x: &Tensor, w: &Tensor) -> Tensor {
    let out = Tensor::zeros_like(x);
    for i in 0..x.size()[0] {
        let row = x.get(i) * w;
        if row.sum(Kind::Double).double_value(&[]) > 0.0 {
            out.get(i).copy_(&row.tanh());
        } else {
            let _ = out.narrow(0, i, 1).fill_(0.25);
        }
    }
    out
}

#[test]
fn rows_written_by_decision() {
    let (x, w) = (r64(1, &[5, 3]), r64(2, &[3]));
    check!(buffer(&x, &w) wrt x, w);
}

#[differentiable(wrt(x))]
fn float_numbers(x: &Tensor) -> Tensor {
    let a = x.get(0).double_value(&[]);
    let b = f32::try_from(x.get(1).to_kind(Kind::Float)).unwrap();
    let c = i32::try_from((x.get(2) * 10.0).round().to_kind(Kind::Int)).unwrap();
    let on = bool::try_from(x.get(0).gt(0.0)).unwrap();
    x * a + x.square() * b as f64 + if on { x * c as f64 } else { x.sin() }
}

#[test]
fn numbers_of_every_kind() {
    for seed in 1..5 {
        let x = r64(seed, &[4]);
        check!(float_numbers(&x) wrt x);
    }
}
