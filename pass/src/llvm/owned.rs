//! A module with a context of its own, read from LLVM's text form or from bitcode.

use super::value::{Mod, message};
use llvm_sys::core as c;
use llvm_sys::ir_reader::LLVMParseIRInContext2;
use llvm_sys::prelude::*;
use std::marker::PhantomData;

/// A module and its context; both are freed with it.
#[derive(Debug)]
pub struct OwnedModule {
    context: LLVMContextRef,
    module: LLVMModuleRef,
}

impl OwnedModule {
    /// Reads a module: text or bitcode.
    ///
    /// # Errors
    /// LLVM's words if it does not read.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        // SAFETY: the buffer is a copy that is disposed of after parsing; the message is set where parsing fails, and
        // freed once.
        unsafe {
            let context = c::LLVMContextCreate();
            let name = c"module".as_ptr();
            let buffer = c::LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.as_ptr().cast(), bytes.len(), name);
            let (mut module, mut text) = (std::ptr::null_mut(), std::ptr::null_mut());
            let failed = LLVMParseIRInContext2(context, buffer, &mut module, &mut text) != 0;
            c::LLVMDisposeMemoryBuffer(buffer);
            if failed {
                let text = message(text);
                c::LLVMContextDispose(context);
                return Err(text);
            }
            Ok(Self { context, module })
        }
    }

    /// The module.
    pub fn get(&self) -> Mod<'_> {
        Mod(self.module, PhantomData)
    }
}

impl Drop for OwnedModule {
    fn drop(&mut self) {
        // SAFETY: made by `read`; handles borrow from `self` and so are gone; the module goes before its context.
        unsafe {
            c::LLVMDisposeModule(self.module);
            c::LLVMContextDispose(self.context);
        }
    }
}
