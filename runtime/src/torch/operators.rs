//! LibTorch's dispatcher: operators that run functions of ours, and calls of operators by name.

use super::{Handle, Raw, take_text};
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An argument or result of an operator, as the shim passes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    /// What it is: see the shim.
    pub(crate) tag: i64,
    pub(crate) integer: i64,
    pub(crate) real: f64,
    pub(crate) tensor: Raw,
    pub(crate) list: *const Raw,
    pub(crate) count: u64,
}

/// `tag` of an absent value.
pub(crate) const ABSENT: i64 = 0;
/// `tag` of a tensor.
pub(crate) const TENSOR: i64 = 1;
/// `tag` of a float.
pub(crate) const REAL: i64 = 3;

impl Value {
    /// An absent value.
    pub(crate) const NONE: Self = Self {
        tag: ABSENT,
        integer: 0,
        real: 0.0,
        tensor: std::ptr::null_mut(),
        list: std::ptr::null(),
        count: 0,
    };
}

/// What an operator does.
pub(crate) trait Operator: Sync + 'static {
    /// Runs it. `recorded` says whether LibTorch is to record gradients. One result per return of the schema, with
    /// handles that the caller owns.
    ///
    /// # Safety
    /// The handles among the arguments are valid.
    unsafe fn call(&self, args: &[Value], recorded: bool) -> Result<Vec<Value>, String>;
}

type Call = unsafe extern "C" fn(*const c_void, *const Value, usize, *mut Value, usize, bool) -> *mut c_char;

unsafe extern "C" {
    fn cotangent_register(
        space: *const c_char,
        name: *const c_char,
        schema: *const c_char,
        function: *const c_void,
        call: Call,
    ) -> *mut c_char;
    fn cotangent_dispatch(
        name: *const c_char,
        args: *const Value,
        count: usize,
        results: *mut Value,
        result_count: usize,
    ) -> *mut c_char;
}

/// Defines an operator for as long as the program runs.
pub(crate) fn register<O: Operator>(
    space: &CStr,
    name: &CStr,
    schema: &CStr,
    operator: &'static O,
) -> Result<(), String> {
    // SAFETY: C strings; the operator and its function live as long as the program.
    let error = unsafe {
        cotangent_register(
            space.as_ptr(),
            name.as_ptr(),
            schema.as_ptr(),
            std::ptr::from_ref(operator).cast(),
            call::<O>,
        )
    };
    take_text(error).map_or(Ok(()), Err)
}

unsafe extern "C" fn call<O: Operator>(
    operator: *const c_void,
    args: *const Value,
    count: usize,
    results: *mut Value,
    result_count: usize,
    recorded: bool,
) -> *mut c_char {
    let work = || {
        let args = match count {
            0 => &[],
            // SAFETY: the shim passes `count` arguments.
            _ => unsafe { std::slice::from_raw_parts(args, count) },
        };
        // SAFETY: the shim passes what `register` was given.
        let operator = unsafe { &*operator.cast::<O>() };
        // SAFETY: the handles are the shim's own.
        unsafe { operator.call(args, recorded) }
    };
    let outcome = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("internal error in a compiled operator, please report it".into()));
    let error = match outcome {
        Ok(values) if values.len() == result_count => {
            // SAFETY: there is a place for each result.
            unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), results, result_count) };
            return std::ptr::null_mut();
        }
        Ok(values) => format!(
            "internal error, please report it: {} results for {result_count}",
            values.len()
        ),
        Err(text) => text,
    };
    let error = CString::new(error.replace('\0', "")).unwrap_or_default();
    // SAFETY: copies a C string; the shim frees the copy.
    unsafe { libc::strdup(error.as_ptr()) }
}

/// Calls an operator that gives tensors by its qualified name (`aten::exp`), through the dispatcher.
///
/// # Safety
/// The handles among the arguments are valid.
pub(crate) unsafe fn dispatch(name: &CStr, args: &[Value], results: usize) -> Result<Vec<Option<Handle>>, String> {
    let mut out = vec![Value::NONE; results];
    // SAFETY: the caller's promise; there is a place for each result.
    let error = unsafe { cotangent_dispatch(name.as_ptr(), args.as_ptr(), args.len(), out.as_mut_ptr(), results) };
    take_text(error).map_or(Ok(()), Err)?;
    // SAFETY: the shim gives handles of their own.
    Ok(out.into_iter().map(|v| unsafe { Handle::own(v.tensor) }).collect())
}
