//! `C = A B`: `A` is `m × k`, `B` is `k × n`.

use super::product::{Matrix, product};
use super::{Real, expect};
use std::sync::Arc;

/// The factors, and `m`, `k` and `n`.
pub type Kept<T> = (Arc<[Vec<T>; 2]>, [usize; 3]);

fn value<T: Real>(a: &[T], b: &[T], [m, k, n]: [usize; 3]) -> Vec<T> {
    product(Matrix::new(a, m, k), Matrix::new(b, k, n))
}

fn check<T>(a: &[T], b: &[T], [m, k, n]: [usize; 3]) {
    expect("the first factor of `matmul`", a.len(), &[m, k]);
    expect("the second factor of `matmul`", b.len(), &[k, n]);
}

/// The product, and its factors.
pub fn forward<T: Real>(a: &[T], b: &[T], m: usize, k: usize, n: usize) -> (Vec<T>, Kept<T>) {
    check(a, b, [m, k, n]);
    let kept = Arc::new([a.to_vec(), b.to_vec()]);
    (value(a, b, [m, k, n]), (kept, [m, k, n]))
}

/// `G Bᵀ` and `Aᵀ G`.
pub fn backward<T: Real>((kept, [m, k, n]): Kept<T>, seed: Vec<T>) -> (Vec<T>, Vec<T>) {
    let seed = Matrix::new(&seed, m, n);
    let [a, b] = &*kept;
    (
        product(seed, Matrix::new(b, k, n).transposed()),
        product(Matrix::new(a, m, k).transposed(), seed),
    )
}

/// The product, and `A' B + A B'`.
pub fn tangent<T: Real>(a: &[T], b: &[T], m: usize, k: usize, n: usize, da: Vec<T>, db: Vec<T>) -> (Vec<T>, Vec<T>) {
    let sizes = [m, k, n];
    check(a, b, sizes);
    let (left, right) = (value(&da, b, sizes), value(a, &db, sizes));
    let sum = left.into_iter().zip(right).map(|(l, r)| l + r).collect();
    (value(a, b, sizes), sum)
}
