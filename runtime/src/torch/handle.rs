//! A C handle that frees itself.

use super::Raw;
use std::ptr::NonNull;
use torch_sys::C_tensor;

unsafe extern "C" {
    fn cotangent_share(tensor: Raw) -> Raw;
    fn cotangent_plain(tensor: Raw) -> Raw;
    fn cotangent_clone(tensor: Raw) -> Raw;
}

/// An owned C handle of a tensor.
#[derive(Debug)]
pub(crate) struct Handle(NonNull<C_tensor>);

// SAFETY: a handle is an `at::Tensor` on the heap: its count of references is atomic, and no `&Handle` function writes.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// Takes over a handle; `None` for null.
    ///
    /// # Safety
    /// The handle is the caller's own.
    pub(crate) unsafe fn own(raw: Raw) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// Another handle of a tensor that someone else owns.
    ///
    /// # Safety
    /// The handle is valid.
    pub(crate) unsafe fn share_raw(raw: Raw) -> Self {
        // SAFETY: the caller's promise.
        let shared = unsafe { cotangent_share(raw) };
        Self(NonNull::new(shared).expect("`new` gives no null"))
    }

    /// The handle, for calls that borrow it.
    pub(crate) fn raw(&self) -> Raw {
        self.0.as_ptr()
    }

    /// Gives the handle away.
    pub(crate) fn into_raw(self) -> Raw {
        let raw = self.raw();
        std::mem::forget(self);
        raw
    }

    /// Another handle of the same tensor.
    pub(crate) fn share(&self) -> Self {
        // SAFETY: our own handle is valid.
        unsafe { Self::share_raw(self.raw()) }
    }

    /// A tensor on the same storage and version counter, without autograd.
    pub(crate) fn plain(&self) -> Self {
        // SAFETY: our own handle is valid; `new` gives no null.
        unsafe { Self(NonNull::new(cotangent_plain(self.raw())).expect("`new` gives no null")) }
    }

    /// A tensor of its own with the same elements; `None` if memory is short.
    pub(crate) fn copy(&self) -> Option<Self> {
        // SAFETY: our own handle is valid, and the result is ours.
        unsafe { Self::own(cotangent_clone(self.raw())) }
    }

    /// The same as a tensor of tch.
    pub(crate) fn into_tensor(self) -> tch::Tensor {
        // SAFETY: the handle is ours and given away.
        unsafe { tch::Tensor::from_ptr(self.into_raw()) }
    }

    /// The handle that a tensor of tch holds.
    pub(crate) fn take(mut tensor: tch::Tensor) -> Self {
        let raw = NonNull::new(tensor.as_mut_ptr()).expect("a tensor of tch holds a handle");
        std::mem::forget(tensor);
        Self(raw)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is ours, and this is its last use.
        unsafe { torch_sys::at_free(self.raw()) };
    }
}
