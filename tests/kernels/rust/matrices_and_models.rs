//! Shape: Cholesky, QR, conjugate gradients, tridiagonal systems, Runge-Kutta, hidden Markov models, attention, dynamic programming.
//! Hard: loops end by what they compute, and memory is taken and given back in each of their turns.
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
type M = Vec<Vec<f64>>;
fn cholesky(a: &M) -> Option<M> {
    let n = a.len();
    let mut l = vec![vec![0.0; n]; n];
    for i in 0..n {
        for j in 0..=i {
            let s: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
            if i == j {
                let d = a[i][i] - s;
                if d <= 0.0 {
                    return None;
                }
                l[i][i] = d.sqrt();
            } else {
                l[i][j] = (a[i][j] - s) / l[j][j];
            }
        }
    }
    Some(l)
}
fn solve(l: &M, mut b: Vec<f64>) -> Vec<f64> {
    let n = b.len();
    for i in 0..n {
        let s: f64 = l[i][..i].iter().zip(&b).map(|(a, b)| a * b).sum();
        b[i] = (b[i] - s) / l[i][i];
    }
    for i in (0..n).rev() {
        let mut s = b[i];
        for k in i + 1..n {
            s -= l[k][i] * b[k];
        }
        b[i] = s / l[i][i];
    }
    b
}
#[differentiable]
fn gp(x: &[f64]) -> f64 {
    let n = 5;
    let t: Vec<f64> = (0..n).map(|i| i as f64 * 0.4).collect();
    let y: Vec<f64> = t.iter().map(|t| (t * x[2]).sin()).collect();
    let k: M = t
        .iter()
        .map(|a| {
            t.iter()
                .map(|b| x[0] * x[0] * (-(a - b).powi(2) / (2.0 * x[1] * x[1])).exp() + if a == b { 0.1 } else { 0.0 })
                .collect()
        })
        .collect();
    let Some(l) = cholesky(&k) else { panic!("not positive") };
    let al = solve(&l, y.clone());
    0.5 * y.iter().zip(&al).map(|(a, b)| a * b).sum::<f64>() + (0..n).map(|i| l[i][i].ln()).sum::<f64>()
}
case!(gaussian_process, gp, ramp(3));
fn qr(mut a: M) -> (M, M) {
    let (m, n) = (a.len(), a[0].len());
    let mut q: M = (0..m)
        .map(|i| (0..m).map(|j| (i == j) as u8 as f64).collect())
        .collect();
    for k in 0..n.min(m - 1) {
        let norm = (k..m).map(|i| a[i][k].powi(2)).sum::<f64>().sqrt();
        let alpha = -norm.copysign(a[k][k]);
        let mut v: Vec<f64> = (0..m).map(|i| if i < k { 0.0 } else { a[i][k] }).collect();
        v[k] -= alpha;
        let vv: f64 = v.iter().map(|x| x * x).sum();
        for j in 0..n {
            let d = 2.0 * (0..m).map(|i| v[i] * a[i][j]).sum::<f64>() / vv;
            for i in 0..m {
                a[i][j] -= d * v[i];
            }
        }
        for row in q.iter_mut() {
            let d = 2.0 * row.iter().zip(&v).map(|(p, q)| p * q).sum::<f64>() / vv;
            for (r, v) in row.iter_mut().zip(&v) {
                *r -= d * v;
            }
        }
    }
    (q, a)
}
#[differentiable]
fn eig(x: &[f64]) -> f64 {
    let n = 3;
    let mut a: M = (0..n)
        .map(|i| {
            (0..n)
                .map(|j| x[i + j] + if i == j { 2.0 * i as f64 } else { 0.0 })
                .collect()
        })
        .collect();
    for _ in 0..8 {
        let (q, r) = qr(a);
        a = (0..n)
            .map(|i| (0..n).map(|j| (0..n).map(|k| r[i][k] * q[k][j]).sum()).collect())
            .collect();
    }
    a[0][0] * a[1][1] - a[2][2]
}
case!(eigenvalues_by_qr, eig, ramp(5));
struct Csr {
    n: usize,
    row: Vec<usize>,
    col: Vec<u32>,
    val: Vec<f64>,
}
impl Csr {
    fn from_triplets(n: usize, mut t: Vec<(usize, usize, f64)>) -> Self {
        t.sort_by_key(|e| (e.0, e.1));
        let mut c = Csr {
            n,
            row: vec![0; n + 1],
            col: vec![],
            val: vec![],
        };
        for w in &t {
            if c.row[w.0 + 1] > 0 && c.col.last() == Some(&(w.1 as u32)) {
                *c.val.last_mut().unwrap() += w.2;
            } else {
                c.col.push(w.1 as u32);
                c.val.push(w.2);
            }
            c.row[w.0 + 1] = c.col.len();
        }
        for i in 0..n {
            c.row[i + 1] = c.row[i + 1].max(c.row[i]);
        }
        c
    }
    fn mul(&self, x: &[f64]) -> Vec<f64> {
        (0..self.n)
            .map(|i| {
                let r = self.row[i]..self.row[i + 1];
                self.col[r.clone()]
                    .iter()
                    .zip(&self.val[r])
                    .map(|(c, v)| v * x[*c as usize])
                    .sum()
            })
            .collect()
    }
}
#[differentiable]
fn cg(x: &[f64]) -> f64 {
    let n = x.len();
    let mut t = vec![];
    for i in 0..n {
        t.push((i, i, 2.0 + x[i]));
        t.push((i, i, 0.5));
        if i + 1 < n {
            t.push((i, i + 1, -x[i] * 0.5));
            t.push((i + 1, i, -x[i] * 0.5));
        }
    }
    let a = Csr::from_triplets(n, t);
    let b: Vec<f64> = x.iter().map(|v| v.cos()).collect();
    let (mut s, mut r, mut p) = (vec![0.0; n], b.clone(), b);
    let mut rr: f64 = r.iter().map(|v| v * v).sum();
    'cg: for _ in 0..3 * n {
        let ap = a.mul(&p);
        let al = rr / p.iter().zip(&ap).map(|(a, b)| a * b).sum::<f64>();
        for i in 0..n {
            s[i] += al * p[i];
            r[i] -= al * ap[i];
        }
        let new: f64 = r.iter().map(|v| v * v).sum();
        if new < 1e-24 {
            break 'cg;
        }
        let be = new / rr;
        rr = new;
        p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + be * *p);
    }
    s.iter().zip(x).map(|(a, b)| a * b).sum()
}
case!(conjugate_gradients, cg, ramp(6));
fn thomas(a: &[f64], b: &[f64], c: &[f64], d: &[f64]) -> Vec<f64> {
    let n = b.len();
    let (mut cp, mut dp) = (vec![0.0; n], vec![0.0; n]);
    cp[0] = c[0] / b[0];
    dp[0] = d[0] / b[0];
    for i in 1..n {
        let m = b[i] - a[i] * cp[i - 1];
        cp[i] = c[i] / m;
        dp[i] = (d[i] - a[i] * dp[i - 1]) / m;
    }
    for i in (0..n - 1).rev() {
        dp[i] -= cp[i] * dp[i + 1];
    }
    dp
}
#[differentiable]
fn crank(x: &[f64]) -> f64 {
    let n = 12;
    let k = x[0] * 0.3;
    let mut u: Vec<f64> = (0..n).map(|i| (i as f64 * 0.5).sin() * x[1]).collect();
    for _ in 0..5 {
        let rhs: Vec<f64> = (0..n)
            .map(|i| {
                let l = if i > 0 { u[i - 1] } else { 0.0 };
                let r = u.get(i + 1).copied().unwrap_or(x[2]);
                u[i] + k * (l - 2.0 * u[i] + r)
            })
            .collect();
        u = thomas(&vec![-k; n], &vec![1.0 + 2.0 * k; n], &vec![-k; n], &rhs);
    }
    u.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum()
}
case!(crank_nicolson, crank, ramp(3));
use std::collections::HashMap;
fn rk4<const N: usize>(f: &impl Fn(f64, &[f64; N]) -> [f64; N], t: f64, y: [f64; N], h: f64) -> [f64; N] {
    let ax = |k: &[f64; N], c: f64| -> [f64; N] { std::array::from_fn(|i| y[i] + c * k[i]) };
    let k1 = f(t, &y);
    let k2 = f(t + h / 2.0, &ax(&k1, h / 2.0));
    let k3 = f(t + h / 2.0, &ax(&k2, h / 2.0));
    let k4 = f(t + h, &ax(&k3, h));
    std::array::from_fn(|i| y[i] + h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]))
}
#[differentiable]
fn lorenz(x: &[f64]) -> f64 {
    let f = |t: f64, y: &[f64; 3]| {
        [
            x[0] * 10.0 * (y[1] - y[0]),
            y[0] * (20.0 + x[1] - y[2]) - y[1],
            y[0] * y[1] - x[2] * y[2] + t.sin(),
        ]
    };
    let mut y = [1.0, x[0], 0.5];
    let mut hist = Vec::with_capacity(4);
    for i in 0..20 {
        y = rk4(&f, i as f64 * 0.01, y, 0.01);
        if i % 5 == 0 {
            hist.push(y);
        }
    }
    hist.iter().flatten().sum::<f64>() + y[2]
}
case!(lorenz_by_runge_kutta, lorenz, ramp(3));
fn lse(v: impl Iterator<Item = f64> + Clone) -> f64 {
    let m = v.clone().fold(f64::NEG_INFINITY, f64::max);
    if m.is_infinite() {
        return m;
    }
    m + v.map(|x| (x - m).exp()).sum::<f64>().ln()
}
#[differentiable]
fn hmm(x: &[f64]) -> f64 {
    const K: usize = 3;
    let obs = [0usize, 2, 1, 1, 0, 2, 2];
    let tr: [[f64; K]; K] = std::array::from_fn(|i| {
        let r: [f64; K] = std::array::from_fn(|j| x[(i * 2 + j) % x.len()]);
        let z = lse(r.iter().copied());
        r.map(|v| v - z)
    });
    let em = |k: usize, o: usize| {
        if k == 0 && o == 2 {
            f64::NEG_INFINITY
        } else {
            -(k as f64 - o as f64 * x[0]).powi(2)
        }
    };
    let mut a: [f64; K] = [0.0, f64::NEG_INFINITY, -1.0];
    for &o in &obs {
        let b = a;
        for k in 0..K {
            a[k] = lse((0..K).map(|j| b[j] + tr[j][k])) + em(k, o);
        }
    }
    lse(a.into_iter())
}
case!(hidden_markov, hmm, ramp(5));
#[differentiable]
fn attention(x: &[f64]) -> f64 {
    let (t, d) = (4, 3);
    let get = |o: usize| -> Vec<Vec<f64>> {
        (0..t)
            .map(|i| {
                (0..d)
                    .map(|j| (x[(i * d + j + o) % x.len()] * (o + 1) as f64).sin())
                    .collect()
            })
            .collect()
    };
    let (q, k, v) = (get(0), get(1), get(2));
    let mut out = vec![vec![0.0; d]; t];
    for i in 0..t {
        let s: Vec<f64> = k
            .iter()
            .take(i + 1)
            .map(|k| q[i].iter().zip(k).map(|(a, b)| a * b).sum::<f64>() / (d as f64).sqrt())
            .collect();
        let m = s.iter().cloned().fold(f64::MIN, f64::max);
        let e: Vec<f64> = s.iter().map(|s| (s - m).exp()).collect();
        let z: f64 = e.iter().sum();
        for (w, v) in e.iter().zip(&v) {
            for (o, v) in out[i].iter_mut().zip(v) {
                *o += w / z * v;
            }
        }
    }
    let mean: Vec<f64> = (0..d)
        .map(|j| out.iter().map(|r| r[j]).sum::<f64>() / t as f64)
        .collect();
    let var: Vec<f64> = (0..d)
        .map(|j| out.iter().map(|r| (r[j] - mean[j]).powi(2)).sum::<f64>() / t as f64)
        .collect();
    out.iter()
        .map(|r| {
            r.iter()
                .enumerate()
                .map(|(j, v)| {
                    let n = (v - mean[j]) / (var[j] + 1e-3).sqrt() * x[j] + x[j + 1];
                    n.max(0.1 * n)
                })
                .sum::<f64>()
        })
        .map(|s| s * s)
        .sum()
}
case!(attention_and_norm, attention, ramp(7));
struct Memo<'a> {
    x: &'a [f64],
    seen: HashMap<(usize, usize), f64>,
    hits: u32,
}
impl Memo<'_> {
    fn cost(&mut self, i: usize, j: usize) -> f64 {
        if let Some(v) = self.seen.get(&(i, j)) {
            self.hits += 1;
            return *v;
        }
        let v = if i + 1 >= j {
            0.0
        } else {
            let mut best = f64::INFINITY;
            for k in i + 1..j {
                let c = self.cost(i, k) + self.cost(k, j) + self.x[i] * self.x[k] * self.x[j];
                if c < best {
                    best = c;
                }
            }
            best
        };
        self.seen.insert((i, j), v);
        v
    }
}
#[differentiable]
fn chain(x: &[f64]) -> f64 {
    let mut m = Memo {
        x,
        seen: HashMap::new(),
        hits: 0,
    };
    m.cost(0, x.len() - 1) * m.hits as f64
}
case!(matrix_chain_by_memory, chain, vec![1.2, 0.4, 2.3, 0.9, 1.7, 0.6, 1.1]);
#[differentiable]
fn knapsack(x: &[f64]) -> f64 {
    let w = [3usize, 1, 4, 2, 2];
    let cap = 7;
    let mut dp = vec![vec![(0.0f64, 0u32); cap + 1]; w.len() + 1];
    for i in 0..w.len() {
        for c in 0..=cap {
            dp[i + 1][c] = dp[i][c];
            if c >= w[i] {
                let (v, m) = dp[i][c - w[i]];
                if v + x[i] * x[i] > dp[i + 1][c].0 {
                    dp[i + 1][c] = (v + x[i] * x[i], m | 1 << i);
                }
            }
        }
    }
    let (v, m) = dp[w.len()][cap];
    v * m.count_ones() as f64 + (0..5).filter(|i| m >> i & 1 == 1).map(|i| x[i]).product::<f64>()
}
case!(knapsack_with_masks, knapsack, ramp(5));
