//! Symbols local to a module, made visible to the rest of the link.

use llvm_sys::bit_reader::LLVMParseBitcodeInContext2;
use llvm_sys::bit_writer::LLVMWriteBitcodeToMemoryBuffer;
use llvm_sys::core as c;
use llvm_sys::{LLVMLinkage, LLVMVisibility};
use std::ffi::CString;

/// The module with each of these globals under its new name, visible to the program's other modules.
///
/// # Errors
/// If the bytes are not bitcode that this LLVM reads, or a global is missing.
pub(crate) fn export(bytes: &[u8], globals: &[(String, String)]) -> Result<Vec<u8>, String> {
    // SAFETY: the context owns the module, and both outlive every reference taken here; buffers are disposed of once.
    unsafe {
        let context = c::LLVMContextCreate();
        let result = in_context(context, bytes, globals);
        c::LLVMContextDispose(context);
        result
    }
}

/// # Safety
/// The context is live.
unsafe fn in_context(
    context: llvm_sys::prelude::LLVMContextRef,
    bytes: &[u8],
    globals: &[(String, String)],
) -> Result<Vec<u8>, String> {
    // SAFETY: the caller's promise; the buffer is a copy that LLVM owns, and names are C strings.
    unsafe {
        let mut module = std::ptr::null_mut();
        let name = c"bitcode".as_ptr();
        let buffer = c::LLVMCreateMemoryBufferWithMemoryRangeCopy(bytes.as_ptr().cast(), bytes.len(), name);
        let failed = LLVMParseBitcodeInContext2(context, buffer, &mut module);
        c::LLVMDisposeMemoryBuffer(buffer);
        if failed != 0 {
            return Err("it is not bitcode that LLVM 22 can read".into());
        }
        for (old, new) in globals {
            let text = CString::new(old.as_str()).map_err(|e| e.to_string())?;
            let global = c::LLVMGetNamedGlobal(module, text.as_ptr());
            if global.is_null() {
                return Err(format!("it does not define `{old}`"));
            }
            c::LLVMSetLinkage(global, LLVMLinkage::LLVMExternalLinkage);
            c::LLVMSetVisibility(global, LLVMVisibility::LLVMHiddenVisibility);
            c::LLVMSetValueName2(global, new.as_ptr().cast(), new.len());
        }
        let out = LLVMWriteBitcodeToMemoryBuffer(module);
        let (start, size) = (c::LLVMGetBufferStart(out), c::LLVMGetBufferSize(out));
        let written = std::slice::from_raw_parts(start.cast::<u8>(), size).to_vec();
        c::LLVMDisposeMemoryBuffer(out);
        c::LLVMDisposeModule(module);
        Ok(written)
    }
}
