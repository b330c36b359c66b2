//! How much tensor storage a piece of code takes from LibTorch's allocator.

use std::ffi::c_void;

unsafe extern "C" {
    fn cotangent_storage_begin() -> *mut c_void;
    fn cotangent_storage_end(measurement: *mut c_void, allocated: *mut i64, live: *mut i64, peak: *mut i64);
}

/// Tensor storage on the CPU, in bytes. What was there before the measurement does not count, nor does the
/// allocator's own overhead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorageUse {
    /// Sum of all allocations.
    pub allocated: i64,
    /// Allocated in the measurement and not freed at its end.
    pub live: i64,
    /// The most that was live at one time.
    pub peak: i64,
}

/// A measurement that is running; ends when dropped, also by a panic.
struct Running(*mut c_void);

impl Running {
    fn end(&mut self) -> StorageUse {
        let mut u = StorageUse::default();
        if !self.0.is_null() {
            // SAFETY: `begin` made it, and it is ended once, on the thread that began it.
            unsafe { cotangent_storage_end(self.0, &mut u.allocated, &mut u.live, &mut u.peak) };
            self.0 = std::ptr::null_mut();
        }
        u
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs `f` and measures the tensor storage that it takes on this thread.
pub fn measure_storage<R>(f: impl FnOnce() -> R) -> (R, StorageUse) {
    // SAFETY: no preconditions.
    let mut running = Running(unsafe { cotangent_storage_begin() });
    let result = f();
    (result, running.end())
}
