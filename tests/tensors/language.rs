//! Forms of Rust around tensors: `?`, iterators, collections, enums, operators of one's own, sizes computed and sorted,
//! slices of numbers, early returns, tensors read into vectors.
//! Hard: a queue and a map are run by the evaluator as the program would run them; a size of no dimension has no memory;
//! numbers read from a tensor are constants for the derivative.
use cotangent::{Differentiable, differentiable};
use std::collections::{BTreeMap, VecDeque};
use tch::{Kind, TchError, Tensor};

#[macro_use]
#[path = "support.rs"]
mod support;
use support::*;

#[differentiable]
fn fallible(x: &Tensor, w: &Tensor) -> Tensor {
    inner(x, w).expect("shapes fit")
}

fn inner(x: &Tensor, w: &Tensor) -> Result<Tensor, TchError> {
    let h = x.f_matmul(w)?;
    let h = h.f_tanh()?;
    h.f_sum_dim_intlist(Some([0i64].as_slice()), false, Kind::Double)
}

#[test]
fn question_marks() {
    let (x, w) = (r64(1, &[2, 3]), r64(2, &[3, 4]));
    check!(fallible(&x, &w) wrt x, w);
}

#[differentiable]
fn collected(x: &Tensor, k: &Tensor) -> Tensor {
    let parts: Vec<Tensor> = (0..x.size()[0]).map(|i| x.get(i)).collect();
    let squares: Vec<_> = parts.iter().map(|p| p * p).filter(|p| p.numel() > 1).collect();
    let total: Tensor = squares.iter().zip(parts.iter().rev()).map(|(a, b)| a * b * k).sum();
    let windows = parts
        .windows(2)
        .map(|w| &w[0] - &w[1])
        .fold(Tensor::zeros_like(&parts[0]), |a, b| a + b.square());
    total + windows
}

#[test]
fn iterators() {
    let (x, k) = (r64(1, &[4, 3]), r64(2, &[3]));
    check!(collected(&x, &k) wrt x, k);
}

#[differentiable]
fn optional(x: &Tensor, bias: Option<&Tensor>) -> Tensor {
    let h = x.sin();
    match bias {
        Some(b) => h + b,
        None => h,
    }
}

#[test]
fn optional_arguments() {
    let (x, b) = (r64(1, &[3]), r64(2, &[3]));
    for bias in [Some(&b), None] {
        let xl = leaf(&x);
        let want = optional(&xl, bias);
        want.sum(Kind::Double).backward();
        let (out, pull) = optional::vjp(&x, bias);
        same("value", &out, &want.detach());
        let c = pull.call(out.ones_like());
        same("x", &c.x, &xl.grad());
    }
}

#[differentiable]
fn queues(x: &Tensor, w: &Tensor) -> Tensor {
    let mut queue: VecDeque<(Tensor, u32)> = VecDeque::from([(x * 2.0, 0)]);
    let mut out = w.shallow_clone();
    while let Some((t, depth)) = queue.pop_front() {
        out = (out * &t).tanh();
        if depth < 2 {
            queue.push_back((t.sin(), depth + 1));
            queue.push_front((t * x, depth + 1));
        }
    }
    out
}

#[test]
fn a_queue() {
    let (x, w) = (r64(1, &[3]), r64(2, &[3]));
    check!(queues(&x, &w) wrt x, w);
}

#[differentiable]
fn maps(x: &Tensor, w: &Tensor) -> Tensor {
    let mut named: BTreeMap<&str, Tensor> = BTreeMap::new();
    named.insert("a", x.sin());
    named.insert("b", w.cos());
    named.insert("c", x * w);
    let total: Tensor = named.values().sum();
    total * &named["b"]
}

#[test]
fn a_map() {
    let (x, w) = (r64(1, &[3]), r64(2, &[3]));
    check!(maps(&x, &w) wrt x, w);
}

#[derive(Clone, Copy)]
enum Activation {
    Tanh,
    SinTimes,
}

enum Layer {
    Dense { w: Tensor, b: Tensor },
    Act(Activation),
    Scale(f64),
    Skip(Box<Layer>),
}

impl Layer {
    fn forward(&self, x: Tensor) -> Tensor {
        match self {
            Layer::Dense { w, b } => x.matmul(w) + b,
            Layer::Act(Activation::Tanh) => x.tanh(),
            Layer::Act(Activation::SinTimes) => x.sin() * x,
            Layer::Scale(s) if *s == 1.0 => x,
            Layer::Scale(s) => x * *s,
            Layer::Skip(inner) => inner.forward(x.shallow_clone()) + x,
        }
    }
}

#[differentiable(wrt(x))]
fn enums(x: &Tensor, layers: &[Layer]) -> Tensor {
    layers.iter().fold(x.shallow_clone(), |h, l| l.forward(h))
}

#[test]
fn layers_in_an_enum() {
    let x = r64(1, &[2, 3]);
    let layers = [
        Layer::Dense {
            w: r64(2, &[3, 3]),
            b: r64(3, &[3]),
        },
        Layer::Act(Activation::Tanh),
        Layer::Skip(Box::new(Layer::Skip(Box::new(Layer::Dense {
            w: r64(4, &[3, 3]),
            b: r64(5, &[3]),
        })))),
        Layer::Scale(1.0),
        Layer::Scale(0.3),
        Layer::Act(Activation::SinTimes),
    ];
    check!(enums(&x, &layers) wrt x);
}

