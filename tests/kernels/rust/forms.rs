//! Shape: twenty forms of Rust, each checked against central differences, in both modes: windows and chunks, nested vectors,
//! queues, heaps and ordered maps, sorting, closures in boxes, cells, memories of recursion, text, operators on structs, a
//! parsed expression, hashes, arrays by value, methods of Vec, shared trait objects, a quadrature.
//! Hard: a trait object's method gives a pointer beside those that give floats, and unwinds.
use cotangent::differentiable;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::rc::Rc;

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

#[differentiable]
fn windows_chunks_zip(x: &[f64]) -> f64 {
    let a: f64 = x.windows(3).map(|w| w[0] * w[1] - w[2].sin()).sum();
    let b: f64 = x.chunks(4).map(|c| c.iter().product::<f64>()).sum();
    let c: f64 = x
        .chunks_exact(2)
        .zip(x.iter().rev())
        .map(|(c, r)| c[0] * r + c[1])
        .fold(0.0, |a, b| a * 0.5 + b);
    a + b * c
}
case!(windows_chunks_and_zips, windows_chunks_zip, ramp(9));

#[differentiable]
fn matrix(x: &[f64]) -> f64 {
    let n = 3;
    let mut m = vec![vec![0.0; n]; n];
    for (i, row) in m.iter_mut().enumerate() {
        for (j, e) in row.iter_mut().enumerate() {
            *e = x[i * n + j];
        }
    }
    let mut p = m.clone();
    for _ in 0..2 {
        let mut q = vec![vec![0.0; n]; n];
        for i in 0..n {
            for j in 0..n {
                for k in 0..n {
                    q[i][j] += p[i][k] * m[k][j];
                }
            }
        }
        std::mem::swap(&mut p, &mut q);
    }
    p.iter().flatten().sum::<f64>() + (0..n).map(|i| p[i][i]).sum::<f64>().sqrt()
}
case!(nested_matrices, matrix, ramp(9));

#[differentiable]
fn deque(x: &[f64]) -> f64 {
    let mut q: VecDeque<f64> = x.iter().copied().collect();
    let mut total = 0.0;
    let mut turn = 0;
    while let Some(a) = q.pop_front() {
        total = total * 0.9 + a * a;
        if turn < 12 && a > 0.5 {
            q.push_back(a * 0.5);
            q.push_front(a.sin() * 0.3);
        }
        turn += 1;
    }
    total
}
case!(a_deque, deque, ramp(6));

#[differentiable]
fn ordered_map(x: &[f64]) -> f64 {
    let mut m: BTreeMap<i32, Vec<f64>> = BTreeMap::new();
    for (i, v) in x.iter().enumerate() {
        m.entry((i * 7 % 5) as i32).or_default().push(v * v);
    }
    m.range(1..)
        .map(|(k, v)| *k as f64 * v.iter().sum::<f64>())
        .sum::<f64>()
        + m[&0].iter().product::<f64>()
}
case!(an_ordered_map, ordered_map, ramp(11));

#[derive(PartialEq, PartialOrd, Clone, Copy)]
struct Total(f64);
impl Eq for Total {}
impl Ord for Total {
    fn cmp(&self, o: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&o.0)
    }
}

#[differentiable]
fn heap(x: &[f64]) -> f64 {
    let mut h: BinaryHeap<Total> = x.iter().map(|v| Total(*v)).collect();
    let mut total = 0.0;
    let mut w = 1.0;
    while let Some(Total(v)) = h.pop() {
        total += w * v;
        w *= 0.5;
        if v > 1.5 {
            h.push(Total(v * 0.4));
        }
    }
    total
}
case!(a_heap, heap, ramp(7));

#[differentiable]
fn sorted(x: &[f64]) -> f64 {
    let mut v = x.to_vec();
    v.sort_by(|a, b| b.partial_cmp(a).unwrap());
    let mut i: Vec<usize> = (0..x.len()).collect();
    i.sort_unstable_by_key(|k| (x[*k] * 4.0) as i64 % 3);
    v.iter()
        .zip(&i)
        .enumerate()
        .map(|(k, (a, j))| a * x[*j] / (k + 1) as f64)
        .sum()
}
case!(sorted_values_and_indices, sorted, ramp(10));

#[differentiable]
fn boxed_closures(x: &[f64]) -> f64 {
    let k = x[0];
    let mut fs: Vec<Box<dyn Fn(f64) -> f64 + '_>> = vec![Box::new(move |v| v * k), Box::new(|v| v.sin() + x[1])];
    for i in 2..x.len() {
        let w = x[i] * 0.5;
        fs.push(if i % 2 == 0 {
            Box::new(move |v| v * w + 1.0)
        } else {
            Box::new(move |v| (v - w).tanh())
        });
    }
    fs.iter().fold(x[x.len() - 1], |a, f| f(a))
}
case!(boxed_closures_that_capture, boxed_closures, ramp(6));

