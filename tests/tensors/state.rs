//! State and text around tensors: names parsed, cells and counted pointers, arrays of constant length, iterator adapters, a
//! tree, labelled loops over small integers, trait objects with state, complex numbers.
//! Hard: all of it runs in the evaluator, and none of it is left in the graph.
use cotangent::{Differentiable, differentiable};
use std::cell::RefCell;
use std::rc::Rc;
use tch::{Kind, Tensor};

#[macro_use]
#[path = "support.rs"]
mod support;
use support::*;

#[differentiable(wrt(x))]
fn by_name(x: &Tensor, names: &[&str]) -> Tensor {
    let mut h = x.shallow_clone();
    for name in names {
        h = match *name {
            "relu" => h.relu(),
            "tanh" => h.tanh(),
            s if s.starts_with("scale:") => {
                let k: f64 = s["scale:".len()..].parse().expect("a number");
                h * k
            }
            s => panic!("no activation {s}"),
        };
    }
    h
}

#[test]
fn names_choose_layers() {
    let x = r64(1, &[4]);
    check!(by_name(&x, &["tanh", "scale:2.5", "relu"]) wrt x);
}

struct Tracker {
    mean: RefCell<Option<Tensor>>,
    count: RefCell<i64>,
}

#[differentiable]
fn cells(x: &Tensor, w: &Tensor) -> Tensor {
    let tracker = Rc::new(Tracker {
        mean: RefCell::new(None),
        count: RefCell::new(0),
    });
    let other = Rc::clone(&tracker);
    for i in 0..3 {
        let v = x * (i as f64 + 1.0) + w;
        let mut mean = other.mean.borrow_mut();
        *mean = Some(match mean.as_ref() {
            None => v,
            Some(m) => m * 0.9 + v * 0.1,
        });
        *tracker.count.borrow_mut() += 1;
    }
    let n = *tracker.count.borrow();
    let mean = tracker.mean.borrow_mut().take().unwrap();
    mean * n as f64
}

#[test]
fn cells_and_counted_pointers() {
    let (x, w) = (r64(1, &[3]), r64(2, &[3]));
    check!(cells(&x, &w) wrt x, w);
}

struct Bank<const N: usize> {
    w: [Tensor; N],
}

impl<const N: usize> Bank<N> {
    fn apply(&self, x: &Tensor) -> [Tensor; N] {
        std::array::from_fn(|i| x.matmul(&self.w[i]).softmax(-1, Kind::Double))
    }
}

#[differentiable]
fn arrays(x: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
    let bank = Bank::<2> {
        w: [a.shallow_clone(), b.tr()],
    };
    let [p, q] = bank.apply(x);
    (p * q.log()).sum(Kind::Double)
}

#[test]
fn arrays_of_constant_length() {
    let (x, a, b) = (r64(1, &[2, 3]), r64(2, &[3, 3]), r64(3, &[3, 3]));
    check_scalar!(arrays(&x, &a, &b) wrt x, a, b);
}

#[differentiable]
fn adapters(xs: &[Tensor], w: &Tensor) -> Tensor {
    let scans: Vec<Tensor> = xs
        .iter()
        .scan(w.shallow_clone(), |state, x| {
            *state = (&*state + x).tanh();
            Some(state.shallow_clone())
        })
        .collect();
    let picked: Vec<&Tensor> = scans.iter().rev().step_by(2).chain(xs.first()).collect();
    let pairs: Vec<Tensor> = picked.chunks(2).flat_map(|c| c.iter().map(|t| *t * w)).collect();
    let (big, small): (Vec<Tensor>, Vec<Tensor>) = pairs
        .into_iter()
        .enumerate()
        .map(|(i, t)| t * i as f64)
        .partition(|t| t.numel() > 2);
    big.into_iter()
        .chain(small)
        .reduce(|a, b| a + b)
        .unwrap_or_else(|| w.zeros_like())
}

#[test]
fn iterator_adapters() {
    for n in [1u64, 2, 5] {
        let xs: Vec<Tensor> = (0..n).map(|i| r64(i + 1, &[3])).collect();
        let w = r64(20, &[3]);
        check!(adapters(&xs, &w) wrt xs, w);
    }
}

