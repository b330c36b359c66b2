//! The node in LibTorch's graph, from Rust's side.

use super::{Handle, Raw, take_text};
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The C++ node, while its `apply` runs.
#[repr(C)]
pub(crate) struct Node {
    _private: [u8; 0],
}

/// What the node of a compiled function does.
pub(crate) trait Backward: Send + Sync + 'static {
    /// The cotangents of the edges that `needs` asks for, from the seeds of the node's outputs (`None`: undefined).
    /// `node` is there where the results must be differentiable themselves.
    fn apply(
        &self,
        node: Option<&Node>,
        seeds: Vec<Option<Handle>>,
        needs: &[bool],
    ) -> Result<Vec<Option<Handle>>, String>;

    /// What was saved will be freed after the next `apply`, which may use it up.
    fn will_release(&self);

    /// Frees what was saved.
    fn release(&self);
}

#[repr(C)]
struct Callbacks {
    apply:
        unsafe extern "C" fn(*const c_void, *const Node, *const Raw, usize, *const u8, usize, *mut Raw) -> *mut c_char,
    will_release: unsafe extern "C" fn(*const c_void),
    release: unsafe extern "C" fn(*const c_void),
    drop: unsafe extern "C" fn(*const c_void),
}

unsafe extern "C" {
    fn cotangent_attach(
        callbacks: *const Callbacks,
        run: *const c_void,
        name: *const c_char,
        parent: *const Node,
        from: *const Raw,
        from_count: usize,
        outputs: *const Raw,
        output_count: usize,
    ) -> *mut c_char;
}

/// Makes a node for `run` and attaches `outputs` to it. Its edges are those of `parent`, then those of the tensors
/// `from` (null: an edge to nowhere).
///
/// # Safety
/// The handles are valid, and the outputs are tensors that nobody else has seen.
pub(crate) unsafe fn attach<B: Backward>(
    run: Arc<B>,
    name: &CStr,
    parent: Option<&Node>,
    from: &[Raw],
    outputs: &[Raw],
) -> Result<(), String> {
    let parent = parent.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the caller's promise; the node takes over one count of `run`, which `drop_run` gives back.
    let error = unsafe {
        cotangent_attach(
            Table::<B>::CALLBACKS,
            Arc::into_raw(run).cast(),
            name.as_ptr(),
            parent,
            from.as_ptr(),
            from.len(),
            outputs.as_ptr(),
            outputs.len(),
        )
    };
    take_text(error).map_or(Ok(()), Err)
}

struct Table<B>(std::marker::PhantomData<B>);

impl<B: Backward> Table<B> {
    const CALLBACKS: &'static Callbacks = &Callbacks {
        apply: apply::<B>,
        will_release: will_release::<B>,
        release: release::<B>,
        drop: drop_run::<B>,
    };
}

unsafe extern "C" fn apply<B: Backward>(
    run: *const c_void,
    node: *const Node,
    seeds: *const Raw,
    seed_count: usize,
    needs: *const u8,
    need_count: usize,
    out: *mut Raw,
) -> *mut c_char {
    // SAFETY: the node holds a count of the run.
    let run = unsafe { &*run.cast::<B>() };
    let work = || {
        // SAFETY: the node passes one handle per output (null: undefined), which it owns while we run, and one flag
        // per edge.
        let (seeds, needs, node) = unsafe {
            let seeds = std::slice::from_raw_parts(seeds, seed_count);
            let seeds = seeds.iter().map(|s| (!s.is_null()).then(|| Handle::share_raw(*s)));
            let needs = std::slice::from_raw_parts(needs, need_count).iter().map(|n| *n != 0);
            (seeds.collect(), needs.collect::<Vec<bool>>(), node.as_ref())
        };
        run.apply(node, seeds, &needs)
    };
    let result = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err("internal error in the compiled pullback, please report it".into()));
    match result {
        Ok(cotangents) => {
            for (i, handle) in cotangents.into_iter().enumerate() {
                // SAFETY: there is a place for each edge.
                unsafe { *out.add(i) = handle.map_or(std::ptr::null_mut(), Handle::into_raw) };
            }
            std::ptr::null_mut()
        }
        Err(text) => {
            let text = CString::new(text.replace('\0', "")).unwrap_or_default();
            // SAFETY: copies a C string; the node frees the copy.
            unsafe { libc::strdup(text.as_ptr()) }
        }
    }
}

unsafe extern "C" fn will_release<B: Backward>(run: *const c_void) {
    // SAFETY: the node holds a count of the run.
    unsafe { &*run.cast::<B>() }.will_release();
}

unsafe extern "C" fn release<B: Backward>(run: *const c_void) {
    // SAFETY: the node holds a count of the run.
    unsafe { &*run.cast::<B>() }.release();
}

unsafe extern "C" fn drop_run<B: Backward>(run: *const c_void) {
    // SAFETY: the count that `attach` gave to the node.
    drop(unsafe { Arc::from_raw(run.cast::<B>()) });
}
