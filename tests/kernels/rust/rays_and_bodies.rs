//! Shape: ray marching, bodies in a field, Monte Carlo with a generator of its own.
//! Hard: paths end where they hit, and random numbers are made of bits.
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
use std::ops::{Add, Mul, Sub};
#[derive(Clone, Copy, Debug, PartialEq)]
struct V(f64, f64, f64);
impl Add for V {
    type Output = V;
    fn add(self, o: V) -> V {
        V(self.0 + o.0, self.1 + o.1, self.2 + o.2)
    }
}
impl Sub for V {
    type Output = V;
    fn sub(self, o: V) -> V {
        V(self.0 - o.0, self.1 - o.1, self.2 - o.2)
    }
}
impl Mul<V> for f64 {
    type Output = V;
    fn mul(self, o: V) -> V {
        V(self * o.0, self * o.1, self * o.2)
    }
}
impl V {
    fn dot(self, o: V) -> f64 {
        self.0 * o.0 + self.1 * o.1 + self.2 * o.2
    }
    fn len(self) -> f64 {
        self.dot(self).sqrt()
    }
    fn unit(self) -> V {
        1.0 / self.len() * self
    }
}
trait Sdf {
    fn dist(&self, p: V) -> f64;
    fn normal(&self, p: V) -> V {
        let e = 1e-3;
        let d = |a: V| self.dist(p + e * a) - self.dist(p - e * a);
        V(d(V(1., 0., 0.)), d(V(0., 1., 0.)), d(V(0., 0., 1.))).unit()
    }
}
struct Ball {
    c: V,
    r: f64,
}
struct Plane(f64);
struct Union(Vec<Box<dyn Sdf>>);
struct Round<T: Sdf>(T, f64);
impl Sdf for Ball {
    fn dist(&self, p: V) -> f64 {
        (p - self.c).len() - self.r
    }
}
impl Sdf for Plane {
    fn dist(&self, p: V) -> f64 {
        p.1 + self.0
    }
}
impl Sdf for Union {
    fn dist(&self, p: V) -> f64 {
        self.0.iter().map(|s| s.dist(p)).fold(f64::INFINITY, f64::min)
    }
}
impl<T: Sdf> Sdf for Round<T> {
    fn dist(&self, p: V) -> f64 {
        self.0.dist(p) - self.1
    }
}
fn march(s: &dyn Sdf, o: V, d: V) -> Option<(V, u32)> {
    let mut t = 0.0;
    for i in 0..60 {
        let p = o + t * d;
        let r = s.dist(p);
        if r < 1e-5 {
            return Some((p, i));
        }
        t += r;
        if t > 20.0 {
            break;
        }
    }
    None
}
#[differentiable]
fn render(x: &[f64]) -> f64 {
    let s = Union(vec![
        Box::new(Ball {
            c: V(x[0], 0.2, 4.0),
            r: x[1],
        }),
        Box::new(Plane(1.0)),
        Box::new(Round(
            Ball {
                c: V(-0.8, x[2], 3.0),
                r: 0.3,
            },
            0.1,
        )),
    ]);
    let sun = V(0.3, 1.0, -0.5).unit();
    let mut img = vec![];
    for y in -2..=2 {
        for z in -2..=2 {
            let d = V(z as f64 * 0.21, y as f64 * 0.17, 1.0).unit();
            img.push(match march(&s, V(0., 0.1, 0.), d) {
                Some((p, _)) => s.normal(p).dot(sun).max(0.0) + 0.1 * p.2,
                None => d.1 * x[0],
            });
        }
    }
    img.iter().sum()
}
case!(ray_marching, render, vec![0.43, 0.71, 0.32]);
#[derive(Clone)]
struct Body {
    r: V,
    v: V,
    m: f64,
    name: String,
}
struct World {
    bodies: Vec<Body>,
    field: Box<dyn Fn(V) -> V>,
    t: f32,
}
impl World {
    fn acc(&self, i: usize) -> V {
        let b = &self.bodies[i];
        self.bodies
            .iter()
            .enumerate()
            .filter(|(j, _)| *j != i)
            .fold((self.field)(b.r), |a, (_, o)| {
                let d = o.r - b.r;
                a + o.m / (d.dot(d) + 0.1).powf(1.5) * d
            })
    }
    fn step(&mut self, h: f64) {
        let a: Vec<V> = (0..self.bodies.len()).map(|i| self.acc(i)).collect();
        for (b, a) in self.bodies.iter_mut().zip(a) {
            b.v = b.v + h * a;
            b.r = b.r + h * b.v;
        }
        self.t += h as f32;
    }
    fn energy(&self) -> f64 {
        let mut e = 0.0;
        for (i, b) in self.bodies.iter().enumerate() {
            e += 0.5 * b.m * b.v.dot(b.v);
            for o in &self.bodies[i + 1..] {
                e -= b.m * o.m / (b.r - o.r).len();
            }
            e += b.name.len() as f64 * b.r.0;
        }
        e
    }
}
#[differentiable]
fn nbody(x: &[f64]) -> f64 {
    let k = x[0];
    let mut w = World {
        bodies: (0..4)
            .map(|i| Body {
                r: V(i as f64, x[i], 0.2 * i as f64),
                v: V(0.0, 0.1, x[i] * 0.1),
                m: 1.0 + x[i] * 0.2,
                name: format!("b{}", i * 40),
            })
            .collect(),
        field: Box::new(move |p| -k * p),
        t: 0.0,
    };
    let mut trail = vec![w.bodies[0].clone()];
    for _ in 0..6 {
        w.step(0.05);
        trail.push(w.bodies[1].clone());
    }
    w.energy() + trail.iter().map(|b| b.r.dot(b.v)).sum::<f64>() * w.t as f64
}
case!(bodies_in_a_field, nbody, ramp(4));
struct Rng(u64, Option<f64>);
impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn uniform(&mut self) -> f64 {
        f64::from_bits(0x3ff0_0000_0000_0000 | self.next() >> 12) - 1.0
    }
    fn normal(&mut self) -> f64 {
        if let Some(z) = self.1.take() {
            return z;
        }
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        let m = (-2.0 * u.ln()).sqrt();
        self.1 = Some(m * (6.28318530718 * v).sin());
        m * (6.28318530718 * v).cos()
    }
    fn shuffle<T>(&mut self, v: &mut [T]) {
        for i in (1..v.len()).rev() {
            let j = (self.next() % (i as u64 + 1)) as usize;
            v.swap(i, j);
        }
    }
    fn f32(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u32 << 24) as f32
    }
}
#[differentiable]
fn mc(x: &[f64]) -> f64 {
    let mut g = Rng(88172645463325252, None);
    let mut v = x.to_vec();
    g.shuffle(&mut v);
    let mut s = 0.0;
    for _ in 0..30 {
        let mut p = 1.0 + v[0];
        let mut knocked = false;
        for _ in 0..6 {
            p *= ((v[1] - 0.5 * v[2] * v[2]) * 0.1 + v[2] * 0.3 * g.normal()).exp();
            if p < 0.3 {
                knocked = true;
                break;
            }
        }
        if !knocked {
            s += (p - 0.8).max(0.0) + g.f32() as f64 * v[0];
        }
    }
    let mut st = x[0];
    for _ in 0..20 {
        let c = st + 0.3 * g.normal();
        if g.uniform() < (-(c * c - st * st) * x[1]).exp() {
            st = c;
        }
        s += st;
    }
    s
}
case!(monte_carlo, mc, ramp(3));
