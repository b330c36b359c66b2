//! Functions without a body that have a rule, called through a pointer.

use super::call_rule;
use crate::llvm::{Builder, Function, Linkage};

/// A function with a body that does what `declared` does: one call of it. `None` if it has no rule.
pub fn body_of(declared: Function<'_>) -> Option<Function<'_>> {
    let module = declared.module();
    let name = format!("cotangent.body.{}", declared.name());
    if let Some(known) = module.function(&name) {
        return Some(known);
    }
    let f = module.add_function(&name, declared.ty());
    f.set_linkage(Linkage::LLVMInternalLinkage);
    let b = Builder::new(module.context());
    b.at_end(f.append_block("entry"));
    let call = b.call(declared, &f.params());
    b.ret(Some(call).filter(|c| !c.ty().is_void()));
    if call_rule(call).is_none() {
        f.delete();
        return None;
    }
    Some(f)
}
