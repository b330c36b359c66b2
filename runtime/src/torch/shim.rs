//! Declarations of the shim's C functions (`shim/*.cc`).

use std::marker::{PhantomData, PhantomPinned};
use torch_sys::C_tensor;

/// Code of a region: see `lower`.
pub type Code = unsafe extern "C" fn(slots: *mut *mut (), floats: *mut f64, scalars: *const *mut ()) -> i32;

/// LibTorch's record of one opaque op.
#[repr(C)]
pub struct RawTape {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

unsafe extern "C" {
    pub(crate) fn cotangent_run(code: Code, slots: *mut *mut (), floats: *mut f64, scalars: *const *mut ()) -> i32;
    pub(crate) fn cotangent_replay(
        code: Code,
        slots: *mut *mut (),
        floats: *mut f64,
        scalars: *const *mut (),
        recorded: bool,
    ) -> i32;
    pub(crate) fn cotangent_tape_open(args: i32) -> *mut RawTape;
    pub(crate) fn cotangent_tape_arg(tape: *mut RawTape, x: *mut C_tensor, active: i32) -> *mut C_tensor;
    pub(crate) fn cotangent_tape_close(tape: *mut RawTape, results: *mut *mut C_tensor, count: i32);
    pub(crate) fn cotangent_tape_free(tape: *mut RawTape);
    pub(crate) fn cotangent_tape_vjp(
        tape: *const RawTape,
        cotangents: *const *mut C_tensor,
        results: *mut *mut C_tensor,
        materialize: *const u8,
    ) -> i32;
    pub(crate) fn cotangent_list_take(list: *mut *mut C_tensor, out: *mut *mut C_tensor, count: i32) -> i32;
    pub(crate) fn cotangent_copy(out: *mut *mut C_tensor, to: *mut C_tensor, from: *mut C_tensor);
    pub(crate) fn cotangent_get(out: *mut *mut C_tensor, x: *mut C_tensor, index: i64);
    pub(crate) fn cotangent_shallow_clone(out: *mut *mut C_tensor, x: *mut C_tensor);
    pub(crate) fn cotangent_dense(tensors: *const *mut C_tensor, data: *mut *mut (), written: i32, count: i32) -> i32;
    pub(crate) fn cotangent_differs(x: *const C_tensor, kind: i32, shape: *const i64, rank: i32) -> i32;
    pub(crate) fn cotangent_item(x: *const C_tensor, out: *mut f64) -> i32;
    pub(crate) fn cotangent_bump_version(x: *mut C_tensor);
    pub(crate) fn cotangent_call(code: *const (), words: *const u64, doubles: *const f64) -> *mut ();
    pub(crate) fn cotangent_meta_tensor(shape: *const i64, rank: i32, kind: i32) -> *mut C_tensor;
    pub(crate) fn cotangent_generator_state() -> *mut C_tensor;
    pub(crate) fn cotangent_generator_restore(state: *mut C_tensor);
    pub(crate) fn cotangent_has_grad_fn(x: *const C_tensor) -> i32;
}

/// The functions that compiled code calls besides LibTorch's, by symbol.
pub(crate) fn symbols() -> [(&'static str, *const ()); 14] {
    [
        ("at_free", torch_sys::at_free as *const ()),
        ("ats_float", torch_sys::ats_float as *const ()),
        ("ats_int", torch_sys::ats_int as *const ()),
        ("ats_free", torch_sys::ats_free as *const ()),
        ("cotangent_bump_version", cotangent_bump_version as *const ()),
        ("cotangent_dense", cotangent_dense as *const ()),
        ("cotangent_differs", cotangent_differs as *const ()),
        ("cotangent_item", cotangent_item as *const ()),
        ("cotangent_list_take", cotangent_list_take as *const ()),
        ("cotangent_tape_arg", cotangent_tape_arg as *const ()),
        ("cotangent_tape_close", cotangent_tape_close as *const ()),
        ("cotangent_tape_free", cotangent_tape_free as *const ()),
        ("cotangent_tape_open", cotangent_tape_open as *const ()),
        ("cotangent_tape_vjp", cotangent_tape_vjp as *const ()),
    ]
}
