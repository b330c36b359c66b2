//! Facts about tensors, asked through the shim.

use super::{Handle, Raw, take_text};
use crate::kernel::Kernel;
use cotangent_graph::ir::{Kind, TensorType};
use cotangent_graph::specialize::TensorFacts;
use std::ffi::{c_char, c_void};

#[repr(C)]
struct Facts {
    shape: *const i64,
    strides: *const i64,
    identity: *const c_void,
    storage: *const c_void,
    rank: u64,
    kind: i32,
    device: i32,
    layout: i32,
    requires_grad: u8,
}

unsafe extern "C" {
    fn cotangent_facts(tensor: Raw, out: *mut Facts) -> bool;
    fn cotangent_matches(tensor: Raw, kind: i32, shape: *const i64, rank: usize, device: i32) -> bool;
    fn cotangent_has_strides(tensor: Raw, strides: *const i64, rank: usize) -> bool;
    fn cotangent_defined(tensor: Raw) -> bool;
    fn cotangent_requires_grad(tensor: Raw) -> bool;
    fn cotangent_identity(tensor: Raw) -> *const c_void;
    fn cotangent_storage(tensor: Raw) -> *const c_void;
    fn cotangent_bytes(tensor: Raw) -> u64;
    fn cotangent_version(tensor: Raw) -> i64;
    fn cotangent_describe(tensor: Raw) -> *mut c_char;
    fn cotangent_grad_enabled() -> bool;
    fn cotangent_autocast() -> bool;
    fn cotangent_check_write(tensor: Raw, differentiable: bool) -> *mut c_char;
    fn cotangent_write(into: Raw, from: Raw, recorded: bool) -> *mut c_char;
    fn cotangent_artifact(length: *mut usize) -> *const u8;
    fn cotangent_kernel_table(length: *mut usize) -> *const Kernel;
    fn cotangent_addresses() -> *const u64;
}

/// Everything specialization wants to know; `None` for the undefined tensor.
///
/// # Safety
/// The handle is valid.
pub(crate) unsafe fn all(tensor: Raw) -> Result<Option<TensorFacts>, String> {
    let mut raw = std::mem::MaybeUninit::<Facts>::uninit();
    // SAFETY: the caller's promise; the place is ours.
    if !unsafe { cotangent_facts(tensor, raw.as_mut_ptr()) } {
        return Ok(None);
    }
    // SAFETY: the shim filled it.
    let raw = unsafe { raw.assume_init() };
    if raw.strides.is_null() {
        // SAFETY: the caller's promise.
        let what = unsafe { describe(tensor) };
        return Err(format!("a tensor of type {what} is not dense"));
    }
    let kind = Kind::from_number(raw.kind.into()).ok_or_else(|| {
        // SAFETY: the caller's promise.
        let what = unsafe { describe(tensor) };
        format!("tensors of type {what} are not supported")
    })?;
    let rank = raw.rank as usize;
    // SAFETY: the tensor holds `rank` sizes and strides, and nothing changes it meanwhile.
    let (shape, strides) = unsafe { (list(raw.shape, rank), list(raw.strides, rank)) };
    Ok(Some(TensorFacts {
        ty: TensorType::new(kind, shape),
        strides,
        device: raw.device,
        requires_grad: raw.requires_grad != 0,
        identity: raw.identity as u64,
        storage: raw.storage as u64,
    }))
}

/// # Safety
/// `n` numbers stand at `start` (which may be anything if there are none).
unsafe fn list(start: *const i64, n: usize) -> Vec<i64> {
    if n == 0 {
        return vec![];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start, n) }.to_vec()
}

/// What [`matches`] takes for any device.
const ANY_DEVICE: i32 = i32::MIN;

/// Is the tensor defined, strided, and of that type and device?
///
/// # Safety
/// The handle is valid.
pub(crate) unsafe fn matches(tensor: Raw, ty: &TensorType, device: i32) -> bool {
    // SAFETY: the caller's promise.
    unsafe { cotangent_matches(tensor, ty.kind as i32, ty.shape.as_ptr(), ty.rank(), device) }
}

/// # Safety
/// The handle is valid and the tensor strided.
pub(crate) unsafe fn has_strides(tensor: Raw, strides: &[i64]) -> bool {
    // SAFETY: the caller's promise.
    unsafe { cotangent_has_strides(tensor, strides.as_ptr(), strides.len()) }
}

/// # Safety
/// The handle is valid.
pub(crate) unsafe fn defined(tensor: Raw) -> bool {
    // SAFETY: the caller's promise.
    unsafe { cotangent_defined(tensor) }
}

/// # Safety
/// The handle is valid.
pub(crate) unsafe fn requires_grad(tensor: Raw) -> bool {
    // SAFETY: the caller's promise.
    unsafe { cotangent_requires_grad(tensor) }
}

