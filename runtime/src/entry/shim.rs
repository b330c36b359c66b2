//! The boundary between the program's own functions and the engine: arguments by address, the result by address.
//!
//! A shim is an instance of one generic function for the (zero-sized) type of the user's function. So the code that
//! the macros write needs no `unsafe`, and the pass finds an ordinary function that it can evaluate.

use crate::engine::{Function, cotangent_request};
use crate::kernel::{Kernel, Mode, cotangent_kernel};

/// Calls a function: `args[i]` is the address of the i-th argument value, `out` the place of the result. Arguments are
/// moved out of their places.
pub type Shim = unsafe extern "C-unwind" fn(args: *const *const (), out: *mut ());

/// A function that takes the arguments `A` (a tuple) and gives `R`.
pub trait Callable<A, R> {
    /// Calls it.
    ///
    /// # Safety
    /// `args` holds the addresses of values of the types of `A`, in order; they are moved out.
    unsafe fn call(&self, args: *const *const ()) -> R;
}

/// A tuple of arguments.
pub trait Arguments {
    /// Calls `f` with the address of each argument.
    fn addresses<T>(&self, f: impl FnOnce(&[*const ()]) -> T) -> T {
        // SAFETY: the place is one of such a tuple.
        unsafe { Self::places(self, f) }
    }

    /// Calls `f` with the address of each argument in a place for them all.
    ///
    /// # Safety
    /// The place is one of such a tuple, with values or without.
    unsafe fn places<T>(place: *const Self, f: impl FnOnce(&[*const ()]) -> T) -> T;
}

macro_rules! arity {
    ($($name:ident $index:tt),+) => {
        impl<Func: Fn($($name),+) -> R, R, $($name),+> Callable<($($name,)+), R> for Func {
            #[inline]
            unsafe fn call(&self, args: *const *const ()) -> R {
                // SAFETY: each address is that of a value of the parameter's type, which is moved out once.
                unsafe { self($((*args.add($index)).cast::<$name>().read()),+) }
            }
        }
        impl<$($name),+> Arguments for ($($name,)+) {
            #[inline]
            unsafe fn places<T>(place: *const Self, f: impl FnOnce(&[*const ()]) -> T) -> T {
                // SAFETY: the caller's promise.
                unsafe { f(&[$((&raw const (*place).$index).cast()),+]) }
            }
        }
    };
}
macro_rules! arities {
    ([$($done:ident $at:tt),+]) => { arity!($($done $at),+); };
    ([$($done:ident $at:tt),+] $next:ident $index:tt $($rest:tt)*) => {
        arity!($($done $at),+);
        arities!([$($done $at),+, $next $index] $($rest)*);
    };
}
arities!([A0 0] A1 1 A2 2 A3 3 A4 4 A5 5 A6 6 A7 7 A8 8 A9 9 A10 10 A11 11 A12 12 A13 13 A14 14 A15 15 A16 16 A17 17
    A18 18 A19 19 A20 20 A21 21 A22 22 A23 23);

/// The most parameters a differentiable function can have.
pub const MOST_PARAMETERS: usize = 24;

/// A value of the type of a function item, which has no bytes.
///
/// # Safety
/// A value of the type exists.
pub(crate) unsafe fn item<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "a shim is for a function item") };
    // SAFETY: there is such a value, and reading it reads no byte.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

unsafe extern "C-unwind" fn shim<F: Callable<A, R> + Copy, A, R>(args: *const *const (), out: *mut ()) {
    // SAFETY: `shim_of` was given the function.
    let function = unsafe { item::<F>() };
    // SAFETY: the caller passes addresses of the arguments.
    let result = unsafe { function.call(args) };
    // SAFETY: `out` is a place for the result.
    unsafe { out.cast::<R>().write(result) };
}

/// The shim of a function item.
pub const fn shim_of<A, R, F: Callable<A, R> + Copy>(_: F) -> Shim {
    shim::<F, A, R>
}

/// The name of a function item with its generic arguments.
pub fn instance_of<F: Copy>(_: F) -> &'static str {
    std::any::type_name::<F>()
}

/// Asks for the compiled form of a function: the marker that the pass looks for.
#[inline]
pub fn request(description: &'static str, instance: &'static str, shim: Shim) -> &'static Function {
    let function = cotangent_request(
        description.as_ptr(),
        description.len(),
        instance.as_ptr(),
        instance.len(),
        shim,
    );
    // SAFETY: requests live as long as the program.
    unsafe { &*function }
}

/// Asks for a derivative of a function as a kernel: the marker that the pass looks for.
#[inline]
pub fn kernel(description: &'static str, instance: &'static str, shim: Shim, mode: Mode) -> Option<&'static Kernel> {
    let kernel = cotangent_kernel(
        description.as_ptr(),
        description.len(),
        instance.as_ptr(),
        instance.len(),
        shim,
        mode,
    );
    // SAFETY: kernels are constants of the program.
    unsafe { kernel.as_ref() }
}
