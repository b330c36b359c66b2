//! Operations on each element: a line of mathematics each.

use super::Real;
use std::sync::Arc;

macro_rules! elementwise {
    ($($(#[$doc:meta])* $name:ident($x:ident): $value:expr, of $y:ident: $slope:expr;)*) => {$(
        $(#[$doc])*
        pub mod $name {
            use super::*;

            fn value<T: Real>($x: T) -> T {
                $value
            }

            fn slope<T: Real>($x: T, $y: T) -> T {
                $slope
            }

            /// The values, and the slopes.
            pub fn forward<T: Real>(x: &[T]) -> (Vec<T>, Arc<[T]>) {
                let y: Vec<T> = x.iter().map(|x| value(*x)).collect();
                let slopes = x.iter().zip(&y).map(|(x, y)| slope(*x, *y)).collect();
                (y, slopes)
            }

            /// The cotangents of the elements.
            pub fn backward<T: Real>(slopes: Arc<[T]>, seed: Vec<T>) -> Vec<T> {
                slopes.iter().zip(seed).map(|(slope, g)| *slope * g).collect()
            }

            /// The values, and their tangents.
            pub fn tangent<T: Real>(x: &[T], along: Vec<T>) -> (Vec<T>, Vec<T>) {
                let (y, slopes) = forward(x);
                (y, backward(slopes, along))
            }
        }
    )*};
}

elementwise! {
    /// `max(x, 0)`; the slope at 0 is 0, as LibTorch has it.
    relu(x): if x < T::NONE { T::NONE } else { x }, of _y: if x > T::NONE { T::ONE } else { T::NONE };
    /// `tanh x`: slope `1 - y²`.
    tanh(x): x.tanh(), of y: { let _ = x; T::ONE - y * y };
    /// `1 / (1 + e^-x)`: slope `y (1 - y)`.
    sigmoid(x): T::ONE / (T::ONE + (-x).exp()), of y: { let _ = x; y * (T::ONE - y) };
    /// `ln(1 + e^x)`: slope `1 / (1 + e^-x)`.
    softplus(x): x.max(T::NONE) + (if x > T::NONE { -x } else { x }).exp().ln_1p(),
        of _y: T::ONE / (T::ONE + (-x).exp());
}
