//! The addresses that compiled code imports.

use super::{Jit, JitError, check};
use crate::imports;
use inkwell::llvm_sys::orc2::lljit::LLVMOrcLLJITMangleAndIntern;
use inkwell::llvm_sys::orc2::*;
use std::ffi::CString;

/// Defines every importable symbol in the JIT's main dylib.
pub(super) fn define(jit: &Jit) -> Result<(), JitError> {
    let mut pairs: Vec<LLVMOrcCSymbolMapPair> = imports::all()
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
