//! Functions of the C and C++ libraries that work on the memory they are given, or on complex numbers: they get a body,
//! written in C, which is differentiated like any other. What the program itself calls stays the library's.
//!
//! They are inlined: to the analyses of memory all that one function works on is one.

use crate::llvm::{Linkage, Mod, parse_text};

const TEXTS: [&str; 3] = [
    include_str!(concat!(env!("OUT_DIR"), "/complex.ll")),
    include_str!(concat!(env!("OUT_DIR"), "/sort.ll")),
    include_str!(concat!(env!("OUT_DIR"), "/tree.ll")),
];

/// Adds the bodies of the functions that a module declares and that the library has.
///
/// # Errors
/// If LLVM cannot read or link them.
pub(super) fn link(module: Mod<'_>) -> Result<(), String> {
    for text in TEXTS {
        let own = parse_text(module.context(), text)?;
        let bodies: Vec<_> = own.module().functions().filter(|f| !f.is_declaration()).collect();
        let mut wanted = vec![];
        for f in bodies {
            let asked = module
                .function(&f.name())
                .is_some_and(|g| g.is_declaration() && g.ty() == f.ty() && g.value().users().next().is_some());
            match asked {
                true => wanted.push(f.name()),
                // Only what the others need of it stays.
                false => f.set_linkage(Linkage::LLVMInternalLinkage),
            }
        }
        if wanted.is_empty() {
            continue;
        }
        own.module().adopt_target(module);
        own.link_into(module)?;
        for f in wanted.iter().filter_map(|name| module.function(name)) {
            f.set_linkage(Linkage::LLVMInternalLinkage);
            f.add_attribute("alwaysinline");
        }
    }
    Ok(())
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
