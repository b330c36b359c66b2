//! Least squares: a polynomial fitted to a sign function.

use crate::random::Random;
use crate::{Size, Workload};
use cotangent::differentiable;

/// Where the polynomial is compared, and with what.
fn sample(i: usize, n: usize) -> (f64, f64) {
    let t = 2.0 * i as f64 / (n - 1) as f64 - 1.0;
    (
        t,
        if t > 0.0 {
            1.0
        } else if t < 0.0 {
            -1.0
        } else {
            0.0
        },
    )
}

#[differentiable]
fn llsq(x: &[f64], n: usize) -> f64 {
    let mut total = 0.0;
    for i in 0..n {
        let (t, wanted) = sample(i, n);
        let (mut sum, mut power) = (0.0, 1.0);
        for x in x {
            sum += x * power;
            power *= t;
        }
        total += (wanted - sum) * (wanted - sum);
    }
    0.5 * total / n as f64
}

fn by_hand(x: &[f64], n: usize) -> Vec<f64> {
    let mut slopes = vec![0.0; x.len()];
    for i in 0..n {
        let (t, wanted) = sample(i, n);
        let (mut sum, mut power) = (0.0, 1.0);
        for x in x {
            sum += x * power;
            power *= t;
        }
        let mut rest = (sum - wanted) / n as f64;
        for slope in &mut slopes {
            *slope += rest;
            rest *= t;
        }
    }
    slopes
}

pub(crate) fn workload(size: Size) -> Workload {
    let (n, m) = size.pick((64, 8), (16_392, 128));
    let x = Random(2).numbers(m);
    let (x1, x2) = (x.clone(), x.clone());
    Workload {
        primal: Box::new(move || llsq(&x, n)),
        gradient: Box::new(move || vec![llsq::grad(&x1, n).x]),
        by_hand: Box::new(move || vec![by_hand(&x2, n)]),
    }
}