/// Address of the `TensorImpl`.
///
/// # Safety
/// The handle is valid.
pub(crate) unsafe fn identity(tensor: Raw) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { cotangent_identity(tensor) as u64 }
}

/// Address of the storage; zero where there is none.
///
/// # Safety
/// The handle is valid.
pub(crate) unsafe fn storage(tensor: Raw) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { cotangent_storage(tensor) as u64 }
}

/// Name of the tensor's type as LibTorch's messages have it.
///
/// # Safety
/// The handle is valid.
pub(crate) unsafe fn describe(tensor: Raw) -> String {
    // SAFETY: the caller's promise.
    take_text(unsafe { cotangent_describe(tensor) }).unwrap_or_default()
}

/// Refuses to go on under autocast: LibTorch would choose kernels of other kinds than a graph was made for.
pub(crate) fn refuse_autocast() -> Result<(), &'static str> {
    // SAFETY: no precondition.
    match unsafe { cotangent_autocast() } {
        false => Ok(()),
        true => Err(
            "autocast is enabled, which changes the kinds that LibTorch's functions give, and Cotangent does not \
                     follow it: call the function outside of autocast, and convert its arguments where you want other \
                     kinds (`to_kind`)",
        ),
    }
}

/// Is autograd recording on this thread?
pub(crate) fn grad_enabled() -> bool {
    // SAFETY: reads a thread-local.
    unsafe { cotangent_grad_enabled() }
}

/// LibTorch's refusal of a write in place, if it has one.
///
/// # Safety
/// The handle is valid.
pub(crate) unsafe fn check_write(tensor: Raw, differentiable: bool) -> Result<(), String> {
    // SAFETY: the caller's promise.
    take_text(unsafe { cotangent_check_write(tensor, differentiable) }).map_or(Ok(()), Err)
}

/// Writes `from` into `into`, on the record of autograd or off it.
///
/// # Safety
/// The handles are valid.
pub(crate) unsafe fn write(into: Raw, from: Raw, recorded: bool) -> Result<(), String> {
    // SAFETY: the caller's promise.
    take_text(unsafe { cotangent_write(into, from, recorded) }).map_or(Ok(()), Err)
}

/// The artifact that the pass embedded in this program.
pub(crate) fn artifact() -> Option<&'static [u8]> {
    let mut length = 0;
    // SAFETY: the symbols delimit constant bytes of the program.
    unsafe {
        let start = cotangent_artifact(&mut length);
        (!start.is_null()).then(|| std::slice::from_raw_parts(start, length))
    }
}

/// The kernels of this program.
pub(crate) fn kernels() -> Option<&'static [Kernel]> {
    let mut length = 0;
    // SAFETY: the pass defines both symbols, or none.
    unsafe {
        let table = cotangent_kernel_table(&mut length);
        (!table.is_null()).then(|| std::slice::from_raw_parts(table, length))
    }
}

/// The addresses of `count` symbols that the pass linked into this program.
pub(crate) fn addresses(count: usize) -> &'static [u64] {
    // SAFETY: the table has an entry for each symbol that the artifact lists.
    unsafe {
        let start = cotangent_addresses();
        match start.is_null() {
            true => &[],
            false => std::slice::from_raw_parts(start, count),
        }
    }
}

impl Handle {
    /// Bytes of the elements.
    pub(crate) fn bytes(&self) -> u64 {
        // SAFETY: our own handle is valid.
        unsafe { cotangent_bytes(self.raw()) }
    }

    /// How often the tensor was written to; `None` where LibTorch does not count.
    pub(crate) fn version(&self) -> Option<u64> {
        // SAFETY: our own handle is valid.
        u64::try_from(unsafe { cotangent_version(self.raw()) }).ok()
    }

    /// Address of the storage; zero where there is none.
    pub(crate) fn storage(&self) -> u64 {
        // SAFETY: our own handle is valid.
        unsafe { storage(self.raw()) }
    }

    /// Is it of that kind and shape, on any device?
    pub(crate) fn is_like(&self, ty: &TensorType) -> bool {
        // SAFETY: our own handle is valid.
        unsafe { matches(self.raw(), ty, ANY_DEVICE) }
    }

    /// Is the tensor defined?
    pub(crate) fn defined(&self) -> bool {
        // SAFETY: our own handle is valid.
        unsafe { defined(self.raw()) }
    }

    /// Does it require grad?
    pub(crate) fn requires_grad(&self) -> bool {
        // SAFETY: our own handle is valid.
        unsafe { requires_grad(self.raw()) }
    }

    /// Name of its type as LibTorch's messages have it.
    pub(crate) fn describe(&self) -> String {
        // SAFETY: our own handle is valid.
        unsafe { describe(self.raw()) }
    }
}
