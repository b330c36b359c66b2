//! Newton's method on Rosenbrock's function in 1,000 dimensions, 500 valleys: products with the Hessian are tangents of the
//! gradient, and conjugate gradients solve for the step. No matrix is ever made.
//!
//! `cargo cotangent run --release --example hvp`

use cotangent::differentiable;

#[differentiable]
fn rosenbrock(x: &[f64]) -> f64 {
    let valley = |pair: &[f64]| 100.0 * (pair[1] - pair[0] * pair[0]).powi(2) + (1.0 - pair[0]).powi(2);
    x.chunks(2).map(valley).sum()
}

/// The gradient as a function of its own. Its tangent along `v` is the Hessian times `v`.
#[differentiable]
fn gradient(x: &[f64]) -> Vec<f64> {
    rosenbrock::grad(x).x
}

fn hessian_times(x: &[f64], v: &[f64]) -> Vec<f64> {
    gradient::jvp(x, gradient::Tangents { x: v.to_vec() }).1
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The same product by hand: the Hessian has a block of two by two for each pair.
fn hessian_by_hand(x: &[f64], v: &[f64]) -> Vec<f64> {
    let block = |x: &[f64], v: &[f64]| {
        let corner = -400.0 * x[0];
        let first = 1200.0 * x[0] * x[0] - 400.0 * x[1] + 2.0;
        [first * v[0] + corner * v[1], corner * v[0] + 200.0 * v[1]]
    };
    x.chunks(2).zip(v.chunks(2)).flat_map(|(x, v)| block(x, v)).collect()
}

/// Adds `k` times `from`.
fn add(to: &mut [f64], k: f64, from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += k * from);
}

/// Solves `H p = -g` by conjugate gradients, as far as is worth it; stops where the function curves down.
fn direction(x: &[f64], slope: &[f64]) -> Vec<f64> {
    let mut p = vec![0.0; x.len()];
    let mut rest: Vec<f64> = slope.iter().map(|g| -g).collect();
    let mut search = rest.clone();
    let mut square = dot(&rest, &rest);
    let enough = square * square.sqrt().min(0.25);
    for _ in 0..200 {
        let product = hessian_times(x, &search);
        let curvature = dot(&search, &product);
        if curvature <= 0.0 {
            if p.iter().all(|p| *p == 0.0) {
                p = rest;
            }
            break;
        }
        let step = square / curvature;
        add(&mut p, step, &search);
        add(&mut rest, -step, &product);
        let next = dot(&rest, &rest);
        if next <= enough {
            break;
        }
        search.iter_mut().for_each(|s| *s *= next / square);
        add(&mut search, 1.0, &rest);
        square = next;
    }
    p
}

fn main() {
    let n = 1000;
    let away = |i: usize| 0.2 * (i as f64).cos();
    let mut x: Vec<f64> = (0..n).map(|i| [-1.2, 1.0][i % 2] + away(i)).collect();
    let v: Vec<f64> = (0..n).map(|i| (0.1 * i as f64).sin()).collect();
    let (product, by_hand) = (hessian_times(&x, &v), hessian_by_hand(&x, &v));
    let error = product
        .iter()
        .zip(&by_hand)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, f64::max);
    println!("largest difference from the Hessian by hand: {error:.1e}");
    assert!(error < 1e-9, "the product is exact");

    for iteration in 0..200 {
        let (value, rosenbrock::Cotangents { x: slope }) = rosenbrock::value_and_grad(&x);
        let norm = dot(&slope, &slope).sqrt();
        if iteration % 5 == 0 || norm < 1e-8 {
            println!("iteration {iteration:>3}: value {value:.3e}, gradient {norm:.1e}");
        }
        if norm < 1e-8 {
            break;
        }
        let p = direction(&x, &slope);
        let decrease = dot(&slope, &p);
        let mut step = 1.0;
        loop {
            let mut next = x.clone();
            add(&mut next, step, &p);
            if step < 1e-12 || rosenbrock(&next) <= value + 1e-4 * step * decrease {
                x = next;
                break;
            }
            step *= 0.5;
        }
    }
    let away = x.iter().map(|x| (x - 1.0).abs()).fold(0.0, f64::max);
    println!("largest distance from the minimum at (1, .., 1): {away:.1e}");
    assert!(away < 1e-6, "the minimum is at (1, .., 1)");
}
