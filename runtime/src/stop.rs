//! Values through which no derivative flows.

use tch::Tensor;

/// What [`stop_gradient`] takes.
pub trait StopGradient {
    /// The same value as a constant.
    type Constant;
    /// Makes it.
    fn constant(self) -> Self::Constant;
}

/// The same value, as a constant for the derivative.
pub fn stop_gradient<T: StopGradient>(value: T) -> T::Constant {
    value.constant()
}

impl StopGradient for &Tensor {
    type Constant = Tensor;
    fn constant(self) -> Tensor {
        self.detach()
    }
}

impl StopGradient for f64 {
    type Constant = f64;
    fn constant(self) -> f64 {
        cotangent_stop_gradient_f64(self)
    }
}

impl StopGradient for f32 {
    type Constant = f32;
    fn constant(self) -> f32 {
        cotangent_stop_gradient_f32(self)
    }
}

/// The identity, whose derivative the pass takes to be zero.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn cotangent_stop_gradient_f64(value: f64) -> f64 {
    value
}

/// The identity, whose derivative the pass takes to be zero.
#[inline(never)]
#[unsafe(no_mangle)]
pub extern "C" fn cotangent_stop_gradient_f32(value: f32) -> f32 {
    value
}
