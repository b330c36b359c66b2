//! Marks that functions carry as calls of the runtime: read before anything is inlined, and turned into attributes.
//!
//! A function that `#[inactive]` or `#[op(..)]` marks begins with a call of a marker, directly or through a function that
//! does nothing else. Functions with a mark, or with a derivative of their own, stay out of line: their calls are what the
//! engine replaces.

use super::attributes as a;
use crate::llvm::{Function, Mod, Value};

const INACTIVE_MARKER: &str = "cotangent_inactive";
const OP_MARKER: &str = "cotangent_op";

/// Turns marks into attributes.
pub(crate) fn read(module: Mod<'_>) {
    let marked = [INACTIVE_MARKER, OP_MARKER]
        .into_iter()
        .any(|m| module.function(m).is_some());
    let functions: Vec<_> = module.functions().filter(|f| !f.is_declaration()).collect();
    if marked {
        for f in functions.iter().filter(|f| !is_wrapper(**f)) {
            mark(*f);
        }
    }
    let own = [
        a::INACTIVE,
        a::OP,
        a::LIKE,
        a::FORWARD_RULE,
        a::REVERSE_RULE,
        a::TANGENT_RULE,
    ];
    for f in functions {
        if own.iter().any(|name| f.string_attribute(name).is_some()) {
            f.remove_attribute("alwaysinline");
            f.add_attribute("noinline");
        }
    }
}

fn mark(f: Function<'_>) {
    let calls: Vec<_> = f.instructions().filter(|i| i.is_call()).collect();
    for call in calls {
        let Some(marker) = call.callee().and_then(marker_of) else {
            continue;
        };
        match marker.as_str() {
            INACTIVE_MARKER => f.add_string_attribute(a::INACTIVE, ""),
            _ => {
                if let Some(name) = text(call) {
                    f.add_string_attribute(a::OP, &name);
                }
            }
        }
        if call.is(crate::llvm::Opcode::LLVMCall) {
            call.erase();
        }
    }
}

/// The marker that a call of the function is, by itself or because it does nothing but pass the call on.
fn marker_of(f: Function<'_>) -> Option<String> {
    let is_marker = |name: &str| name == INACTIVE_MARKER || name == OP_MARKER;
    let name = f.name();
    if is_marker(&name) {
        return Some(name);
    }
    is_wrapper(f)
        .then(|| f.instructions().find_map(|i| i.is_call().then(|| i.callee())?))?
        .map(|f| f.name())
}

/// Is the function nothing but a call of a marker?
fn is_wrapper(f: Function<'_>) -> bool {
    let mut calls = f.instructions().filter(|i| i.is_call() && i.intrinsic().is_none());
    let marker = calls.next().and_then(Value::callee).map(|f| f.name());
    let one_block = f.blocks().count() == 1 && f.result().is_void();
    one_block && calls.next().is_none() && marker.is_some_and(|m| m == INACTIVE_MARKER || m == OP_MARKER)
}

/// The text that a call of the marker of an operation names: address and length.
fn text(call: Value<'_>) -> Option<String> {
    let (at, length) = (call.operand(0), call.operand(1));
    let bytes = at.is_global().then(|| at.initializer())??;
    // rustc wraps bytes in a structure.
    let bytes = if bytes.ty().is_struct() {
        bytes.element(0)?
    } else {
        bytes
    };
    let text = bytes.string_value()?;
    let length = usize::try_from(length.zext_value())
        .ok()
        .filter(|_| length.is_const_int())?;
    text.get(..length).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llvm::OwnedModule;

    #[test]
    fn marks_become_attributes_directly_and_through_a_wrapper() {
        let text = "
            @name = private constant <{ [6 x i8] }> <{ [6 x i8] c\"matmul\" }>
            declare void @cotangent_inactive()
            declare void @cotangent_op(ptr, i64)
            define internal void @wrapper() alwaysinline { call void @cotangent_inactive() ret void }
            define double @f(double %x) alwaysinline { call void @wrapper() ret double %x }
            define double @g(double %x) { call void @cotangent_op(ptr @name, i64 6) ret double %x }
            define double @h(double %x) { ret double %x }";
        let module = OwnedModule::read(text.as_bytes()).unwrap();
        read(module.get());
        let function = |name: &str| module.get().function(name).unwrap();
        assert_eq!(function("f").string_attribute(a::INACTIVE), Some(String::new()));
        assert_eq!(function("g").string_attribute(a::OP), Some("matmul".into()));
        assert!(function("f").attribute("noinline").is_some() && function("f").attribute("alwaysinline").is_none());
        assert!(function("h").attribute("noinline").is_none());
        assert!(!function("f").instructions().any(|i| i.is_call()));
    }
}
