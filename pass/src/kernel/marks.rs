//! Marks that functions carry as calls of the runtime: read before anything is inlined, and turned into attributes.
//!
//! A function that `#[inactive]` marks begins with a call of a marker, directly or through a function that
//! does nothing else. Functions with a mark, or with a derivative of their own, stay out of line: their calls are what the
//! engine replaces.

use super::attributes as a;
use crate::llvm::{Function, Mod, Value};

const INACTIVE_MARKER: &str = "cotangent_inactive";

/// Turns marks into attributes.
pub(crate) fn read(module: Mod<'_>) {
    let marked = module.function(INACTIVE_MARKER).is_some();
    let functions: Vec<_> = module.functions().filter(|f| !f.is_declaration()).collect();
    if marked {
        for f in functions.iter().filter(|f| !is_wrapper(**f)) {
            mark(*f);
        }
    }
    let own = [a::INACTIVE, a::LIKE, a::FORWARD_RULE, a::REVERSE_RULE, a::TANGENT_RULE];
    for f in functions {
        if own.iter().any(|name| f.string_attribute(name).is_some()) {
            f.remove_attribute("alwaysinline");
            f.add_attribute("noinline");
        }
    }
}

fn mark(f: Function<'_>) {
    let calls: Vec<_> = f.instructions().filter(|i| i.is_call()).collect();
    for call in calls.into_iter().filter(|c| c.callee().is_some_and(is_marker)) {
        f.add_string_attribute(a::INACTIVE, "");
        if call.is(crate::llvm::Opcode::LLVMCall) {
            call.erase();
        }
    }
}

/// Is a call of the function one of the marker, by itself or because it does nothing but pass the call on?
fn is_marker(f: Function<'_>) -> bool {
    f.name() == INACTIVE_MARKER || is_wrapper(f)
}

/// Is the function nothing but a call of a marker?
fn is_wrapper(f: Function<'_>) -> bool {
    let mut calls = f.instructions().filter(|i| i.is_call() && i.intrinsic().is_none());
    let marker = calls.next().and_then(Value::callee).map(|f| f.name());
    let one_block = f.blocks().count() == 1 && f.result().is_void();
    one_block && calls.next().is_none() && marker.is_some_and(|m| m == INACTIVE_MARKER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::OwnedModule;

    #[test]
    fn marks_become_attributes_directly_and_through_a_wrapper() {
        let text = "
            declare void @cotangent_inactive()
            define internal void @wrapper() alwaysinline { call void @cotangent_inactive() ret void }
            define double @f(double %x) alwaysinline { call void @wrapper() ret double %x }
            define double @g(double %x) { call void @cotangent_inactive() ret double %x }
            define double @h(double %x) { ret double %x }";
        let module = OwnedModule::read(text.as_bytes()).unwrap();
        read(module.get());
        let function = |name: &str| module.get().function(name).unwrap();
        assert_eq!(function("f").string_attribute(a::INACTIVE), Some(String::new()));
        assert_eq!(function("g").string_attribute(a::INACTIVE), Some(String::new()));
        assert!(function("f").attribute("noinline").is_some() && function("f").attribute("alwaysinline").is_none());
        assert!(function("h").attribute("noinline").is_none());
        assert!(!function("f").instructions().any(|i| i.is_call()));
    }
}
