//! Shape: layers behind `&mut dyn`, what a lock guards, a tape of functions and their derivatives, values of any type.
//! Hard: what lies beside floats (a lock, a count, a type) is taken for floats where a call by pointer may lead to either.
use cotangent::differentiable;

fn agree(f: impl Fn(&[f64]) -> f64, x: &[f64], value: f64, grad: &[f64]) {
    assert_eq!(f(x).to_bits(), value.to_bits(), "value");
    assert_eq!(x.len(), grad.len(), "length");
    for i in 0..x.len() {
        let h = 1e-6 * x[i].abs().max(1.0);
        let (mut a, mut b) = (x.to_vec(), x.to_vec());
        a[i] += h;
        b[i] -= h;
        let d = (f(&a) - f(&b)) / (2.0 * h);
        assert!(
            (d - grad[i]).abs() <= 2e-6 * d.abs().max(1.0),
            "element {i}: got {}, differences {d}",
            grad[i]
        );
    }
}

macro_rules! case {
    ($test:ident, $f:ident, $x:expr) => {
        #[test]
        fn $test() {
            let x: Vec<f64> = $x;
            for _ in 0..2 {
                let (v, c) = $f::value_and_grad(&x);
                agree($f, &x, v, &c.x);
            }
            let t: Vec<f64> = (0..x.len()).map(|i| (i as f64 * 0.7 + 0.3).sin()).collect();
            let (v, dot) = $f::jvp(&x, $f::Tangents { x: t.clone() });
            let c = $f::grad(&x);
            let want: f64 = c.x.iter().zip(&t).map(|(a, b)| a * b).sum();
            assert_eq!(v.to_bits(), $f(&x).to_bits());
            assert!(
                (dot - want).abs() <= 1e-9 * want.abs().max(1.0),
                "forward {dot}, reverse {want}"
            );
        }
    };
}