#[derive(Differentiable)]
struct Tree {
    value: Tensor,
    children: Vec<Tree>,
}
flat_struct!(Tree { value, children });

fn sum_tree(t: &Tree, depth: i32) -> Tensor {
    let own = &t.value * 2f64.powi(depth);
    t.children
        .iter()
        .map(|c| sum_tree(c, depth + 1))
        .fold(own, |a, b| (a + b).sin())
}

#[differentiable]
fn trees(tree: &Tree) -> Tensor {
    sum_tree(tree, 0)
}

#[test]
fn a_tree_of_tensors() {
    let leaf_ = |s: u64| Tree {
        value: r64(s, &[2]),
        children: vec![],
    };
    let tree = Tree {
        value: r64(1, &[2]),
        children: vec![
            leaf_(2),
            Tree {
                value: r64(3, &[2]),
                children: vec![leaf_(4), leaf_(5)],
            },
        ],
    };
    check!(trees(&tree) wrt tree);
}

#[differentiable]
fn labelled(x: &Tensor, w: &Tensor, limit: i32) -> Tensor {
    let mut h = x.shallow_clone();
    let mut seen: u8 = 250;
    'outer: for i in 0..5i32 {
        for j in (i..5).rev() {
            if i * j > limit {
                break 'outer;
            }
            if (i ^ j) & 1 == 1 {
                continue;
            }
            seen = seen.wrapping_add(3);
            h = h * w + (seen as f32 / 256.0) as f64;
        }
    }
    h * seen.count_ones() as f64
}

#[test]
fn labels_and_small_integers() {
    let (x, w) = (r64(1, &[3]), r64(2, &[3]));
    for limit in [2, 7, 100] {
        check!(labelled(&x, &w, limit) wrt x, w);
    }
}

trait Step {
    fn step(&mut self, x: Tensor) -> Tensor;
}

struct Momentum {
    velocity: Tensor,
    rate: f64,
}

impl Step for Momentum {
    fn step(&mut self, x: Tensor) -> Tensor {
        self.velocity = &self.velocity * self.rate + &x;
        x - &self.velocity * 0.1
    }
}

struct Every<S: Step> {
    inner: S,
    n: usize,
    calls: usize,
}

impl<S: Step> Step for Every<S> {
    fn step(&mut self, x: Tensor) -> Tensor {
        self.calls += 1;
        if self.calls % self.n == 0 {
            self.inner.step(x)
        } else {
            x
        }
    }
}

#[differentiable]
fn stateful(x: &Tensor, v: &Tensor) -> Tensor {
    let mut steps: Vec<Box<dyn Step>> = vec![
        Box::new(Momentum {
            velocity: v.shallow_clone(),
            rate: 0.9,
        }),
        Box::new(Every {
            inner: Momentum {
                velocity: v.sin(),
                rate: 0.5,
            },
            n: 2,
            calls: 0,
        }),
    ];
    let mut x = x.shallow_clone();
    for _ in 0..3 {
        for s in &mut steps {
            x = s.step(x);
        }
    }
    x
}

#[test]
fn state_behind_trait_objects() {
    let (x, v) = (r64(1, &[3]), r64(2, &[3]));
    check!(stateful(&x, &v) wrt x, v);
}

#[differentiable]
fn complex_numbers(re: &Tensor, im: &Tensor) -> Tensor {
    let f = Tensor::complex(re, im);
    let s = f.fft_fft(None, -1, "ortho");
    s.abs().sum(Kind::Double)
}

#[test]
fn a_spectrum() {
    let (re, im) = (r64(1, &[8]), r64(2, &[8]));
    check_scalar!(complex_numbers(&re, &im) wrt re, im);
}

#[differentiable(wrt(x))]
fn spectrum_of_reals(x: &Tensor) -> Tensor {
    let s = x.fft_rfft(None, -1, "backward");
    s.real().square().sum(Kind::Double) + s.imag().abs().sum(Kind::Double)
}

#[test]
fn a_real_spectrum() {
    let x = r64(1, &[8]);
    check_scalar!(spectrum_of_reals(&x) wrt x);
}
