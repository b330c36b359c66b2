//! The running program, as specialization and prologues see it.

use super::request;
use crate::torch::{Raw, facts};
use cotangent_graph::ir::TensorType;
use cotangent_graph::specialize::{Host, TensorFacts};

/// The memory that a function can reach from the addresses of its arguments.
pub(super) struct Memory<'a> {
    args: &'a [*const ()],
}

impl<'a> Memory<'a> {
    /// # Safety
    /// `args` are the addresses of the arguments of the function whose program asks, alive as long as this value.
    pub(super) unsafe fn of(args: &'a [*const ()]) -> Self {
        Self { args }
    }
}

fn raw(handle: u64) -> Raw {
    handle as Raw
}

// The safety of everything here rests on `Host`'s contract: a program reads only what its function would read, in
// the same order and after the same checks, and takes for a C handle only what its function passes to LibTorch.
impl Host for Memory<'_> {
    fn argument(&self, index: usize) -> u64 {
        self.args[index] as u64
    }

    fn global(&self, symbol: &str) -> Option<u64> {
        request::address(symbol)
    }

    fn load(&self, address: u64, bytes: u8) -> u64 {
        // SAFETY: the function itself reads so many bytes there (see above).
        unsafe {
            match bytes {
                1 => (address as *const u8).read_unaligned().into(),
                2 => (address as *const u16).read_unaligned().into(),
                4 => (address as *const u32).read_unaligned().into(),
                8 => (address as *const u64).read_unaligned(),
                n => unreachable!("a load of {n} bytes"),
            }
        }
    }

    fn tensor(&self, handle: u64) -> Result<Option<TensorFacts>, String> {
        // SAFETY: the function itself uses the handle (see above).
        unsafe { facts::all(raw(handle)) }
    }

    fn matches(&self, handle: u64, ty: &TensorType, device: i32) -> bool {
        // SAFETY: as above.
        unsafe { facts::matches(raw(handle), ty, device) }
    }

    fn defined(&self, handle: u64) -> bool {
        // SAFETY: as above.
        unsafe { facts::defined(raw(handle)) }
    }

    fn requires_grad(&self, handle: u64) -> bool {
        // SAFETY: as above.
        unsafe { facts::requires_grad(raw(handle)) }
    }

    fn has_strides(&self, handle: u64, strides: &[i64]) -> bool {
        // SAFETY: as above; a prologue asks after it has checked that the tensor is strided.
        unsafe { facts::has_strides(raw(handle), strides) }
    }

    fn identity(&self, handle: u64) -> u64 {
        // SAFETY: as above.
        unsafe { facts::identity(raw(handle)) }
    }

    fn storage(&self, handle: u64) -> u64 {
        // SAFETY: as above.
        unsafe { facts::storage(raw(handle)) }
    }
}