fn ramp(n: usize) -> Vec<f64> {
    (0..n).map(|i| 0.4 + 0.31 * i as f64 - 0.011 * (i * i) as f64).collect()
}
use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
trait Layer {
    fn fwd(&mut self, x: &[f64]) -> Vec<f64>;
    fn n(&self) -> usize {
        0
    }
    fn as_any(&self) -> &dyn Any;
}
struct Dense {
    w: Vec<Vec<f64>>,
    b: Vec<f64>,
    calls: usize,
}
struct Act(fn(f64) -> f64);
struct Seq {
    l: Vec<Box<dyn Layer>>,
    skip: bool,
}
struct Norm {
    mean: f64,
    k: f64,
}
impl Layer for Dense {
    fn fwd(&mut self, x: &[f64]) -> Vec<f64> {
        self.calls += 1;
        self.w
            .iter()
            .zip(&self.b)
            .map(|(r, b)| r.iter().zip(x).map(|(a, b)| a * b).sum::<f64>() + b)
            .collect()
    }
    fn n(&self) -> usize {
        self.calls
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
impl Layer for Act {
    fn fwd(&mut self, x: &[f64]) -> Vec<f64> {
        x.iter().copied().map(self.0).collect()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
impl Layer for Norm {
    fn fwd(&mut self, x: &[f64]) -> Vec<f64> {
        let m = x.iter().sum::<f64>() / x.len() as f64;
        self.mean = 0.9 * self.mean + 0.1 * m;
        x.iter().map(|v| (v - self.mean) * self.k).collect()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
impl Layer for Seq {
    fn fwd(&mut self, x: &[f64]) -> Vec<f64> {
        let mut v = x.to_vec();
        for l in self.l.iter_mut() {
            let w = l.fwd(&v);
            v = if self.skip && w.len() == v.len() {
                v.iter().zip(w).map(|(a, b)| a + b).collect()
            } else {
                w
            };
        }
        v
    }
    fn n(&self) -> usize {
        self.l.iter().map(|l| l.n()).sum()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}
fn train(l: &mut dyn Layer, x: &[f64]) -> f64 {
    let a = l.fwd(x);
    let b = l.fwd(&a);
    a.iter().chain(&b).map(|v| v * v).sum()
}
#[differentiable]
fn layers(x: &[f64]) -> f64 {
    let d = |k: usize| Dense {
        w: (0..2)
            .map(|i| (0..2).map(|j| x[(i + 2 * j + k) % x.len()]).collect())
            .collect(),
        b: vec![x[k]; 2],
        calls: 0,
    };
    let mut s = Seq {
        l: vec![
            Box::new(d(0)),
            Box::new(Act(f64::tanh)),
            Box::new(Seq {
                l: vec![Box::new(d(1)), Box::new(Norm { mean: 0.0, k: x[2] })],
                skip: true,
            }),
        ],
        skip: false,
    };
    let t = train(&mut s, &x[..2]);
    let n = s.n();
    let first = s.l[0]
        .as_any()
        .downcast_ref::<Dense>()
        .map_or(0.0, |d| d.b[0] * d.calls as f64);
    t * n as f64 + first + if s.l[1].as_any().is::<Dense>() { 1.0 } else { x[0] }
}
case!(layers_by_dyn, layers, ramp(5));
#[differentiable]
fn sync(x: &[f64]) -> f64 {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed);
    let total = Arc::new(Mutex::new(0.0));
    let par = Arc::new(RwLock::new(x.to_vec()));
    let jobs: Vec<Box<dyn Fn(usize) + '_>> = (0..3)
        .map(|k| {
            let (t, p) = (Arc::clone(&total), Arc::clone(&par));
            Box::new(move |i: usize| {
                let v = p.read().unwrap()[i];
                *t.lock().unwrap() += v * v * (k + 1) as f64;
            }) as Box<dyn Fn(usize)>
        })
        .collect();
    for (i, j) in jobs.iter().enumerate() {
        j(i);
        j(i + 1);
    }
    par.write().unwrap()[0] *= 2.0;
    let v = par.read().unwrap().iter().product::<f64>();
    let t = *total.lock().unwrap();
    t + v + Arc::strong_count(&total) as f64
}
case!(locks_and_arcs, sync, ramp(4));
type Op = (usize, fn(&[f64]) -> f64, fn(&[f64], f64) -> Vec<f64>);
struct Tape {
    v: Vec<f64>,
    ops: Vec<(Vec<usize>, Op)>,
}
impl Tape {
    fn leaf(&mut self, v: f64) -> usize {
        self.v.push(v);
        self.ops.push((vec![], (0, |_| 0.0, |_, _| vec![])));
        self.v.len() - 1
    }
    fn op(&mut self, a: Vec<usize>, o: Op) -> usize {
        let ins: Vec<f64> = a.iter().map(|i| self.v[*i]).collect();
        self.v.push(o.1(&ins));
        self.ops.push((a, o));
        self.v.len() - 1
    }
    fn back(&self, y: usize) -> Vec<f64> {
        let mut g = vec![0.0; self.v.len()];
        g[y] = 1.0;
        for i in (0..self.v.len()).rev() {
            let (a, o) = &self.ops[i];
            if a.is_empty() {
                continue;
            }
            let ins: Vec<f64> = a.iter().map(|i| self.v[*i]).collect();
            for (k, d) in a.iter().zip(o.2(&ins, g[i])) {
                g[*k] += d;
            }
        }
        g
    }
}
const MUL: Op = (2, |v| v[0] * v[1], |v, g| vec![g * v[1], g * v[0]]);
const SIN: Op = (1, |v| v[0].sin(), |v, g| vec![g * v[0].cos()]);
const SUM: Op = (3, |v| v.iter().sum(), |v, g| vec![g; v.len()]);
#[differentiable]
fn tape(x: &[f64]) -> f64 {
    let mut t = Tape { v: vec![], ops: vec![] };
    let l: Vec<usize> = x.iter().map(|v| t.leaf(*v)).collect();
    let a = t.op(vec![l[0], l[1]], MUL);
    let b = t.op(vec![a], SIN);
    let c = t.op(vec![a, b, l[2]], SUM);
    let d = t.op(vec![c, c], MUL);
    let g = t.back(d);
    t.v[d] + g[l[0]] * g[l[0]] + g[l[2]] * x[1]
}
case!(a_tape_by_hand, tape, ramp(3));
#[differentiable]
fn anys(x: &[f64]) -> f64 {
    let v: Vec<Box<dyn Any>> = vec![
        Box::new(x[0] * x[1]),
        Box::new(7i32),
        Box::new(vec![x[2]; 3]),
        Box::new("text"),
    ];
    let mut t = 0.0;
    for a in &v {
        if let Some(f) = a.downcast_ref::<f64>() {
            t += f * f;
        } else if let Some(i) = a.downcast_ref::<i32>() {
            t *= *i as f64;
        } else if let Some(w) = a.downcast_ref::<Vec<f64>>() {
            t += w.iter().sum::<f64>() * x[0];
        } else {
            t += x[1];
        }
    }
    let mut m: BTreeMap<u8, Rc<dyn Any>> = BTreeMap::new();
    m.insert(2, Rc::new(x[1]));
    m.insert(1, Rc::new((x[0], x[2])));
    t + *m[&2].clone().downcast::<f64>().unwrap() * m[&1].downcast_ref::<(f64, f64)>().unwrap().1
}
case!(any_values, anys, ramp(3));
