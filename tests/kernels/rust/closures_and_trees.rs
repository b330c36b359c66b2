//! Shape: closures in structs, vectors and maps, machines of function pointers, trees whose nodes know their parents.
//! Hard: a call by pointer leads to many places, and cells are shared and counted.
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
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
struct Layer<F: Fn(f64) -> f64> {
    w: f64,
    b: f64,
    act: F,
}
impl<F: Fn(f64) -> f64> Layer<F> {
    fn run(&self, v: f64) -> f64 {
        (self.act)(self.w * v + self.b)
    }
}
struct Net<'a> {
    layers: Vec<Box<dyn Fn(f64) -> f64 + 'a>>,
    hook: Option<fn(f64) -> f64>,
    named: HashMap<String, Rc<dyn Fn(f64) -> f64 + 'a>>,
}
fn compose<A, B, C>(f: impl Fn(A) -> B, g: impl Fn(B) -> C) -> impl Fn(A) -> C {
    move |x| g(f(x))
}
fn soft(v: f64) -> f64 {
    v / (1.0 + v.abs())
}
fn adder(k: f64) -> impl FnMut(f64) -> f64 {
    let mut t = k;
    move |v| {
        t += v;
        t
    }
}
fn once(f: Box<dyn FnOnce(Vec<f64>) -> f64 + '_>, v: Vec<f64>) -> f64 {
    f(v)
}
struct Machine {
    state: f64,
    next: fn(&mut Machine, f64) -> Option<f64>,
}
fn s0(m: &mut Machine, v: f64) -> Option<f64> {
    m.state += v;
    if m.state > 1.0 {
        m.next = s1;
    }
    Some(m.state)
}
fn s1(m: &mut Machine, v: f64) -> Option<f64> {
    m.state *= v;
    if m.state > 4.0 {
        None
    } else {
        m.next = s0;
        Some(m.state * 2.0)
    }
}

#[differentiable]
fn closures(x: &[f64]) -> f64 {
    let l = Layer {
        w: x[0],
        b: x[1],
        act: |v: f64| v.tanh() * x[2],
    };
    let l2 = Layer {
        w: x[1],
        b: l.run(x[0]),
        act: soft,
    };
    let mut net = Net {
        layers: vec![],
        hook: Some(f64::sin),
        named: HashMap::new(),
    };
    for i in 0..3 {
        let w = x[i];
        net.layers.push(Box::new(move |v| v * w + x[i + 1]));
    }
    net.layers
        .push(Box::new(compose(|v: f64| (v, v * 2.0), |(a, b)| a * b)));
    net.named.insert("one".into(), Rc::new(|v| v + x[0]));
    let shared = net.named["one"].clone();
    net.named.insert("two".into(), Rc::new(move |v| shared(v) * shared(v)));
    let mut v = l2.run(x[3]);
    for f in &net.layers {
        v = f(v);
        if let Some(h) = net.hook {
            v = h(v) + v;
        }
    }
    v += (net.named["two"])(v);
    let mut a = adder(x[0]);
    for w in x {
        v += a(*w);
    }
    v += once(Box::new(|q| q.iter().product::<f64>() * x[0]), x.to_vec());
    let mut m = Machine { state: 0.0, next: s0 };
    for w in x.iter().cycle().take(12) {
        let n = m.next;
        match n(&mut m, *w) {
            Some(s) => v += s,
            None => break,
        }
    }
    fn fix(f: &dyn Fn(&dyn Fn(u32) -> f64, u32) -> f64, n: u32) -> f64 {
        f(&|k| fix(f, k), n)
    }
    v + fix(
        &|rec, n| {
            if n == 0 {
                x[1]
            } else {
                rec(n - 1) * 0.5 + x[n as usize % 3]
            }
        },
        5,
    )
}
case!(closures_in_structs, closures, ramp(5));

struct Tree {
    v: f64,
    kids: RefCell<Vec<Rc<Tree>>>,
    up: RefCell<Weak<Tree>>,
    seen: Cell<u32>,
}
impl Drop for Tree {
    fn drop(&mut self) {
        self.seen.set(self.seen.get() + 1);
    }
}
fn node(v: f64) -> Rc<Tree> {
    Rc::new(Tree {
        v,
        kids: RefCell::new(vec![]),
        up: RefCell::new(Weak::new()),
        seen: Cell::new(0),
    })
}
fn total(t: &Tree) -> f64 {
    t.seen.set(t.seen.get() + 1);
    let up = t.up.borrow().upgrade().map_or(1.0, |p| p.v);
    t.v * up + t.kids.borrow().iter().map(|k| total(k) * 0.7).sum::<f64>()
}
#[differentiable]
fn trees(x: &[f64]) -> f64 {
    let root = node(x[0]);
    for (i, v) in x.iter().enumerate().skip(1) {
        let k = node(v * v);
        *k.up.borrow_mut() = Rc::downgrade(&root);
        if i % 2 == 0 {
            let last = root.kids.borrow().last().cloned();
            if let Some(l) = last {
                l.kids.borrow_mut().push(k);
                continue;
            }
        }
        root.kids.borrow_mut().push(k);
    }
    let cache: OnceCell<f64> = OnceCell::new();
    let c = *cache.get_or_init(|| x[1] * 3.0);
    let s = Rc::new(RefCell::new(vec![x[0]; 2]));
    let s2 = Rc::clone(&s);
    s2.borrow_mut()[1] = x[2];
    s.borrow_mut().push(x[1]);
    drop(s2);
    let inner = Rc::try_unwrap(s).unwrap().into_inner();
    total(&root) * root.seen.get() as f64 + c * inner.iter().product::<f64>()
}
case!(trees_with_parents, trees, ramp(6));
