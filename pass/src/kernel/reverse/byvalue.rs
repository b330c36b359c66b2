//! Structures passed by value through memory: the copy that a call makes becomes one of the caller's.
//!
//!     f(byval p)     becomes     t = alloca; memcpy(t, p); f(byval t)
//!
//! So the shadow of the copy is the call's alone, and its cotangents go back to `p` as those of any copy.

use crate::llvm::{Builder, Function, Value};

/// Says of the memory that it is such a copy.
const NAME: &str = "passed";

/// Gives the calls of a function copies of their own of what they pass by value.
pub fn copy_arguments(f: Function<'_>) {
    let calls: Vec<_> = f
        .instructions()
        .filter(|i| i.is_call() && i.intrinsic().is_none())
        .collect();
    for call in calls {
        for k in 0..call.argument_count() {
            copy(f, call, k);
        }
    }
}

fn copy<'m>(f: Function<'m>, call: Value<'m>, k: u32) {
    let argument = call.operand(k);
    let Some(ty) = call
        .argument_type_attribute(k, "byval")
        .filter(|_| !argument.name().starts_with(NAME))
    else {
        return;
    };
    let module = f.module();
    let b = Builder::new(module.context());
    let Some(first) = f.entry().and_then(|e| e.first()) else {
        return;
    };
    b.before(first);
    let own = b.alloca(ty);
    own.set_name(NAME);
    own.set_alignment(16);
    b.set_location(call.location());
    b.before(call);
    b.memcpy(own, argument, module.context().int(64).int(module.size(ty)), 1);
    call.set_operand(k, own);
}
