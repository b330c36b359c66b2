//! Shape: adaptors and makers of iterators, and iterators, indices and collections of the user.
//! Hard: each is lowered to other code at every level, and most of it is integers, pointers and branches.
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
#[differentiable]
fn adaptors(x: &[f64]) -> f64 {
    let scan: f64 = x
        .iter()
        .scan(1.0, |s, v| {
            *s *= v;
            if *s > 5.0 { None } else { Some(*s) }
        })
        .sum();
    let tw: f64 = x.iter().take_while(|v| **v < 1.5).map(|v| v * v).sum();
    let sw = x.iter().skip_while(|v| **v < 1.0).step_by(2).fold(1.0, |a, v| a * v);
    let fm: f64 = x.chunks(2).flat_map(|c| c.iter().map(move |v| v * c[0])).sum();
    let ch: f64 = x
        .iter()
        .chain(x.iter().rev())
        .enumerate()
        .map(|(i, v)| v * i as f64)
        .sum();
    let cy: f64 = x
        .iter()
        .cycle()
        .take(x.len() * 2 + 1)
        .zip(1..)
        .map(|(v, k)| v / k as f64)
        .sum();
    let mut pk = x.iter().peekable();
    let mut runs = 0.0;
    while let Some(v) = pk.next() {
        if let Some(n) = pk.peek() {
            runs += v * **n;
        } else {
            runs -= v;
        }
    }
    let (ev, od): (Vec<(usize, f64)>, Vec<(usize, f64)>) = x.iter().copied().enumerate().partition(|(i, _)| i % 2 == 0);
    let (a, b): (Vec<f64>, Vec<f64>) = x.iter().map(|v| (v * 2.0, v.sin())).unzip();
    let mx = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let best = x.iter().max_by(|a, b| a.partial_cmp(b).unwrap()).unwrap();
    let lo = x.iter().copied().min_by(|a, b| a.total_cmp(b)).unwrap();
    let pos = x.iter().position(|v| *v > 1.0).map_or(0.0, |i| x[i] * 3.0);
    let red = x.iter().copied().reduce(|a, b| a * 0.5 + b).unwrap();
    let tf = x
        .iter()
        .try_fold(0.0, |a: f64, v| if a > 100.0 { Err(a) } else { Ok(a + v) })
        .unwrap_or_else(|e| e);
    let last = x.iter().rev().skip(1).step_by(3).last().unwrap();
    let nth = x.iter().nth(2).unwrap();
    let fu: f64 = x
        .iter()
        .filter_map(|v| if *v > 0.7 { Some(v.ln()) } else { None })
        .sum();
    let mw: f64 = x.iter().map_while(|v| (*v < 2.0).then(|| v.exp())).sum();
    let insp: f64 = {
        let mut t = 0.0;
        x.iter().inspect(|v| t += **v).count();
        t
    };
    let arr: [f64; 3] = std::array::from_fn(|i| x[i] * x[i + 1]);
    let rc: f64 = x.rchunks(4).map(|c| c.iter().sum::<f64>().powi(2)).sum();
    let cmp = if x.iter().zip(&x[1..]).all(|(a, b)| a <= b) {
        x[0]
    } else {
        x[1]
    };
    let eo: f64 = ev
        .iter()
        .zip(od.iter())
        .map(|((i, a), (j, b))| a * b * (i * j) as f64)
        .sum();
    scan + tw
        + sw
        + fm
        + ch
        + cy
        + runs
        + eo
        + a.iter().zip(&b).map(|(p, q)| p * q).sum::<f64>()
        + mx
        + best * lo
        + pos
        + red
        + tf
        + last * nth
        + fu
        + mw
        + insp
        + arr.iter().product::<f64>()
        + rc
        + cmp
}
case!(iterator_adaptors, adaptors, ramp(9));