struct Memo {
    cache: RefCell<Vec<Option<f64>>>,
    calls: Cell<u32>,
}
impl Memo {
    fn at(&self, n: usize, x: &[f64]) -> f64 {
        self.calls.set(self.calls.get() + 1);
        if let Some(v) = self.cache.borrow()[n] {
            return v;
        }
        let v = if n < 2 {
            x[n]
        } else {
            self.at(n - 1, x) * x[n % x.len()] + self.at(n - 2, x)
        };
        self.cache.borrow_mut()[n] = Some(v);
        v
    }
}

#[differentiable]
fn memo(x: &[f64]) -> f64 {
    let m = Memo {
        cache: RefCell::new(vec![None; 12]),
        calls: Cell::new(0),
    };
    m.at(11, x) / m.calls.get() as f64
}
case!(recursion_with_memory, memo, ramp(4));

#[differentiable]
fn shared(x: &[f64]) -> f64 {
    let total = Rc::new(RefCell::new(0.0));
    let adders: Vec<_> = x
        .iter()
        .map(|v| {
            let t = Rc::clone(&total);
            let v = *v;
            move |w: f64| *t.borrow_mut() += v * w
        })
        .collect();
    for (i, a) in adders.iter().enumerate() {
        a((i as f64).cos());
        a(x[i] * 0.1);
    }
    let t = *total.borrow();
    t * t
}
case!(shared_cells, shared, ramp(5));

#[differentiable]
fn text(x: &[f64]) -> f64 {
    let mut total = 0.0;
    for (i, word) in "add mul sin add neg".split(' ').enumerate() {
        let v = x[i % x.len()];
        match word {
            "add" => total += v,
            "mul" => total *= v,
            "sin" => total = f64::sin(total) * v,
            other => total -= v * other.len() as f64,
        }
    }
    total
}
case!(text_chooses, text, ramp(4));

#[derive(Clone, Copy, Default)]
struct V3 {
    x: f64,
    y: f64,
    z: f64,
}
impl std::ops::Add for V3 {
    type Output = V3;
    fn add(self, o: V3) -> V3 {
        V3 {
            x: self.x + o.x,
            y: self.y + o.y,
            z: self.z + o.z,
        }
    }
}
impl std::ops::Mul<f64> for V3 {
    type Output = V3;
    fn mul(self, k: f64) -> V3 {
        V3 {
            x: self.x * k,
            y: self.y * k,
            z: self.z * k,
        }
    }
}
impl std::iter::Sum for V3 {
    fn sum<I: Iterator<Item = V3>>(i: I) -> V3 {
        i.fold(V3::default(), |a, b| a + b)
    }
}
impl V3 {
    fn dot(self, o: V3) -> f64 {
        self.x * o.x + self.y * o.y + self.z * o.z
    }
    fn cross(self, o: V3) -> V3 {
        V3 {
            x: self.y * o.z - self.z * o.y,
            y: self.z * o.x - self.x * o.z,
            z: self.x * o.y - self.y * o.x,
        }
    }
}

#[differentiable]
fn vectors(x: &[f64]) -> f64 {
    let v: Vec<V3> = x
        .chunks_exact(3)
        .map(|c| V3 {
            x: c[0],
            y: c[1],
            z: c[2],
        })
        .collect();
    let c: V3 = v.iter().copied().sum();
    let mut t = 0.0;
    for (i, a) in v.iter().enumerate() {
        for b in &v[i + 1..] {
            t += a.cross(*b).dot(c * 0.5) + (a.dot(*b)).abs().sqrt();
        }
    }
    t
}
case!(operators_on_structs, vectors, ramp(9));

enum Expr {
    Leaf(usize),
    Const(f64),
    Bin(char, Box<Expr>, Box<Expr>),
}
impl Expr {
    fn eval(&self, x: &[f64]) -> f64 {
        match self {
            Expr::Leaf(i) => x[*i],
            Expr::Const(c) => *c,
            Expr::Bin('+', a, b) => a.eval(x) + b.eval(x),
            Expr::Bin('*', a, b) => a.eval(x) * b.eval(x),
            Expr::Bin('^', a, b) => a.eval(x).powf(b.eval(x)),
            Expr::Bin(op, ..) => panic!("no operator {op}"),
        }
    }
    fn parse(s: &mut std::iter::Peekable<std::str::Chars>) -> Expr {
        match s.next().expect("more") {
            op @ ('+' | '*' | '^') => {
                let a = Expr::parse(s);
                let b = Expr::parse(s);
                Expr::Bin(op, Box::new(a), Box::new(b))
            }
            d if d.is_ascii_digit() => Expr::Const(d.to_digit(10).unwrap() as f64),
            l => Expr::Leaf(l as usize - 'a' as usize),
        }
    }
}

#[differentiable]
fn parsed(x: &[f64]) -> f64 {
    Expr::parse(&mut "+*ab^+c2*ab".chars().peekable()).eval(x)
}
case!(a_parsed_expression, parsed, ramp(3));

