//! Operations that give one number.

use super::Real;
use super::softmax::row;
use std::sync::Arc;

/// `Σ x`.
pub mod sum {
    use super::*;

    /// The sum, and how many elements there are.
    pub fn forward<T: Real>(x: &[T]) -> (T, usize) {
        (x.iter().copied().sum(), x.len())
    }

    /// The seed, for every element.
    pub fn backward<T: Real>(length: usize, seed: T) -> Vec<T> {
        vec![seed; length]
    }

    /// The sum, and that of the tangents.
    pub fn tangent<T: Real>(x: &[T], along: Vec<T>) -> (T, T) {
        (forward(x).0, along.into_iter().sum())
    }
}

/// `Σ x / n`; of nothing, not a number.
pub mod mean {
    use super::*;

    /// The mean, and how many elements there are.
    pub fn forward<T: Real>(x: &[T]) -> (T, usize) {
        (sum::forward(x).0 / T::count(x.len()), x.len())
    }

    /// The seed's nth part, for every element.
    pub fn backward<T: Real>(length: usize, seed: T) -> Vec<T> {
        vec![seed / T::count(length); length]
    }

    /// The mean, and that of the tangents.
    pub fn tangent<T: Real>(x: &[T], along: Vec<T>) -> (T, T) {
        (forward(x).0, forward(&along).0)
    }
}

/// `ln Σ e^x`, by the greatest element; of nothing, the logarithm of zero.
pub mod logsumexp {
    use super::*;

    /// The value, and the softmax.
    pub fn forward<T: Real>(x: &[T]) -> (T, Arc<[T]>) {
        let (shares, value) = row(x);
        (value, shares.into())
    }

    /// The seed, shared out by the softmax.
    pub fn backward<T: Real>(shares: Arc<[T]>, seed: T) -> Vec<T> {
        shares.iter().map(|share| *share * seed).collect()
    }

    /// The value, and its tangent.
    pub fn tangent<T: Real>(x: &[T], along: Vec<T>) -> (T, T) {
        let (value, shares) = forward(x);
        (value, shares.iter().zip(along).map(|(share, d)| *share * d).sum())
    }
}

/// `Σ x y`.
pub mod dot {
    use super::*;

    /// The factors.
    pub type Kept<T> = Arc<[Vec<T>; 2]>;

    fn value<T: Real>(x: &[T], y: &[T]) -> T {
        assert!(
            x.len() == y.len(),
            "the factors of `dot` have {} and {} elements",
            x.len(),
            y.len()
        );
        x.iter().zip(y).map(|(x, y)| *x * *y).sum()
    }

    /// The product, and its factors.
    pub fn forward<T: Real>(x: &[T], y: &[T]) -> (T, Kept<T>) {
        (value(x, y), Arc::new([x.to_vec(), y.to_vec()]))
    }

    /// The seed times the other factor.
    pub fn backward<T: Real>(kept: Kept<T>, seed: T) -> (Vec<T>, Vec<T>) {
        let times = |v: &[T]| v.iter().map(|v| *v * seed).collect();
        (times(&kept[1]), times(&kept[0]))
    }

    /// The product, and its tangent.
    pub fn tangent<T: Real>(x: &[T], y: &[T], dx: Vec<T>, dy: Vec<T>) -> (T, T) {
        (value(x, y), value(&dx, y) + value(x, &dy))
    }
}
