//! The addresses that compiled code imports.

use super::{Jit, JitError, check};
use crate::kernels;
use crate::torch::shim;
use inkwell::llvm_sys::orc2::lljit::LLVMOrcLLJITMangleAndIntern;
use inkwell::llvm_sys::orc2::*;
use std::ffi::CString;

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

/// Defines every importable symbol in the JIT's main dylib.
pub(super) fn define(jit: &Jit) -> Result<(), JitError> {
    let kernels = kernels::all().map(|(op, address)| (format!("atg_{op}"), address.0));
    let others = shim::symbols().into_iter().chain(LIBM.iter().copied());
    let all = kernels.chain(others.map(|(name, address)| (name.to_owned(), address)));
    let mut pairs: Vec<LLVMOrcCSymbolMapPair> = all
        .map(|(name, address)| {
            let name = CString::new(name).expect("a symbol has no NUL");
            LLVMOrcCSymbolMapPair {
                // SAFETY: the JIT is alive, the name is a C string.
                Name: unsafe { LLVMOrcLLJITMangleAndIntern(jit.0, name.as_ptr()) },
                Sym: LLVMJITEvaluatedSymbol {
                    Address: address as u64,
                    Flags: LLVMJITSymbolFlags {
                        GenericFlags: LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsExported as u8
                            | LLVMJITSymbolGenericFlags::LLVMJITSymbolGenericFlagsCallable as u8,
                        TargetFlags: 0,
                    },
                },
            }
        })
        .collect();
    // SAFETY: the names are interned and handed over; the dylib takes the unit over.
    unsafe {
        let unit = LLVMOrcAbsoluteSymbols(pairs.as_mut_ptr(), pairs.len());
        check("define LibTorch's functions", LLVMOrcJITDylibDefine(jit.dylib(), unit))
    }
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
