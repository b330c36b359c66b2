//! A determinant by expansion into minors, by recursion.

use crate::random::Random;
use crate::{Size, Workload};
use cotangent::differentiable;

/// The determinant of the rows from `row` on and the columns in the set.
fn minor(a: &[f64], n: usize, row: usize, columns: u32) -> f64 {
    if row == n {
        return 1.0;
    }
    let (mut sum, mut sign) = (0.0, 1.0);
    for column in 0..n {
        if columns >> column & 1 != 0 {
            sum += sign * a[row * n + column] * minor(a, n, row + 1, columns & !(1 << column));
            sign = -sign;
        }
    }
    sum
}

#[differentiable]
fn det(a: &[f64], n: usize) -> f64 {
    minor(a, n, 0, (1 << n) - 1)
}

/// The minor, while cotangents are added: one recursion for both.
fn minor_back(a: &[f64], n: usize, row: usize, columns: u32, seed: f64, a_bar: &mut [f64]) -> f64 {
    if row == n {
        return 1.0;
    }
    let (mut sum, mut sign) = (0.0, 1.0);
    for column in 0..n {
        if columns >> column & 1 != 0 {
            let factor = sign * a[row * n + column];
            let rest = minor_back(a, n, row + 1, columns & !(1 << column), seed * factor, a_bar);
            a_bar[row * n + column] += seed * sign * rest;
            sum += factor * rest;
            sign = -sign;
        }
    }
    sum
}

fn by_hand(a: &[f64], n: usize) -> Vec<f64> {
    let mut a_bar = vec![0.0; a.len()];
    minor_back(a, n, 0, (1 << n) - 1, 1.0, &mut a_bar);
    a_bar
}

pub(crate) fn workload(size: Size) -> Workload {
    let n = size.pick(4, 9);
    let a = Random(4).numbers(n * n);
    let (a1, a2) = (a.clone(), a.clone());
    Workload {
        primal: Box::new(move || det(&a, n)),
        gradient: Box::new(move || vec![det::grad(&a1, n).a]),
        by_hand: Box::new(move || vec![by_hand(&a2, n)]),
    }
}
