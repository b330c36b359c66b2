//! What the forward half of a user's own rule keeps for its backward half.

use std::fmt;
use std::ops::Deref;
use tch::Tensor;

/// A tensor among the residuals of a `#[custom_vjp]` rule. Residuals are cloned for each call of the pullback, which
/// here gives another handle to the same tensor.
pub struct Saved(Tensor);

impl Saved {
    /// Keeps a tensor, outside of LibTorch's graph.
    pub fn new(tensor: &Tensor) -> Self {
        Self(tensor.detach())
    }
}

impl Clone for Saved {
    fn clone(&self) -> Self {
        Self(self.0.shallow_clone())
    }
}

impl Deref for Saved {
    type Target = Tensor;
    fn deref(&self) -> &Tensor {
        &self.0
    }
}

impl fmt::Debug for Saved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