#[differentiable]
fn fused(x: &[f64]) -> f64 {
    x.iter().map(|v| v.mul_add(2.0, 1.0).ln()).sum()
}
case!(fused_multiplications, fused, ramp(5));

#[differentiable]
fn hashing(x: &[f64]) -> f64 {
    let mut state: u64 = 0x9E37_79B9;
    let mut t = 0.0;
    for (i, v) in x.iter().enumerate() {
        state ^= (i as u64).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = state.rotate_left(13).wrapping_add(i as u64);
        let r = (state >> 11) as f64 / (1u64 << 53) as f64;
        t += v * r + if state & 1 == 0 { v * v } else { v.recip() };
    }
    t
}
case!(hashes_beside_floats, hashing, ramp(9));

#[differentiable]
fn generic_const(x: &[f64]) -> f64 {
    fn norm<const N: usize>(a: [f64; N]) -> f64 {
        a.iter().map(|v| v * v).sum::<f64>().sqrt()
    }
    let a: [f64; 4] = x[..4].try_into().unwrap();
    let b: [[f64; 2]; 3] = std::array::from_fn(|i| [x[i], x[i + 1] * x[i]]);
    norm(a) * b.iter().map(|r| norm(*r)).sum::<f64>()
}
case!(arrays_by_value, generic_const, ramp(5));

#[differentiable]
fn retained(x: &[f64]) -> f64 {
    let mut v: Vec<f64> = x.to_vec();
    v.retain(|a| *a > 0.8);
    v.insert(1, x[0] * x[1]);
    v.extend_from_slice(&x[1..3]);
    v.dedup();
    let last = v.pop().unwrap();
    let removed = v.remove(0);
    v.truncate(5);
    v.rotate_left(1);
    v.reverse();
    let (a, b) = v.split_at(2);
    a.iter().zip(b).map(|(p, q)| p * q).sum::<f64>() + last * removed + v.drain(..2).sum::<f64>() + v.swap_remove(0)
}
case!(methods_of_vectors, retained, ramp(8));

trait Shape {
    fn area(&self) -> f64;
    fn name(&self) -> &'static str {
        "shape"
    }
}
struct Disc(f64);
struct Rect {
    a: f64,
    b: f64,
}
impl Shape for Disc {
    fn area(&self) -> f64 {
        std::f64::consts::PI * self.0 * self.0
    }
}
impl Shape for Rect {
    fn area(&self) -> f64 {
        self.a * self.b
    }
    fn name(&self) -> &'static str {
        "rect"
    }
}

#[differentiable]
fn shapes(x: &[f64]) -> f64 {
    let mut all: Vec<Rc<dyn Shape>> = Vec::new();
    for (i, w) in x.windows(2).enumerate() {
        all.push(if i % 2 == 0 {
            Rc::new(Disc(w[0]))
        } else {
            Rc::new(Rect { a: w[0], b: w[1] })
        });
    }
    let first = all[0].clone();
    all.push(first);
    all.iter().map(|s| s.area() * s.name().len() as f64).sum()
}
case!(shared_trait_objects, shapes, ramp(6));

#[differentiable]
fn bits_of_floats(x: &[f64]) -> f64 {
    let mut t = 0.0;
    for v in x {
        let sign = v.signum();
        let big = v.max(0.9).min(1.4).clamp(0.0, 2.0);
        t += sign * v.abs().cbrt()
            + big
            + v.rem_euclid(0.7)
            + v.fract() * v.floor()
            + v.copysign(-1.0)
            + f64::from_bits(v.to_bits());
    }
    t
}
case!(functions_of_floats, bits_of_floats, ramp(5));

#[differentiable]
fn integrate(x: &[f64]) -> f64 {
    fn simpson(f: &dyn Fn(f64) -> f64, a: f64, b: f64, depth: u32) -> f64 {
        let m = 0.5 * (a + b);
        let whole = (b - a) / 6.0 * (f(a) + 4.0 * f(m) + f(b));
        if depth == 0 {
            return whole;
        }
        simpson(f, a, m, depth - 1) + simpson(f, m, b, depth - 1)
    }
    let f = |t: f64| (x[0] * t).sin() * (-x[1] * t).exp() + x[2] * t;
    simpson(&f, 0.0, x[3], 4)
}
case!(a_quadrature, integrate, ramp(4));

#[differentiable]
fn until(x: &[f64]) -> f64 {
    let mut y = x[0];
    let n = loop {
        let next = 0.5 * (y + x[1] / y);
        if (next - y).abs() < 1e-13 {
            break next;
        }
        y = next;
    };
    let mut k = 0;
    let mut acc = 1.0;
    while acc < 50.0 && k < 100 {
        acc += n * acc * 0.3;
        k += 1;
        if k % 7 == 6 {
            continue;
        }
        acc *= 1.0 + x[2] * 0.01;
    }
    acc
}
case!(loops_until, until, ramp(3));
