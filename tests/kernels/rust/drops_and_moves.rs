//! Shape: guards that write when they are dropped, a pool of boxes, lists by hand, moves out of and into structs, labelled breaks.
//! Hard: what is moved away must not be dropped, and what is dropped may have derivatives.
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
use std::cell::RefCell;
use std::mem;
struct Guard<'a> {
    sum: &'a RefCell<f64>,
    v: f64,
}
impl Drop for Guard<'_> {
    fn drop(&mut self) {
        *self.sum.borrow_mut() += self.v * self.v;
    }
}
struct Pool {
    free: Vec<Box<[f64; 4]>>,
    made: usize,
}
impl Pool {
    fn get(&mut self) -> Box<[f64; 4]> {
        self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            Box::new([0.0; 4])
        })
    }
    fn put(&mut self, b: Box<[f64; 4]>) {
        self.free.push(b)
    }
}
#[differentiable]
fn guards(x: &[f64]) -> f64 {
    let sum = RefCell::new(0.0);
    {
        let _g = Guard { sum: &sum, v: x[0] };
        let mut v = vec![
            Guard {
                sum: &sum,
                v: x[1] * x[0],
            },
            Guard { sum: &sum, v: x[2] },
        ];
        let k = v.swap_remove(0);
        if x[0] > 0.3 {
            mem::drop(k);
        } else {
            mem::forget(k);
        }
        v[0].v *= 3.0;
    }
    let mut p = Pool { free: vec![], made: 0 };
    let mut t = *sum.borrow();
    for i in 0..6 {
        let mut b = p.get();
        for (j, e) in b.iter_mut().enumerate() {
            *e = *e * 0.5 + x[(i + j) % x.len()];
        }
        t += b.iter().product::<f64>();
        if i % 2 == 0 {
            p.put(b);
        }
    }
    t * p.made as f64
}
case!(guards_that_write, guards, ramp(4));
struct Node {
    v: f64,
    next: Option<Box<Node>>,
}
struct List {
    head: Option<Box<Node>>,
    n: usize,
}
impl List {
    fn push(&mut self, v: f64) {
        let next = self.head.take();
        self.head = Some(Box::new(Node { v, next }));
        self.n += 1;
    }
    fn pop(&mut self) -> Option<f64> {
        self.head.take().map(|b| {
            self.head = b.next;
            self.n -= 1;
            b.v
        })
    }
    fn reverse(&mut self) {
        let mut p = None;
        let mut c = self.head.take();
        while let Some(mut b) = c {
            c = mem::replace(&mut b.next, p);
            p = Some(b);
        }
        self.head = p;
    }
    fn sort(&mut self) {
        let mut out: Option<Box<Node>> = None;
        while let Some(mut b) = self.head.take() {
            self.head = b.next.take();
            let mut at = &mut out;
            while at.as_ref().is_some_and(|n| n.v < b.v) {
                at = &mut at.as_mut().unwrap().next;
            }
            b.next = at.take();
            *at = Some(b);
        }
        self.head = out;
    }
    fn iter(&self) -> impl Iterator<Item = &f64> {
        let mut c = self.head.as_deref();
        std::iter::from_fn(move || {
            let n = c?;
            c = n.next.as_deref();
            Some(&n.v)
        })
    }
    fn each(&mut self, f: &mut dyn FnMut(&mut f64)) {
        let mut c = self.head.as_mut();
        while let Some(n) = c {
            f(&mut n.v);
            c = n.next.as_mut();
        }
    }
}
#[differentiable]
fn lists(x: &[f64]) -> f64 {
    let mut l = List { head: None, n: 0 };
    for v in x {
        l.push(v.sin() * x[0]);
    }
    l.reverse();
    let a = l.pop().unwrap_or(0.0);
    l.sort();
    let mut t = 1.0;
    l.each(&mut |v| {
        *v += t;
        t *= *v;
    });
    l.iter().enumerate().map(|(i, v)| v * i as f64).sum::<f64>() + a * t + l.n as f64
}
case!(lists_by_hand, lists, ramp(6));
#[derive(Default, Clone)]
struct State {
    w: Vec<f64>,
    m: Option<f64>,
    k: (f64, i32),
    name: String,
}
#[differentiable]
fn moves(x: &[f64]) -> f64 {
    let mut s = State {
        w: x.to_vec(),
        m: Some(x[0]),
        k: (x[1], 3),
        name: "abc".into(),
    };
    let old = mem::take(&mut s);
    s.w = old.w.iter().map(|v| v * old.k.0).collect();
    let State { w, m, k: (kv, ki), .. } = old.clone();
    let mut a = [x[0], x[1], x[2]];
    let mut b = [x[2] * 2.0, 1.0, x[0]];
    mem::swap(&mut a, &mut b);
    let [p, q, r] = a;
    let t = (p, (q, r));
    let (c, (d, _)) = t;
    let sl = &mut s.w[..];
    if let [first, mid @ .., last] = sl {
        mem::swap(first, last);
        mid[0] *= 2.0;
    }
    let mut m2 = m;
    let taken = m2.take().unwrap() + m2.map_or(0.0, |v| v);
    let arr2 = [[x[0]; 2]; 3];
    let mut arr3 = arr2;
    arr3[1][0] = x[1];
    let copied = State {
        w: vec![x[2]],
        ..old.clone()
    };
    s.w.iter().zip(&w).map(|(a, b)| a * b).sum::<f64>()
        + kv.powi(ki)
        + c * d
        + taken
        + arr3.iter().flatten().product::<f64>()
        + b[1] * a[2]
        + copied.k.0 * copied.w[0] * copied.name.len() as f64
}
case!(takes_and_replaces, moves, ramp(5));
fn panics(x: &[f64], i: usize) -> f64 {
    if i > x.len() {
        panic!("out at {i}");
    }
    x[i] * 2.0
}
#[differentiable]
fn labelled(x: &[f64]) -> f64 {
    let mut t = 0.0;
    let mut i = 0;
    'outer: loop {
        let v = 'val: {
            if i >= x.len() {
                break 'outer;
            }
            if x[i] < 0.8 {
                break 'val x[i] * 2.0;
            }
            for j in 0..i {
                if x[j] + x[i] > 2.2 {
                    i += 2;
                    continue 'outer;
                }
                t += x[j] * 0.1;
            }
            x[i].sqrt()
        };
        t = t * 0.9 + v;
        i += 1;
    }
    let z = loop {
        t *= 1.1;
        if t > 5.0 {
            break t - x[1];
        }
    };
    let u = while_sum(x);
    z + u + panics(x, 1)
}
fn while_sum(x: &[f64]) -> f64 {
    let mut s = x;
    let mut t = 0.0;
    while let [a, b, rest @ ..] = s {
        t += a * b;
        s = rest;
    }
    t + s.first().copied().unwrap_or(1.0)
}
case!(labelled_breaks, labelled, ramp(9));
