//! Symbols local to a module, made visible to the rest of the link.

use llvm_sys::bit_reader::LLVMParseBitcodeInContext2;
use llvm_sys::bit_writer::LLVMWriteBitcodeToMemoryBuffer;
use llvm_sys::core as c;
use llvm_sys::prelude::{LLVMModuleRef, LLVMValueRef};
use llvm_sys::{LLVMLinkage, LLVMVisibility};
use std::ffi::CString;

/// A global to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Export {
    /// Its name in the module.
    pub(crate) global: String,
    /// The name that the program's other modules know.
    pub(crate) name: String,
    /// That name is not the global's, but a function's that gives the address of the calling thread's copy.
    pub(crate) thread_local: bool,
}

/// The module with each of these globals visible to the program's other modules.
///
/// # Errors
/// If the bytes are not bitcode that this LLVM reads, or a global is missing.
pub(crate) fn export(bytes: &[u8], exports: &[Export]) -> Result<Vec<u8>, String> {
    // SAFETY: the context owns the module, and both outlive every reference taken here; buffers are disposed of once.
    unsafe {
        let context = c::LLVMContextCreate();
        let result = in_context(context, bytes, exports);
        c::LLVMContextDispose(context);
        result
    }
}

/// # Safety
/// The context is live.
unsafe fn in_context(
    context: llvm_sys::prelude::LLVMContextRef,
    bytes: &[u8],
    exports: &[Export],
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
        for export in exports {
            let text = CString::new(export.global.as_str()).map_err(|e| e.to_string())?;
            let mut global = c::LLVMGetNamedGlobal(module, text.as_ptr());
            if global.is_null() {
                global = c::LLVMGetNamedFunction(module, text.as_ptr());
            }
            if global.is_null() {
                return Err(format!("it does not define `{}`", export.global));
            }
            let shown = match export.thread_local {
                true => address_of_thread(module, global),
                false => global,
            };
            c::LLVMSetLinkage(shown, LLVMLinkage::LLVMExternalLinkage);
            c::LLVMSetVisibility(shown, LLVMVisibility::LLVMHiddenVisibility);
            c::LLVMSetValueName2(shown, export.name.as_ptr().cast(), export.name.len());
        }
        let written = written(module);
        c::LLVMDisposeModule(module);
        Ok(written)
    }
}

/// A module as bitcode.
///
/// # Safety
/// The module is live.
pub(super) unsafe fn written(module: LLVMModuleRef) -> Vec<u8> {
    // SAFETY: the caller's promise; the buffer is copied before it is disposed of.
    unsafe {
        let out = LLVMWriteBitcodeToMemoryBuffer(module);
        let (start, size) = (c::LLVMGetBufferStart(out), c::LLVMGetBufferSize(out));
        let written = std::slice::from_raw_parts(start.cast::<u8>(), size).to_vec();
        c::LLVMDisposeMemoryBuffer(out);
        written
    }
}

/// A function that gives the address of the calling thread's copy of a thread-local.
///
/// # Safety
/// `global` is a thread-local of the module, which is live.
unsafe fn address_of_thread(module: LLVMModuleRef, global: LLVMValueRef) -> LLVMValueRef {
    // SAFETY: the caller's promise; the builder is disposed of once, and every reference belongs to the module.
    unsafe {
        let context = c::LLVMGetModuleContext(module);
        let mut pointer = c::LLVMPointerTypeInContext(context, 0);
        let name = "llvm.threadlocal.address";
        let id = c::LLVMLookupIntrinsicID(name.as_ptr().cast(), name.len());
        let intrinsic = c::LLVMGetIntrinsicDeclaration(module, id, &mut pointer, 1);
        let mut parameter = pointer;
        let of_intrinsic = c::LLVMFunctionType(pointer, &mut parameter, 1, 0);
        let of_function = c::LLVMFunctionType(pointer, std::ptr::null_mut(), 0, 0);
        let function = c::LLVMAddFunction(module, c"address".as_ptr(), of_function);
        let builder = c::LLVMCreateBuilderInContext(context);
        c::LLVMPositionBuilderAtEnd(
            builder,
            c::LLVMAppendBasicBlockInContext(context, function, c"".as_ptr()),
        );
        let mut argument = global;
        let address = c::LLVMBuildCall2(builder, of_intrinsic, intrinsic, &mut argument, 1, c"".as_ptr());
        c::LLVMBuildRet(builder, address);
        c::LLVMDisposeBuilder(builder);
        function
    }
}
