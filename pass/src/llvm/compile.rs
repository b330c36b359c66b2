//! Modules to native objects, for the machine that this runs on.

use super::value::{Mod, message};
use llvm_sys::core as c;
use llvm_sys::target as t;
use llvm_sys::target_machine as m;
use llvm_sys::transforms::pass_builder as p;
use std::sync::LazyLock;

/// Has LLVM a code generator for this machine? Asked once, for it writes its list of targets without a lock.
static HAS_TARGET: LazyLock<bool> = LazyLock::new(|| {
    // SAFETY: no other thread asks at the same time.
    unsafe { t::LLVM_InitializeNativeTarget() == 0 && t::LLVM_InitializeNativeAsmPrinter() == 0 }
});

impl Mod<'_> {
    /// Optimises the module fully and compiles it to an object that can stand anywhere in a program.
    ///
    /// # Errors
    /// If LLVM has no code generator for the module's target, or refuses the module.
    pub fn compile(self) -> Result<Vec<u8>, String> {
        // SAFETY: all that is made here is disposed of here; messages are freed once;
        // strings are C strings.
        unsafe {
            if !*HAS_TARGET {
                return Err("LLVM has no code generator for this machine".into());
            }
            let triple = c::LLVMGetTarget(self.0);
            let (mut target, mut text) = (std::ptr::null_mut(), std::ptr::null_mut());
            if m::LLVMGetTargetFromTriple(triple, &mut target, &mut text) != 0 {
                return Err(message(text));
            }
            let machine = m::LLVMCreateTargetMachine(
                target,
                triple,
                c"".as_ptr(),
                c"".as_ptr(),
                m::LLVMCodeGenOptLevel::LLVMCodeGenLevelAggressive,
                m::LLVMRelocMode::LLVMRelocPIC,
                m::LLVMCodeModel::LLVMCodeModelDefault,
            );
            let options = p::LLVMCreatePassBuilderOptions();
            let error = p::LLVMRunPasses(self.0, c"default<O3>".as_ptr(), machine, options);
            p::LLVMDisposePassBuilderOptions(options);
            if !error.is_null() {
                llvm_sys::error::LLVMConsumeError(error);
            }
            let mut buffer = std::ptr::null_mut();
            let kind = m::LLVMCodeGenFileType::LLVMObjectFile;
            let failed = m::LLVMTargetMachineEmitToMemoryBuffer(machine, self.0, kind, &mut text, &mut buffer);
            m::LLVMDisposeTargetMachine(machine);
            if failed != 0 {
                return Err(message(text));
            }
            let (start, length) = (c::LLVMGetBufferStart(buffer), c::LLVMGetBufferSize(buffer));
            let bytes = std::slice::from_raw_parts(start.cast::<u8>(), length).to_vec();
            c::LLVMDisposeMemoryBuffer(buffer);
            Ok(bytes)
        }
    }
}