#[differentiable]
fn swapped(x: &Tensor, y: &Tensor, turns: u32) -> (Tensor, Tensor) {
    let (mut a, mut b) = (x.sin(), y.cos());
    for i in 0..turns {
        std::mem::swap(&mut a, &mut b);
        let old = std::mem::replace(&mut a, &b * 2.0);
        b = old * &b + i as f64;
    }
    (a, b)
}

#[test]
fn swaps() {
    let (x, y) = (r64(1, &[3]), r64(2, &[3]));
    for turns in 0..4 {
        check!(swapped(&x, &y, turns) wrt x, y);
    }
}

#[derive(Differentiable)]
struct Complex {
    re: Tensor,
    im: Tensor,
}
flat_struct!(Complex { re, im });

impl std::ops::Mul for &Complex {
    type Output = Complex;
    fn mul(self, o: &Complex) -> Complex {
        Complex {
            re: &self.re * &o.re - &self.im * &o.im,
            im: &self.re * &o.im + &self.im * &o.re,
        }
    }
}

#[differentiable]
fn powers(z: &Complex, n: u32) -> Complex {
    let mut acc = Complex {
        re: z.re.ones_like(),
        im: z.re.zeros_like(),
    };
    let mut base = Complex {
        re: z.re.shallow_clone(),
        im: z.im.shallow_clone(),
    };
    let mut n = n;
    while n > 0 {
        if n & 1 == 1 {
            acc = &acc * &base;
        }
        base = &base * &base;
        n >>= 1;
    }
    acc
}

#[test]
fn operators_of_ones_own() {
    let z = Complex {
        re: r64(1, &[3]),
        im: r64(2, &[3]),
    };
    for n in [1u32, 2, 5, 12] {
        check!(powers(&z, n) wrt z);
    }
}

#[differentiable(wrt(x))]
fn shapes(x: &Tensor) -> Tensor {
    let size = x.size();
    let mut order: Vec<i64> = (0..size.len() as i64).collect();
    order.sort_by_key(|d| -size[*d as usize]);
    let p = x.permute(&order);
    let half: Vec<i64> = p.size().iter().map(|s| s / 2 + 1).collect();
    let mut out = p;
    for (d, h) in half.iter().enumerate() {
        out = out.narrow(d as i64, 0, *h);
    }
    let label = format!("{:?}", out.size());
    assert!(label.len() > 2, "an empty size");
    out.reshape([-1]) * size.iter().product::<i64>() as f64
}

#[test]
fn computed_shapes() {
    let x = r64(1, &[2, 5, 3]);
    check!(shapes(&x) wrt x);
}

#[differentiable(wrt(x))]
fn numbers_out_of_slices(x: &Tensor, weights: &[f64], picks: &[i64]) -> Tensor {
    let w = Tensor::from_slice(weights);
    let p = Tensor::from_slice(picks);
    let mean = weights.iter().sum::<f64>() / weights.len() as f64;
    x.index_select(0, &p) * w * mean
}

#[test]
fn slices_of_numbers() {
    let x = r64(1, &[5]);
    check!(numbers_out_of_slices(&x, &[0.5, 2.0, -1.0], &[4, 0, 0]) wrt x);
    check!(numbers_out_of_slices(&x, &[0.5], &[2]) wrt x);
}

#[differentiable]
fn early(x: &Tensor, w: &Tensor) -> Tensor {
    if x.dim() == 1 {
        return x * w;
    }
    let Some(&last) = x.size().last() else {
        return w.shallow_clone();
    };
    let h = match last {
        1 => x.squeeze(),
        n if n % 2 == 0 => x
            .view([-1, 2])
            .sum_dim_intlist(Some([0i64].as_slice()), false, Kind::Double),
        _ => x.mean_dim(Some([0i64].as_slice()), false, Kind::Double),
    };
    h * w
}

#[test]
fn early_returns() {
    let w = scalar(0.7);
    for shape in [vec![3], vec![], vec![4, 1], vec![3, 4], vec![2, 3]] {
        let x = r64(1, &shape);
        check!(early(&x, &w) wrt x, w);
    }
}

const LIMITS: [f64; 3] = [0.1, 0.5, 0.9];
static NAMES: &[&str] = &["a", "bb", "ccc"];

#[differentiable]
fn constants(x: &Tensor) -> Tensor {
    let mut y = x.shallow_clone();
    for (limit, name) in LIMITS.iter().zip(NAMES) {
        y = y.clamp(-limit * name.len() as f64, *limit * 2.0) + x * name.len() as f64;
    }
    y
}

#[test]
fn constants_and_statics() {
    let x = r64(1, &[6]);
    check!(constants(&x) wrt x);
}

#[differentiable(wrt(x))]
fn back_to_numbers(x: &Tensor) -> Tensor {
    let v: Vec<f64> = Vec::<f64>::try_from(x.detach()).unwrap();
    let largest = v.iter().cloned().fold(f64::MIN, f64::max);
    x * largest
}

#[test]
fn a_tensor_read_into_a_vector() {
    let x = r64(1, &[6]);
    check!(back_to_numbers(&x) wrt x);
}

#[differentiable(wrt(x))]
fn one_number(x: &Tensor) -> Tensor {
    let v = f64::try_from(&x.detach().sum(Kind::Double)).unwrap();
    x * v
}

#[test]
fn a_tensor_read_into_a_number() {
    let x = r64(1, &[6]);
    check!(one_number(&x) wrt x);
}
