//! Run-time support of derivatives, as LLVM code that becomes part of the module.

use crate::llvm::{Linkage, Mod, parse_text};

const TEXTS: [&str; 4] = [
    include_str!("arena.ll"),
    include_str!("copy.ll"),
    include_str!("../forward/support.ll"),
    include_str!("table.ll"),
];

/// Adds the support functions to a module, once.
///
/// # Errors
/// If LLVM cannot read or link them.
pub fn link(module: Mod<'_>) -> Result<(), String> {
    if module.function("cotangent.alloc").is_some_and(|f| !f.is_declaration()) {
        return Ok(());
    }
    for text in TEXTS {
        let own = parse_text(module.context(), text)?;
        own.module().adopt_target(module);
        own.link_into(module)?;
    }
    let ours = module
        .functions()
        .filter(|f| f.name().starts_with("cotangent.") && !f.is_declaration());
    for f in ours {
        f.set_linkage(Linkage::LLVMInternalLinkage);
    }
    Ok(())
}
