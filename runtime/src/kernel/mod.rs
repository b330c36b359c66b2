//! Kernels: calls of functions whose derivatives the pass wrote as native code.
//!
//! # What the pass and the runtime agree on
//!
//! **Requests.** The entry points of `f` call [`cotangent_kernel`] with constants: description (JSON), instance,
//! shim of `f`, and one [`Mode`]. The call stands in a function without parameters, one for each instance of `f` and
//! mode, as that of `cotangent_request` does; its key is the description's `name`, or `name<instance>` where the
//! instance is not empty. Which parameters are differentiated says the description (`params[i].wrt`); the argument
//! `args[i]` of the shim is the address of the value of parameter `i`.
//!
//! **Derivatives**, of the shim `fn(args: *const *const (), out: *mut ())`, all `extern "C-unwind"`:
//!
//! ```text
//! aug(args, out, arena) -> frame     the call itself, keeping what the reverse needs
//! rev(frame, arena)                  the reverse: as often as wanted, from any thread, one call at a time
//! grad(args, out, arena)             both in one; the cotangent of the result lies in its shadow beforehand
//! jvp(args, out, arena)              forward mode: tangents lie in the shadows of the arguments, and are left in those
//!                                    of the result and of what the function wrote to
//! ```
//!
//! **Table.** A program that has kernels defines `cotangent_kernels`, an array of [`Kernel`], and
//! `cotangent_kernels_len`, an `i64`. Derivatives that were not asked for are null. Where the request stands in a
//! function that is differentiated itself, the pass replaces the call of `cotangent_kernel` by the address of a constant
//! `Kernel` that it can read, whose `nested` is the address of a constant [`nested::Functions`]: the entry points load the
//! derivative from there and call it, so that after constant folding all that is left is ordinary code, to be
//! differentiated as such. These derivatives take the shadows, too: `grad(args, shadows, out, out_shadow, arena)`.
//!
//! **Memory.** Before the call the runtime lists the memory that the arguments reach, each piece ([`shadow`]) with a
//! zeroed shadow: the array `args` (whose shadow holds the addresses of the shadows of the values), the values, what lies
//! behind them (slices, buffers of vectors with their capacity, boxes, shared values with their counts), and the place
//! `out`. Words of the shadows that belong to pointers hold the address of the pointee's shadow (so aliased shared slices
//! have one shadow each); other words are zero. The shadows of `args` and `out` themselves are found in the arena's
//! table of objects, sorted by address: the one with `start <= p < start + size`. What has no shadow is inactive:
//! parameters that are neither selected nor known to be writable, types that do not implement `Differentiable`, fields
//! marked `#[constant]`. Shadow addresses of `2^62` and above are inactive. Sixteen bytes before the shadow of an allocation
//! (a vector's buffer, a box), in the arena or of the arguments, stands its size.
//!
//! **After `aug`** floats of all shadows are zero. The shadow words of pointers in `out` and behind `&mut` are those of
//! the values there: the runtime follows them from `out` and `args` to the shadows of what the function made (a vector
//! returned, or grown behind `&mut`), and puts seeds there. The reverse takes cotangents out of the shadow of what
//! the function wrote, and leaves those of the arguments in their shadows. Before each `rev`, the runtime restores the
//! shadows of the objects to what they were after `aug`, and writes the seeds; shadows in the arena are the pass's.
//!
//! **Arena.** [`arena::Arena`] is `%arena = { ptr, ptr, ptr, ptr, i64, ptr, ptr, i64 }`: next free byte and end of the newest
//! chunk, newest chunk, objects, their number, a list that only the runtime uses, a block that only the pass uses, and
//! which floats are among the leaves (1 `f64`, 2 `f32`). A chunk comes from `malloc`; its first word
//! is the address of the chunk before it (or null). The runtime frees the chunks, on every way out. Memory that a call of
//! `rev` takes is taken back after it (and zeroed, as far as the chunk stays). An object is `{ ptr start, i64 size,
//! ptr shadow, i64 align }`.
//!
//! **Lost derivatives.** Where an active value is stored to inactive memory, the code calls
//! `cotangent_kernel_lost(message, length)`, which panics; where a pointer is called whose function is not among the code that
//! was differentiated, `cotangent_kernel_underived(function)`, which does so, too.
//!
//! **Rules.** A function with `#[custom_vjp]` calls `cotangent_custom_vjp(rule, args, out)`; `rule` is the address of a
//! constant [`crate::entry::Rule`], whose last field is a [`KernelRule`]. One with `#[custom_jvp]` alone calls
//! `cotangent_custom_jvp(rule, args, out)`; `rule` is the address of a constant [`crate::entry::TangentRule`], whose last
//! field is a `KernelRule`, too. Its three functions are null where there is no such rule:
//!
//! ```text
//! augment(args, args shadow, out, out shadow, arena) -> kept     instead of the call, in aug
//! reverse(kept)                                                  in rev: out's shadow to that of the arguments
//! tangent(args, args shadow, out, out shadow, arena)             instead of the call, in jvp
//! ```
//!
//! `cotangent_inactive()` stands first in a function that has this mark.

mod arena;
mod call;
mod held;
mod lost;
mod nested;
mod rule;
pub(crate) mod shadow;

