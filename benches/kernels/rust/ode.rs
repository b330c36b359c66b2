//! A chain of differential equations, by Runge and Kutta's method: `y0' = x0`, `yi' = xi y(i-1)`.

use crate::random::Random;
use crate::{Size, Workload};
use cotangent::differentiable;

fn slope(x: &[f64], y: &[f64], dy: &mut [f64]) {
    dy[0] = x[0];
    for i in 1..x.len() {
        dy[i] = x[i] * y[i - 1];
    }
}

fn moved(y: &[f64], step: f64, dy: &[f64], to: &mut [f64]) {
    for i in 0..y.len() {
        to[i] = y[i] + step * dy[i];
    }
}

#[differentiable]
fn ode(x: &[f64], steps: usize) -> f64 {
    let n = x.len();
    let h = 1.0 / steps as f64;
    let (mut y, mut at) = (vec![0.0; n], vec![0.0; n]);
    let (mut k1, mut k2, mut k3, mut k4) = (vec![0.0; n], vec![0.0; n], vec![0.0; n], vec![0.0; n]);
    for _ in 0..steps {
        slope(x, &y, &mut k1);
        moved(&y, h / 2.0, &k1, &mut at);
        slope(x, &at, &mut k2);
        moved(&y, h / 2.0, &k2, &mut at);
        slope(x, &at, &mut k3);
        moved(&y, h, &k3, &mut at);
        slope(x, &at, &mut k4);
        for i in 0..n {
            y[i] += h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
        }
    }
    y.iter().sum()
}

/// The reverse of `slope`: adds to the cotangents of `x` and `y`.
fn slope_back(x: &[f64], y: &[f64], dy: &[f64], x_bar: &mut [f64], y_bar: &mut [f64]) {
    x_bar[0] += dy[0];
    for i in 1..x.len() {
        x_bar[i] += dy[i] * y[i - 1];
        y_bar[i - 1] += dy[i] * x[i];
    }
}

/// Keeps `y` of each step, and computes the rest again.
fn by_hand(x: &[f64], steps: usize) -> Vec<f64> {
    let n = x.len();
    let h = 1.0 / steps as f64;
    let mut states = vec![0.0; (steps + 1) * n];
    let mut k = vec![vec![0.0; n]; 4];
    let mut at = vec![vec![0.0; n]; 3];
    let stages = |y: &[f64], k: &mut [Vec<f64>], at: &mut [Vec<f64>]| {
        slope(x, y, &mut k[0]);
        for (stage, part) in [(0, h / 2.0), (1, h / 2.0), (2, h)] {
            moved(y, part, &k[stage], &mut at[stage]);
            slope(x, &at[stage], &mut k[stage + 1]);
        }
    };
    for step in 0..steps {
        let (before, after) = states.split_at_mut((step + 1) * n);
        let y = &before[step * n..];
        stages(y, &mut k, &mut at);
        for i in 0..n {
            after[i] = y[i] + h / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i]);
        }
    }
    let (mut x_bar, mut y_bar) = (vec![0.0; n], vec![1.0; n]);
    let (mut k_bar, mut at_bar) = (vec![0.0; n], vec![0.0; n]);
    for step in (0..steps).rev() {
        let y = &states[step * n..(step + 1) * n];
        stages(y, &mut k, &mut at);
        let last = y_bar.clone();
        for i in 0..n {
            k_bar[i] = h / 6.0 * last[i];
        }
        for (stage, weight, part) in [(2, 2.0, h), (1, 2.0, h / 2.0), (0, 1.0, h / 2.0)] {
            at_bar.fill(0.0);
            slope_back(x, &at[stage], &k_bar, &mut x_bar, &mut at_bar);
            for i in 0..n {
                y_bar[i] += at_bar[i];
                k_bar[i] = h / 6.0 * weight * last[i] + part * at_bar[i];
            }
        }
        slope_back(x, y, &k_bar, &mut x_bar, &mut y_bar);
    }
    x_bar
}

pub(crate) fn workload(size: Size) -> Workload {
    let (n, steps) = size.pick((20, 4), (100_000, 100));
    let x = Random(3).numbers(n);
    let (x1, x2) = (x.clone(), x.clone());
    Workload {
        primal: Box::new(move || ode(&x, steps)),
        gradient: Box::new(move || vec![ode::grad(&x1, steps).x]),
        by_hand: Box::new(move || vec![by_hand(&x2, steps)]),
    }
}
