//! The boundary to LLVM: the entry point, and the call for each module.

use cotangent_pass::plugin::{self, RawModule};

/// LLVM's `PassPluginLibraryInfo`: a version, two strings, two functions.
#[repr(C)]
#[derive(Default)]
pub struct PluginInfo([usize; 5]);

unsafe extern "C" {
    fn cotangent_plugin_info(info: *mut PluginInfo);
}

/// What LLVM calls when it loads the library.
// SAFETY: no other symbol of the process has this name: LLVM looks it up in this library alone.
#[unsafe(no_mangle)]
pub extern "C" fn llvmGetPassPluginInfo() -> PluginInfo {
    let mut info = PluginInfo::default();
    // SAFETY: the C++ side writes one such struct, whose size it checks when it is compiled.
    unsafe { cotangent_plugin_info(&mut info) };
    info
}

/// Differentiates what a module asks for; says whether the module changed. Errors are reported through the module's
/// context.
///
/// # Safety
/// `module` is a live module that nobody else uses during the call.
// SAFETY: the name is this project's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cotangent_plugin_run(module: RawModule) -> bool {
    // SAFETY: the caller passes a live module, and leaves it alone during the call.
    unsafe { plugin::run(module) }
}
