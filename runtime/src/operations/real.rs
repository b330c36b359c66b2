//! The floats that operations are over.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

/// `f32` or `f64`.
pub trait Real:
    tch::kind::Element
    + Copy
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + PartialOrd
    + Sum
    + Send
    + Sync
    + 'static
{
    /// Zero.
    const NONE: Self;
    /// One.
    const ONE: Self;
    /// The least of all numbers.
    const LEAST: Self;
    /// The number nearest to a count.
    fn count(n: usize) -> Self;
    /// Exponential function.
    fn exp(self) -> Self;
    /// `ln(1 + x)`.
    fn ln_1p(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Is it a number, and not infinite?
    fn is_finite(self) -> bool;
    /// The greater of two; the one that is a number, if only one is.
    fn max(self, other: Self) -> Self;
}

macro_rules! real {
    ($($float:ident)*) => {$(
        impl Real for $float {
            const NONE: Self = 0.0;
            const ONE: Self = 1.0;
            const LEAST: Self = $float::NEG_INFINITY;
            fn count(n: usize) -> Self {
                n as $float
            }
            fn exp(self) -> Self {
                self.exp()
            }
            fn ln_1p(self) -> Self {
                self.ln_1p()
            }
            fn ln(self) -> Self {
                self.ln()
            }
            fn tanh(self) -> Self {
                self.tanh()
            }
            fn is_finite(self) -> bool {
                self.is_finite()
            }
            fn max(self, other: Self) -> Self {
                self.max(other)
            }
        }
    )*};
}

real!(f32 f64);
