//! Allocation wrappers vanish: code that allocates for others, knowing nothing of what the memory is for.
//!
//! All vectors of a Rust program get their memory from the same few functions, as a C program's objects may from its own
//! `xmalloc`. To the analyses of memory a call that allocates is one object; so such functions are inlined, and every
//! vector has an object of its own.

use crate::llvm::{Function, Mod};
use std::collections::HashSet;

/// How deep wrappers are looked for.
const LEVELS: usize = 4;
/// Larger functions are left alone.
const SIZE: usize = 300;

/// Marks wrappers for inlining.
pub(crate) fn inline_wrappers(module: Mod<'_>) {
    let allocates = |f: Function<'_>| f.attribute("allockind").is_some_and(|kind| kind & 3 != 0);
    let mut inner: HashSet<Function<'_>> = module.functions().filter(|f| allocates(*f)).collect();
    let mut marked: HashSet<Function<'_>> = HashSet::new();
    for _ in 0..LEVELS {
        let calls = |f: Function<'_>| {
            let called = f.instructions().filter(|i| i.is_call()).filter_map(|i| i.callee());
            called.into_iter().any(|g| g != f && inner.contains(&g))
        };
        let bodies = module
            .functions()
            .filter(|f| !f.is_declaration() && !marked.contains(f) && !inner.contains(f));
        let wrappers: HashSet<_> = bodies.filter(|f| calls(*f) && is_agnostic(*f)).collect();
        for f in &wrappers {
            for attribute in ["noinline", "optnone", "cold"] {
                f.remove_attribute(attribute);
            }
            f.add_attribute("alwaysinline");
        }
        marked.extend(&wrappers);
        inner = wrappers;
    }
}

/// Is the function small, and has it to do with no float?
fn is_agnostic(f: Function<'_>) -> bool {
    let float =
        |i: crate::llvm::Value<'_>| i.operands().any(|x| x.ty().scalar().is_float()) || i.ty().scalar().is_float();
    f.instructions().count() <= SIZE && !f.instructions().any(float)
}
