//! Functions without a body that have a rule, called through a pointer: each gets a body, before the module is analysed.

use super::call_rule;
use crate::llvm::{Builder, Function, Linkage, Mod};

/// Gives bodies to the functions of a module that pointers may call.
pub fn add_bodies(module: Mod<'_>) {
    let called = module
        .functions()
        .filter(|f| f.is_declaration() && f.is_address_taken());
    for f in called.collect::<Vec<_>>() {
        add_body(f);
    }
}

fn name_of(declared: Function<'_>) -> String {
    format!("cotangent.body.{}", declared.name())
}

/// A function with a body that does what `declared` does, if it was given one.
pub fn known_body(declared: Function<'_>) -> Option<Function<'_>> {
    declared.module().function(&name_of(declared))
}

/// One call, if there is a rule for it.
fn add_body(declared: Function<'_>) {
    let module = declared.module();
    if known_body(declared).is_some() || declared.name().starts_with("llvm.") {
        return;
    }
    let name = name_of(declared);
    let f = module.add_function(&name, declared.ty());
    f.set_linkage(Linkage::LLVMInternalLinkage);
    let b = Builder::new(module.context());
    b.at_end(f.append_block("entry"));
    let call = b.call(declared, &f.params());
    b.ret(Some(call).filter(|c| !c.ty().is_void()));
    if call_rule(call).is_none() {
        f.delete();
    }
}
