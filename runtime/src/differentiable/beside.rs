//! Parameters that nobody differentiates, and that a kernel may write to: what it writes may carry derivatives.
//!
//! Macro-made code does not know whether a type is differentiable, and need not: for `(&Beside(&value)).list(leaves)` the
//! compiler prefers [`BesideLeaves`], where its bound holds, to [`BesideConstants`], which takes one reference more.

use super::{Differentiable, Leaves};

/// Such a parameter.
#[derive(Debug)]
pub struct Beside<'a, T>(pub &'a T);

/// Of a type that has leaves.
pub trait BesideLeaves {
    /// Lists the memory it reaches.
    fn list(&self, leaves: &mut Leaves);
}

impl<T: Differentiable> BesideLeaves for Beside<'_, T> {
    #[inline]
    fn list(&self, leaves: &mut Leaves) {
        leaves.beside(self.0);
    }
}

/// Of any type: it is inactive.
pub trait BesideConstants {
    /// Lists nothing.
    fn list(&self, _: &mut Leaves) {}
}

impl<T> BesideConstants for &Beside<'_, T> {}
