//! `e^x / Σ e^x` in each row.

use super::{Real, expect};
use std::sync::Arc;

/// The result, and the length of a row.
pub type Kept<T> = (Arc<[T]>, usize);

/// The softmax of a row, and the logarithm of the sum of exponentials.
pub(super) fn row<T: Real>(x: &[T]) -> (Vec<T>, T) {
    let top = x.iter().fold(T::LEAST, |top, x| top.max(*x));
    // Where all are infinite there is nothing to take off.
    let top = if top.is_finite() { top } else { T::NONE };
    let mut shares: Vec<T> = x.iter().map(|x| (*x - top).exp()).collect();
    let total: T = shares.iter().copied().sum();
    shares.iter_mut().for_each(|share| *share = *share / total);
    (shares, total.ln() + top)
}

fn rows(length: usize, columns: usize) -> usize {
    let rows = length.checked_div(columns).unwrap_or(0);
    expect("the operand of `softmax`", length, &[rows, columns]);
    rows
}

/// The softmax of each row.
pub fn forward<T: Real>(x: &[T], columns: usize) -> (Vec<T>, Kept<T>) {
    rows(x.len(), columns);
    let y: Vec<T> = x.chunks(columns.max(1)).flat_map(|x| row(x).0).collect();
    (y.clone(), (y.into(), columns))
}

/// `y (g - Σ g y)`.
pub fn backward<T: Real>((y, columns): Kept<T>, seed: Vec<T>) -> Vec<T> {
    let rows = y.chunks(columns.max(1)).zip(seed.chunks(columns.max(1)));
    let of_row = |(y, g): (&[T], &[T])| {
        let mean: T = y.iter().zip(g).map(|(y, g)| *y * *g).sum();
        let each = y.iter().zip(g).map(|(y, g)| *y * (*g - mean));
        each.collect::<Vec<T>>()
    };
    rows.flat_map(of_row).collect()
}

/// The softmax, and its tangent: its Jacobian is symmetric.
pub fn tangent<T: Real>(x: &[T], columns: usize, along: Vec<T>) -> (Vec<T>, Vec<T>) {
    let (y, kept) = forward(x, columns);
    (y, backward(kept, along))
}
