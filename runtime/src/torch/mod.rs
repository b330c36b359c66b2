//! What the runtime calls of LibTorch and of the C++ shim.

pub mod kind;
pub mod shim;
mod storage;

pub use storage::{StorageUse, measure_storage};

use std::ffi::CStr;

/// LibTorch's message of the last failed call on this thread.
pub fn take_error() -> Option<String> {
    // SAFETY: the function has no precondition; it gives up ownership of a `strdup`ed string, or null.
    unsafe {
        let text = torch_sys::get_and_reset_last_err();
        if text.is_null() {
            return None;
        }
        let message = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        Some(message)
    }
}

/// Is the tensor the result of a recorded operation? Never so inside a region.
pub fn has_grad_fn(x: &tch::Tensor) -> bool {
    // SAFETY: `x` is a valid handle.
    unsafe { shim::cotangent_has_grad_fn(x.as_ptr()) != 0 }
}
