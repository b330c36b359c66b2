//! Shape: numbers, matrices and units as generic types, models by traits with types and constants of their own.
//! Hard: small structs are passed in registers and memory in turn.
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
use std::marker::PhantomData;
use std::ops::{Add, AddAssign, Deref, DerefMut, Div, Mul, Neg, Sub};
trait Scalar: Copy + Add<Output = Self> + Mul<Output = Self> + Sub<Output = Self> + Default {
    fn from(v: f64) -> Self;
    fn val(self) -> f64;
}
impl Scalar for f64 {
    fn from(v: f64) -> f64 {
        v
    }
    fn val(self) -> f64 {
        self
    }
}
impl Scalar for f32 {
    fn from(v: f64) -> f32 {
        v as f32
    }
    fn val(self) -> f64 {
        self as f64
    }
}
#[derive(Clone, Copy, Default, PartialEq)]
struct Cx<T> {
    re: T,
    im: T,
}
impl<T: Scalar> Add for Cx<T> {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Cx {
            re: self.re + o.re,
            im: self.im + o.im,
        }
    }
}
impl<T: Scalar> Sub for Cx<T> {
    type Output = Self;
    fn sub(self, o: Self) -> Self {
        Cx {
            re: self.re - o.re,
            im: self.im - o.im,
        }
    }
}
impl<T: Scalar> Mul for Cx<T> {
    type Output = Self;
    fn mul(self, o: Self) -> Self {
        Cx {
            re: self.re * o.re - self.im * o.im,
            im: self.re * o.im + self.im * o.re,
        }
    }
}
impl<T: Scalar> Scalar for Cx<T> {
    fn from(v: f64) -> Self {
        Cx {
            re: T::from(v),
            im: T::from(0.0),
        }
    }
    fn val(self) -> f64 {
        self.re.val() * self.re.val() + self.im.val() * self.im.val()
    }
}
#[derive(Clone, Copy)]
struct Mat<T, const R: usize, const C: usize>([[T; C]; R]);
impl<T: Scalar, const R: usize, const C: usize> Default for Mat<T, R, C> {
    fn default() -> Self {
        Mat([[T::default(); C]; R])
    }
}
impl<T: Scalar, const R: usize, const C: usize, const K: usize> Mul<Mat<T, C, K>> for Mat<T, R, C> {
    type Output = Mat<T, R, K>;
    fn mul(self, o: Mat<T, C, K>) -> Mat<T, R, K> {
        let mut m = Mat::default();
        for i in 0..R {
            for j in 0..K {
                for k in 0..C {
                    m.0[i][j] = m.0[i][j] + self.0[i][k] * o.0[k][j];
                }
            }
        }
        m
    }
}
fn horner<T: Scalar>(c: &[f64], z: T) -> T {
    c.iter().rev().fold(T::default(), |a, v| a * z + T::from(*v))
}
fn fft<const N: usize>(x: &mut [Cx<f64>; N]) {
    let mut j = 0;
    for i in 1..N {
        let mut b = N >> 1;
        while j & b != 0 {
            j ^= b;
            b >>= 1;
        }
        j |= b;
        if i < j {
            x.swap(i, j);
        }
    }
    let mut len = 2;
    while len <= N {
        let ang = -2.0 * std::f64::consts::PI / len as f64;
        let wl = Cx {
            re: ang.cos(),
            im: ang.sin(),
        };
        for c in x.chunks_exact_mut(len) {
            let mut w = Cx { re: 1.0, im: 0.0 };
            let (a, b) = c.split_at_mut(len / 2);
            for (p, q) in a.iter_mut().zip(b) {
                let t = *q * w;
                *q = *p - t;
                *p = *p + t;
                w = w * wl;
            }
        }
        len <<= 1;
    }
}
#[differentiable]
fn generics(x: &[f64]) -> f64 {
    let a = horner(&x[..3], x[3])
        + horner(&x[..3], Cx { re: x[0], im: x[1] }).val()
        + horner(
            x,
            Cx {
                re: Cx { re: x[0], im: x[1] },
                im: Cx { re: 0.1, im: x[2] },
            },
        )
        .val();
    let m = Mat([[Cx { re: x[0], im: 1.0 }, Cx { re: x[1], im: x[2] }]]);
    let n = Mat([[Cx { re: x[2], im: x[0] }], [Cx { re: 1.0, im: x[3] }]]);
    let p = m * n;
    let q = n * m;
    let mut v: [Cx<f64>; 8] = std::array::from_fn(|i| Cx {
        re: x[i % x.len()],
        im: x[0] * i as f64,
    });
    fft(&mut v);
    a + p.0[0][0].val() + q.0[1][1].re + v.iter().enumerate().map(|(i, z)| z.val() * i as f64).sum::<f64>()
}
case!(generic_numbers, generics, ramp(5));
#[derive(Clone, Copy)]
struct Meter;
#[derive(Clone, Copy)]
struct Second;
#[derive(Clone, Copy)]
struct Q<U>(f64, PhantomData<U>);
impl<U> Q<U> {
    fn new(v: f64) -> Self {
        Q(v, PhantomData)
    }
}
impl<U> Add for Q<U> {
    type Output = Q<U>;
    fn add(self, o: Self) -> Self {
        Q::new(self.0 + o.0)
    }
}
impl<A, B> Div<Q<B>> for Q<A> {
    type Output = Q<(A, B)>;
    fn div(self, o: Q<B>) -> Q<(A, B)> {
        Q::new(self.0 / o.0)
    }
}
impl<U> Neg for Q<U> {
    type Output = Q<U>;
    fn neg(self) -> Self {
        Q::new(-self.0)
    }
}
impl<U> AddAssign for Q<U> {
    fn add_assign(&mut self, o: Self) {
        self.0 += o.0;
    }
}
struct Wrap(Vec<f64>);
impl Deref for Wrap {
    type Target = Vec<f64>;
    fn deref(&self) -> &Vec<f64> {
        &self.0
    }
}
impl DerefMut for Wrap {
    fn deref_mut(&mut self) -> &mut Vec<f64> {
        &mut self.0
    }
}
trait Model {
    type Param: Default + Clone;
    type Out: Into<f64>;
    const N: usize;
    fn unpack(x: &[f64]) -> Self::Param;
    fn run(&self, p: &Self::Param, v: f64) -> Self::Out;
    fn loss(&self, x: &[f64]) -> f64 {
        let p = Self::unpack(x);
        (0..Self::N).map(|i| self.run(&p, i as f64 * 0.3).into()).sum()
    }
}
struct Exp;
struct Pol {
    deg: usize,
}
struct Out(f64);
impl From<Out> for f64 {
    fn from(o: Out) -> f64 {
        o.0 * o.0
    }
}
impl Model for Exp {
    type Param = (f64, f64);
    type Out = f64;
    const N: usize = 3;
    fn unpack(x: &[f64]) -> (f64, f64) {
        (x[0], x[1])
    }
    fn run(&self, p: &(f64, f64), v: f64) -> f64 {
        p.0 * (p.1 * v).exp()
    }
}
impl Model for Pol {
    type Param = Vec<f64>;
    type Out = Out;
    const N: usize = 4;
    fn unpack(x: &[f64]) -> Vec<f64> {
        x.to_vec()
    }
    fn run(&self, p: &Vec<f64>, v: f64) -> Out {
        Out(p
            .iter()
            .take(self.deg)
            .enumerate()
            .map(|(i, c)| c * v.powi(i as i32))
            .sum())
    }
}
#[differentiable]
fn units(x: &[f64]) -> f64 {
    let d: Q<Meter> = Q::new(x[0]) + Q::new(x[1]);
    let t: Q<Second> = Q::new(x[2]);
    let mut v = d / t;
    v += -Q::new(x[3]);
    let mut w = Wrap(x.to_vec());
    w.push(v.0);
    w[0] *= 2.0;
    w.iter_mut().for_each(|a| *a = a.sin());
    Exp.loss(x) + Pol { deg: 3 }.loss(&w) + w.iter().sum::<f64>()
}
case!(units_and_models, units, ramp(5));
