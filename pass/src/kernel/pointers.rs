//! Pointers to functions, as they are at run time.

use super::attributes::NATIVE;
use crate::llvm::{Builder, Function, IntPredicate, Value};

/// Does a pointer lead to a function, or to the program's own of which that is a copy?
pub(super) fn leads_to<'m>(b: &Builder<'m>, pointer: Value<'m>, function: Function<'m>) -> Value<'m> {
    let is = |f: Value<'m>| b.icmp(IntPredicate::LLVMIntEQ, pointer, f);
    let Some(name) = function.string_attribute(NATIVE) else {
        return is(function.value());
    };
    let module = function.module();
    let declare = || {
        let own = module.add_function(&name, function.ty());
        own.add_string_attribute(NATIVE, "");
        own
    };
    let own = module.function(&name).unwrap_or_else(declare);
    b.or(is(function.value()), is(own.value()))
}
