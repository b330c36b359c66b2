//! What the runtime calls of LibTorch and of the C++ shim.

pub(crate) mod facts;
mod handle;
pub mod kind;
pub(crate) mod node;
pub(crate) mod operators;
pub mod shim;
mod storage;

pub use storage::{StorageUse, measure_storage};

pub(crate) use handle::Handle;

use std::ffi::{CStr, c_char};
use torch_sys::C_tensor;

/// A C handle that someone else owns.
pub(crate) type Raw = *mut C_tensor;

/// Takes a text that the shim allocated; `None` where there is none.
fn take_text(text: *mut c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the shim gives a C string from `strdup`, which is ours.
    let owned = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: as above.
    unsafe { libc::free(text.cast()) };
    Some(owned)
}

/// LibTorch's message of the last failed call on this thread.
pub fn take_error() -> Option<String> {
    // SAFETY: the function has no precondition; it gives up ownership of a `strdup`ed string, or null.
    take_text(unsafe { torch_sys::get_and_reset_last_err() })
}

/// Is the tensor the result of a recorded operation? Never so inside a region.
pub fn has_grad_fn(x: &tch::Tensor) -> bool {
    // SAFETY: `x` is a valid handle.
    unsafe { shim::cotangent_has_grad_fn(x.as_ptr()) != 0 }
}
