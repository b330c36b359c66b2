//! Functions of the C and C++ libraries that work on the memory they are given, or on complex numbers: they get a body,
//! written in C or taken from the headers of C++, which is differentiated like any other. What the program itself calls
//! stays the library's.
//!
//! They are inlined: to the analyses of memory all that one function works on is one.

use super::closure;
use crate::llvm::{Function, Linkage, Mod, parse_text};
use std::collections::HashSet;

/// Those that call others come first.
const TEXTS: [&str; 5] = [
    include_str!(concat!(env!("OUT_DIR"), "/string.ll")),
    include_str!(concat!(env!("OUT_DIR"), "/chars.ll")),
    include_str!(concat!(env!("OUT_DIR"), "/complex.ll")),
    include_str!(concat!(env!("OUT_DIR"), "/sort.ll")),
    include_str!(concat!(env!("OUT_DIR"), "/tree.ll")),
];

/// Adds the bodies of the functions that a module declares and that the library has.
///
/// # Errors
/// If LLVM cannot read or link them.
pub(super) fn link(module: Mod<'_>) -> Result<(), String> {
    let asked = |f: &Function<'_>| f.is_declaration() && f.value().users().next().is_some();
    for text in TEXTS {
        // Most programs need none of them, and reading takes longer than looking.
        let declared: Vec<_> = module.functions().filter(asked).collect();
        let names: HashSet<_> = declared.iter().map(|f| f.name()).collect();
        if !defined(text).any(|name| names.contains(name)) {
            continue;
        }
        let own = parse_text(module.context(), text)?;
        let has = |f: Function<'_>| {
            let body = own.module().function(&f.name())?;
            (!body.is_declaration() && body.ty() == f.ty()).then_some(body)
        };
        let wanted: Vec<_> = declared.into_iter().filter_map(has).collect();
        let roots: Vec<_> = wanted.iter().map(|f| f.value()).collect();
        let reached = closure::direct(&roots, &|_| true);
        let part = own.module().copy_of(&reached.definitions);
        let wanted: Vec<_> = wanted.iter().map(|f| f.name()).collect();
        for f in part.module().functions().filter(|f| !f.is_declaration()) {
            f.add_attribute("alwaysinline");
            f.set_linkage(if wanted.contains(&f.name()) {
                Linkage::LLVMExternalLinkage
            } else {
                Linkage::LLVMInternalLinkage
            });
        }
        part.module().adopt_target(module);
        part.link_into(module)?;
        for f in wanted.iter().filter_map(|name| module.function(name)) {
            f.set_linkage(Linkage::LLVMInternalLinkage);
        }
    }
    Ok(())
}

/// The functions that LLVM's text defines.
fn defined(text: &str) -> impl Iterator<Item = &str> {
    let heads = text.lines().filter(|line| line.starts_with("define"));
    heads.filter_map(|line| Some(line.split_once('@')?.1.split_once('(')?.0))
}

#[cfg(test)]
mod tests {
    use crate::llvm::OwnedModule;

    #[test]
    fn declared_functions_get_bodies_and_others_do_not_come_along() {
        let text = "
            declare void @qsort(ptr, i64, i64, ptr)
            declare double @cabs(double, double)
            declare void @other(double)
            define void @f(ptr %p, i64 %n, ptr %c) { call void @qsort(ptr %p, i64 %n, i64 8, ptr %c) ret void }";
        let module = OwnedModule::read(text.as_bytes()).unwrap();
        super::link(module.get()).unwrap();
        module.get().run_passes("globaldce").unwrap();
        module.get().verify().unwrap();
        let bodies = module.get().functions().filter(|f| !f.is_declaration());
        let names: Vec<_> = bodies.map(|f| f.name()).collect();
        assert_eq!(names, ["f", "qsort"]);
    }
}
