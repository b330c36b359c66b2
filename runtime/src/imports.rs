//! What compiled code imports, by symbol: LibTorch's C functions, the shim's, and C's mathematical functions.
//!
//! Compiled code defines no mutable global, no thread-local and no allocator: everything that it shares with the
//! program has its address from here, whatever the program's linker exported.

use crate::kernels;
use crate::torch::shim;

macro_rules! libm {
    ($($f64:ident $f32:ident),*) => {
        /// C's mathematical functions.
        mod c {
            unsafe extern "C" {
                $(pub(super) fn $f64(); pub(super) fn $f32();)*
            }
        }
        const LIBM: &[(&str, *const ())] = &[
            $((stringify!($f64), c::$f64 as *const ()), (stringify!($f32), c::$f32 as *const ()),)*
        ];
    };
}

libm!(
    exp expf, exp2 exp2f, expm1 expm1f, log logf, log2 log2f, log10 log10f, log1p log1pf, sin sinf, cos cosf,
    tan tanf, asin asinf, acos acosf, atan atanf, sinh sinhf, cosh coshf, tanh tanhf, asinh asinhf, acosh acoshf,
    atanh atanhf, cbrt cbrtf, pow powf, atan2 atan2f, hypot hypotf, fmod fmodf
);

/// Every symbol that compiled code may import, with its address.
pub(crate) fn all() -> impl Iterator<Item = (String, *const ())> {
    let kernels = kernels::all().map(|(op, address)| (format!("atg_{op}"), address.0));
    let others = shim::symbols().into_iter().chain(LIBM.iter().copied());
    kernels.chain(others.map(|(name, address)| (name.to_owned(), address)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_libm_function_that_lowering_calls_is_importable() {
        for name in crate::lower::LIBM {
            assert!(super::LIBM.iter().any(|(n, _)| n == name), "{name}");
            assert!(super::LIBM.iter().any(|(n, _)| *n == format!("{name}f")), "{name}f");
        }
    }
}