pub use arena::Arena;
pub(crate) use call::{jvp, value_and_grad, vjp};
pub(crate) use held::Held;
pub use nested::Flat;
pub(crate) use nested::{Nested, is_nested};
pub use rule::{Addresses, KernelRule};

use crate::entry::Shim;
use crate::error::Error;
use crate::torch::facts;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What an entry point needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Mode {
    /// `aug` and `rev`.
    Pullback = 1,
    /// `grad`.
    Gradient = 2,
    /// `jvp`.
    Tangent = 4,
}

/// The forward half of a derivative.
pub type Augment = unsafe extern "C-unwind" fn(args: *const *const (), out: *mut (), arena: *mut Arena) -> *mut ();
/// The reverse half.
pub type Reverse = unsafe extern "C-unwind" fn(frame: *mut (), arena: *mut Arena);
/// A derivative in one.
pub type Whole = unsafe extern "C-unwind" fn(args: *const *const (), out: *mut (), arena: *mut Arena);

/// The derivatives of one function, as the pass lists them.
#[repr(C)]
#[derive(Debug)]
pub struct Kernel {
    key: *const u8,
    key_len: usize,
    aug: Option<Augment>,
    rev: Option<Reverse>,
    grad: Option<Whole>,
    jvp: Option<Whole>,
    /// What stands instead of them where a differentiated function asks. The four are null there.
    nested: Option<&'static nested::Functions>,
}

// SAFETY: the key is a constant of the program.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Derivatives written by hand. They keep to what the pass and the runtime agree on.
    ///
    /// # Safety
    /// The functions are derivatives of the function that the kernel is used for.
    pub const unsafe fn new(
        key: &'static str,
        aug: Option<Augment>,
        rev: Option<Reverse>,
        grad: Option<Whole>,
        jvp: Option<Whole>,
    ) -> Kernel {
        Kernel {
            key: key.as_ptr(),
            key_len: key.len(),
            aug,
            rev,
            grad,
            jvp,
            nested: None,
        }
    }

    /// The path of the function, with its generic arguments.
    pub fn name(&self) -> &str {
        // SAFETY: the pass writes the key of a request, which is text.
        unsafe { std::str::from_utf8_unchecked(std::slice::from_raw_parts(self.key, self.key_len)) }
    }

    #[cold]
    fn missing(&self, what: &str) -> Error {
        let name = self.name();
        Error::new(format!(
            "`{name}` was built without its derivative for `{what}`: rebuild it with `cargo cotangent build`"
        ))
    }

    #[cold]
    fn no_result(&self) -> Error {
        let name = self.name();
        Error::new(format!(
            "`{name}::jvp`: the call gave no result, so that it has no tangent"
        ))
    }
}

/// The derivatives of a function, if it is a kernel. The pass looks for calls of this symbol.
#[inline(never)]
#[unsafe(no_mangle)]
#[allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "only `entry::kernel` calls it; safe, so that macro-made code can be"
)]
pub extern "C-unwind" fn cotangent_kernel(
    description: *const u8,
    description_len: usize,
    instance: *const u8,
    instance_len: usize,
    shim: Shim,
    _mode: Mode,
) -> *const Kernel {
    let Some(kernels) = facts::kernels() else {
        return std::ptr::null();
    };
    let site = Site {
        description: (description as usize, description_len),
        instance: (instance as usize, instance_len),
        shim: shim as usize,
        found: std::ptr::null(),
    };
    let slot = &KNOWN[site.slot()];
    // SAFETY: sites that were put there stay.
    if let Some(known) = unsafe { slot.load(Ordering::Acquire).as_ref() }
        && known.same(&site)
    {
        return known.found;
    }
    // SAFETY: `entry::kernel` passes the parts of two strings.
    let (description, instance) = unsafe {
        (
            std::slice::from_raw_parts(description, description_len),
            std::slice::from_raw_parts(instance, instance_len),
        )
    };
    let description: crate::engine::Description =
        serde_json::from_slice(description).expect("the macro writes the description");
    let key = crate::engine::key(&description.name, &String::from_utf8_lossy(instance));
    let found = kernels.iter().find(|kernel| kernel.name() == key);
    let found = found.map_or(std::ptr::null(), std::ptr::from_ref);
    // The first site of a slot stays there; another one is looked up each time.
    let kept = Box::leak(Box::new(Site { found, ..site }));
    if slot
        .compare_exchange(std::ptr::null_mut(), kept, Ordering::AcqRel, Ordering::Relaxed)
        .is_err()
    {
        // SAFETY: nobody else has seen it.
        drop(unsafe { Box::from_raw(kept) });
    }
    found
}

/// The parts of a request are constants of the program: their addresses tell which one it is.
struct Site {
    description: (usize, usize),
    instance: (usize, usize),
    shim: usize,
    found: *const Kernel,
}

/// The requests that were looked up, each in the slot that its address gives, the first that came there.
static KNOWN: [AtomicPtr<Site>; 1024] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 1024];

impl Site {
    fn slot(&self) -> usize {
        let mixed = (self.shim ^ self.description.0.rotate_left(20)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed >> (usize::BITS - 10)
    }

    fn same(&self, other: &Site) -> bool {
        (self.description, self.instance, self.shim) == (other.description, other.instance, other.shim)
    }
}
