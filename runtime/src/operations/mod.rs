//! Derivatives of the operations that `#[op(..)]` names: each a forward half, which computes the operation and keeps what
//! its reverse needs, a backward half, and a tangent function, as a rule of a user's would have them.
//!
//! Slices are rows after rows (the last dimension varies fastest). `T` is `f32` or `f64`. A slice whose length is not that
//! of its dimensions is a panic that says so.
//!
//! | operation | signature | derivative |
//! |---|---|---|
//! | [`relu`], [`tanh`], [`sigmoid`], [`softplus`] | `fn(&[T]) -> Vec<T>` | `f'(x)` of each element |
//! | [`sum`], [`mean`] | `fn(&[T]) -> T` | one, or one nth |
//! | [`logsumexp`] | `fn(&[T]) -> T` | the softmax |
//! | [`dot`] | `fn(&[T], &[T]) -> T` | the other factor |
//! | [`softmax`] | `fn(&[T], columns: usize) -> Vec<T>` | `y (g - Σ g y)` in each row |
//! | [`matmul`] | `fn(&[T], &[T], m: usize, k: usize, n: usize) -> Vec<T>` | `A' = G Bᵀ`, `B' = Aᵀ G` |
//! | [`conv2d`] | `fn(&[T], &[T], input: [usize; 3], kernel: [usize; 3]) -> Vec<T>` | by products of matrices |

pub mod conv2d;
mod elementwise;
pub mod matmul;
mod product;
mod real;
mod reductions;
pub mod softmax;

pub use elementwise::{relu, sigmoid, softplus, tanh};
pub use real::Real;
pub use reductions::{dot, logsumexp, mean, sum};

/// Panics where a slice has not the elements that its dimensions say.
#[track_caller]
fn expect(what: &str, length: usize, dimensions: &[usize]) {
    let wanted: usize = dimensions.iter().product();
    assert!(
        length == wanted,
        "{what} has {length} elements, and its dimensions {dimensions:?} make {wanted}"
    );
}
