//! The work module: what the requests reach, apart from the program, made easy to differentiate, and put back.
//!
//! * [`closure`] finds what the functions to differentiate reach.
//! * [`Work::extract`] copies it. The definitions are copies: the program keeps its own.
//! * [`optimise`] simplifies before and after: a derivative of simple code is simple, and what derivatives pass to each
//!   other through memory becomes registers.
//! * [`Work::put_back`] links the derivatives into the program. The copies are declarations by then, so that derivatives
//!   call the program's own functions and read its own globals.

mod addresses;
mod allocators;
mod bounds;
pub(crate) mod closure;
mod library;
mod operators;
pub(crate) mod optimise;
mod x86;

use super::DiffRequest;
use crate::llvm::{Function, Linkage, Mod, OwnedMod, Value};
pub(crate) use addresses::name_variables;
pub(crate) use allocators::inline_wrappers;

/// What code generation and checkers want to know of each function: derivatives are compiled as their primals are.
pub(crate) const INHERITED: [&str; 9] = [
    "target-cpu",
    "target-features",
    "tune-cpu",
    "uwtable",
    "sanitize_address",
    "sanitize_hwaddress",
    "sanitize_memory",
    "sanitize_thread",
    "sanitize_memtag",
];
/// List of functions that look unused; LLVM's own name.
pub(crate) const KEPT_ALIVE: &str = "llvm.compiler.used";

/// A module for the engine to work on.
pub struct Work<'c> {
    owned: OwnedMod<'c>,
    /// Functions and global constants whose definitions are copies of the program's.
    copies: Vec<String>,
}

impl<'c> Work<'c> {
    /// Copies what some functions of a program reach. Globals that have no name get one.
    pub fn extract(program: Mod<'c>, roots: &[Function<'c>]) -> Work<'c> {
        name_all(program);
        let from: Vec<_> = roots.iter().map(|f| f.value()).collect();
        let reached = closure::of(program, &from, &|_| true);
        // In the program: what holds labels are its own tables.
        let bodies = reached.definitions.iter().filter_map(|v| v.as_function());
        bodies.for_each(Function::number_labels);
        let copies: Vec<String> = reached.definitions.iter().map(|v| v.name()).collect();
        let work = Work {
            owned: program.copy_of(&reached.definitions),
            copies,
        };
        let module = work.module();
        for name in &work.copies {
            if let Some(f) = module.function(name) {
                let root = roots.iter().any(|r| r.name() == *name);
                f.set_linkage(if root {
                    Linkage::LLVMExternalLinkage
                } else {
                    Linkage::LLVMInternalLinkage
                });
                // Marks of a compiler that was told not to optimise. `naked` and the like stay.
                f.remove_attribute("optnone");
                f.remove_attribute("noinline");
            } else if let Some(g) = module.global(name) {
                g.set_global_linkage(Linkage::LLVMAvailableExternallyLinkage);
            }
        }
        super::marks::read(module);
        super::rules::lower_outputs(module);
        x86::lower(module);
        bounds::note(module);
        // Nothing in the module calls these yet, or holds their addresses.
        let declared = |f: &Function<'c>| {
            let name = f.name();
            module
                .function(&name)
                .unwrap_or_else(|| module.add_function(&name, f.ty()))
        };
        let pointed: Vec<_> = reached.candidates.iter().map(declared).collect();
        let rules: Vec<_> = module.functions().flat_map(closure::rules_of).collect();
        let candidates: Vec<_> = pointed.into_iter().chain(rules).collect();
        if !candidates.is_empty() {
            module.keep_alive(&candidates);
        }
        work
    }

    /// The module.
    pub fn module(&self) -> Mod<'_> {
        self.owned.module()
    }

    /// Simplifies what is to be differentiated.
    ///
    /// # Errors
    /// If LLVM's verifier finds the result wrong.
    pub fn optimise_primals(&self) -> Result<(), String> {
        library::link(self.module())?;
        self.module().run_passes("inferattrs")?;
        operators::mark(self.module());
        inline_wrappers(self.module());
        optimise::before(self.module())?;
        self.module().verify()
    }

    /// Simplifies the derivatives.
    ///
    /// # Errors
    /// If LLVM's verifier finds the derivatives wrong.
    pub fn optimise_derivatives(&self, requests: &[DiffRequest<'_>]) -> Result<(), String> {
        let module = self.module();
        module.verify()?;
        let first = requests.first().and_then(|r| module.function(&r.function.name()));
        if let Some(primal) = first {
            for f in module.functions() {
                if !f.is_declaration() && !self.copies.contains(&f.name()) {
                    f.copy_attributes(primal, &INHERITED);
                }
            }
        }
        optimise::after(module)
    }

    /// Links the derivatives into the program from which the work module was made. `entries` are the functions that the
    /// program calls.
    ///
    /// # Errors
    /// If LLVM finds the result wrong.
    pub fn put_back(self, program: Mod<'c>, entries: &[&str]) -> Result<(), String> {
        let module = self.module();
        if let Some(list) = module.global(KEPT_ALIVE) {
            list.delete_global();
        }
        for name in &self.copies {
            let global = module
                .function(name)
                .map(Function::value)
                .or_else(|| module.global(name));
            if let Some(global) = global {
                global.delete_body();
            }
        }
        module.strip_metadata();
        let hidden = Exposed::new(program);
        let linked = self.owned.link_into(program);
        hidden.hide();
        linked?;
        for name in entries {
            if let Some(f) = program.function(name).filter(|f| !f.is_declaration()) {
                f.set_linkage(Linkage::LLVMInternalLinkage);
            }
        }
        program.verify()
    }
}

/// How the names of globals begin that have none.
pub(crate) const UNNAMED: &str = "cotangent.unnamed";

/// Names all globals, so that declarations elsewhere can stand for them.
pub(crate) fn name_all(program: Mod<'_>) {
    let functions = program.functions().map(Function::value);
    for v in functions.chain(program.globals()).filter(|v| v.name().is_empty()) {
        v.set_name(UNNAMED);
    }
}

/// The program's own symbols, for a moment visible to another module.
struct Exposed<'m>(Vec<(Value<'m>, Linkage)>);

impl<'m> Exposed<'m> {
    fn new(program: Mod<'m>) -> Self {
        let functions = program.functions().map(Function::value);
        let local = |v: &Value<'m>| {
            matches!(
                v.global_linkage(),
                Linkage::LLVMInternalLinkage | Linkage::LLVMPrivateLinkage
            )
        };
        let locals = functions.chain(program.globals()).filter(local);
        let locals: Vec<_> = locals.map(|v| (v, v.global_linkage())).collect();
        for (v, _) in &locals {
            v.set_global_linkage(Linkage::LLVMExternalLinkage);
        }
        Self(locals)
    }

    fn hide(self) {
        for (v, linkage) in self.0 {
            v.set_global_linkage(linkage);
        }
    }
}