#[differentiable]
fn makers(x: &[f64]) -> f64 {
    let mut s = x[0];
    let mut k = 0;
    let it = std::iter::from_fn(|| {
        k += 1;
        if k < 6 {
            s = s * x[1] + 1.0;
            Some(s)
        } else {
            None
        }
    });
    let a: f64 = it.sum();
    let b: f64 = std::iter::successors(Some(x[2]), |v| if *v < 10.0 { Some(v * 1.5 + x[0]) } else { None })
        .map(f64::sqrt)
        .sum();
    let c: f64 = std::iter::repeat(x[1]).take(3).chain(std::iter::once(x[2])).product();
    let d: f64 = std::iter::repeat_with(|| x[0] * x[1]).take(2).sum();
    let e: f64 = std::iter::zip(x, x.iter().skip(1)).map(|(a, b)| a - b * b).sum();
    let f: f64 = (0..x.len()).rev().map(|i| x[i]).fold(0.0, |a, v| a * x[0] + v);
    let g: Box<dyn Iterator<Item = f64>> = if x[0] > 0.0 {
        Box::new(x.iter().map(|v| v * v))
    } else {
        Box::new(std::iter::empty())
    };
    let h: Vec<Vec<f64>> = x.chunk_by(|a, b| (a - b).abs() < 0.3).map(|c| c.to_vec()).collect();
    a + b + c + d + e + f + g.sum::<f64>() + h.iter().map(|c| c.iter().product::<f64>()).sum::<f64>()
}
case!(makers_of_iterators, makers, ramp(5));
struct Pairs<'a> {
    x: &'a [f64],
    i: usize,
    j: usize,
}
impl<'a> Iterator for Pairs<'a> {
    type Item = (usize, usize, f64);
    fn next(&mut self) -> Option<Self::Item> {
        if self.j + 1 < self.x.len() {
            self.j += 1;
        } else {
            self.i += 1;
            self.j = self.i + 1;
        }
        if self.j >= self.x.len() {
            return None;
        }
        Some((self.i, self.j, self.x[self.i] * self.x[self.j]))
    }
}
struct Grid {
    w: usize,
    d: Vec<f64>,
}
impl<'a> IntoIterator for &'a Grid {
    type Item = &'a [f64];
    type IntoIter = std::slice::Chunks<'a, f64>;
    fn into_iter(self) -> Self::IntoIter {
        self.d.chunks(self.w)
    }
}
impl std::ops::Index<(usize, usize)> for Grid {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.d[i * self.w + j]
    }
}
impl std::ops::IndexMut<(usize, usize)> for Grid {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.d[i * self.w + j]
    }
}
impl FromIterator<f64> for Grid {
    fn from_iter<I: IntoIterator<Item = f64>>(i: I) -> Self {
        let d: Vec<f64> = i.into_iter().collect();
        Grid {
            w: (d.len() as f64).sqrt() as usize,
            d,
        }
    }
}
impl Extend<f64> for Grid {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, i: I) {
        for v in i {
            self.d.push(v)
        }
    }
}
struct Lin {
    a: f64,
    h: f64,
    n: usize,
}
impl Iterator for Lin {
    type Item = f64;
    fn next(&mut self) -> Option<f64> {
        if self.n == 0 {
            return None;
        }
        self.n -= 1;
        let v = self.a;
        self.a += self.h;
        Some(v)
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.n, Some(self.n))
    }
}
impl ExactSizeIterator for Lin {}
impl DoubleEndedIterator for Lin {
    fn next_back(&mut self) -> Option<f64> {
        if self.n == 0 {
            return None;
        }
        self.n -= 1;
        Some(self.a + self.h * self.n as f64)
    }
}

#[differentiable]
fn own(x: &[f64]) -> f64 {
    let p: f64 = Pairs { x, i: 0, j: 0 }
        .filter(|(i, j, _)| (i + j) % 2 == 1)
        .map(|(i, j, v)| v.sin() * (i + j) as f64)
        .sum();
    let mut g: Grid = x.iter().map(|v| v * v).collect();
    g.extend(x.iter().take(3).copied());
    g[(0, 1)] *= x[2];
    let t = g[(1, 1)] + g[(0, 1)];
    let mut s = 0.0;
    for row in &g {
        s = s * 0.3 + row.iter().product::<f64>();
    }
    let l = Lin { a: x[0], h: x[1], n: 6 };
    let q: f64 = l.rev().zip(Lin { a: x[2], h: 0.1, n: 9 }).map(|(a, b)| a * b).sum();
    let (a, b): (Vec<f64>, f64) = {
        let v: Vec<f64> = Lin { a: 1.0, h: x[0], n: 4 }.collect();
        let m = v.iter().sum::<f64>() / v.len() as f64;
        (v, m)
    };
    p + t + s + q + a.iter().map(|v| (v - b).powi(2)).sum::<f64>()
}
case!(iterators_of_the_user, own, ramp(9));
