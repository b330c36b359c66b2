//! Machine code: from LLVM text to an object file for this machine.

use super::{JitError, error};
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::targets::{CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine};
use std::sync::OnceLock;

/// Prepares LLVM's backend for this machine, once.
pub(super) fn initialize() -> Result<(), JitError> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    DONE.get_or_init(|| Target::initialize_native(&InitializationConfig::default()))
        .clone()
        .map_err(|e| error("find this machine's backend", e))
}

/// What code is compiled for.
pub enum Processor<'a> {
    /// This machine's processor.
    Host,
    /// Any of this machine's kind that has these extensions.
    With(&'a [String]),
}

/// Compiles the text of an LLVM module to an object file.
///
/// # Errors
/// If the text is not a valid module.
pub fn assemble(text: &str, processor: &Processor<'_>) -> Result<Vec<u8>, JitError> {
    initialize()?;
    let context = Context::create();
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "cotangent");
    let module = context
        .create_module_from_ir(buffer)
        .map_err(|e| error("read a lowered graph", e))?;
    module.verify().map_err(|e| error("verify a lowered graph", e))?;
    let triple = TargetMachine::get_default_triple();
    let target = Target::from_triple(&triple).map_err(|e| error("find this machine's backend", e))?;
    let (cpu, features) = match processor {
        Processor::Host => (
            TargetMachine::get_host_cpu_name().to_string(),
            TargetMachine::get_host_cpu_features().to_string(),
        ),
        Processor::With(extensions) => {
            let features: Vec<String> = extensions.iter().map(|f| format!("+{f}")).collect();
            (String::new(), features.join(","))
        }
    };
    let machine = target
        .create_target_machine(
            &triple,
            &cpu,
            &features,
            OptimizationLevel::Default,
            // LibTorch's functions may be further away than a direct call reaches.
            RelocMode::PIC,
            CodeModel::Default,
        )
        .ok_or_else(|| error("find this machine's backend", "no target machine"))?;
    module.set_triple(&triple);
    module.set_data_layout(&machine.get_target_data().get_data_layout());
    let object = machine
        .write_to_memory_buffer(&module, FileType::Object)
        .map_err(|e| error("compile a lowered graph", e))?;
    Ok(object.as_slice().to_vec())
}
