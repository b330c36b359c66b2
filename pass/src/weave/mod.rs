//! Kernels of a Rust program: their derivatives, as one native object that becomes part of it.
//!
//! ```text
//! shims of the requests ─▶ assemble    bodies that they reach, from the program's and the standard library's bitcode
//!                       ─▶ entries     what the runtime calls, in terms of what is asked of the engine
//!                       ─▶ kernel      optimise, differentiate, optimise
//!                       ─▶ compile     one object, and the table `cotangent_kernels`
//! ```
//!
//! A function is a kernel if nothing that it reaches calls LibTorch. The object has copies of the functions and
//! constants that derivatives use, for the program is compiled as its profile says, and derivatives are always optimised.
//! State is never copied: statics and thread-locals, the allocator and the panic machinery are the program's own, known
//! by their symbols.

mod assemble;
mod entries;

use crate::kernel::prepare::{INHERITED, inline_wrappers, optimise};
use crate::kernel::{self, Refusal};
use crate::llvm::{Function, Linkage, Mod, OwnedMod};
pub(crate) use assemble::Assembly;
pub(crate) use entries::{KERNEL_MARKER, Kernel};
use std::collections::HashSet;

/// What became of the kernels of a program.
#[derive(Debug, Default)]
pub(crate) struct Woven {
    /// The object to link; none if there are no derivatives.
    pub(crate) object: Option<Vec<u8>>,
    /// Kernels without derivatives: key and reasons.
    pub(crate) refused: Vec<(String, Vec<Refusal>)>,
}

/// The name in the assembled module of a symbol, which may be a module's own.
pub(crate) fn name_of(symbol: &str) -> String {
    match symbol
        .split_once('!')
        .and_then(|(k, name)| Some((k.parse().ok()?, name)))
    {
        Some((k, name)) => assemble::local_name(k, name),
        None => symbol.to_owned(),
    }
}

/// Differentiates kernels whose code was assembled.
///
/// # Errors
/// If something is wrong with the pass itself.
pub(crate) fn weave(assembly: Assembly<'_>, kernels: &[Kernel]) -> Result<Woven, String> {
    let Some(work) = assembly.finish()? else {
        return Ok(Woven::default());
    };
    let module = work.module();
    for kernel in kernels {
        if let Some(shim) = module.function(&kernel.shim) {
            shim.set_linkage(Linkage::LLVMExternalLinkage);
        }
    }
    kernel::marks::read(module);
    kernel::rules::lower_outputs(module);
    inline_wrappers(module);
    module.run_passes(optimise::BEFORE)?;
    module.verify()?;
    let (mut good, mut refused) = (kernels.to_vec(), Vec::new());
    loop {
        let attempt = copy(module);
        match derive(attempt.module(), &good) {
            Ok(()) => {
                let object = if good.is_empty() {
                    None
                } else {
                    Some(finish(&attempt, &good)?)
                };
                return Ok(Woven { object, refused });
            }
            Err(all) => {
                let (bad, rest) = blame(module, good, &all);
                refused.extend(bad);
                good = rest;
            }
        }
    }
}

/// Parts kernels that are refused from the others.
fn blame(module: Mod<'_>, kernels: Vec<Kernel>, all: &[Refusal]) -> (Vec<(String, Vec<Refusal>)>, Vec<Kernel>) {
    let (mut bad, mut good) = (Vec::new(), Vec::new());
    for kernel in kernels {
        let attempt = copy(module);
        match derive(attempt.module(), std::slice::from_ref(&kernel)) {
            Ok(()) => good.push(kernel),
            Err(why) => bad.push((kernel.key, why)),
        }
    }
    if bad.is_empty() {
        // Only together they fail: all of them are declined rather than none.
        bad.extend(good.drain(..).map(|k| (k.key, all.to_vec())));
    }
    (bad, good)
}

fn copy<'m>(module: Mod<'m>) -> OwnedMod<'m> {
    let functions = module.functions().filter(|f| !f.is_declaration()).map(Function::value);
    let globals = module.globals().filter(|g| g.initializer().is_some());
    module.copy_of(&functions.chain(globals).collect::<Vec<_>>())
}

fn derive(module: Mod<'_>, kernels: &[Kernel]) -> Result<(), Vec<Refusal>> {
    let requests = entries::write(module, kernels);
    kernel::differentiate(module, &requests)
}

/// Optimises derivatives and compiles them.
fn finish(work: &OwnedMod<'_>, kernels: &[Kernel]) -> Result<Vec<u8>, String> {
    let module = work.module();
    module.verify()?;
    let shims: HashSet<&str> = kernels.iter().map(|k| k.shim.as_str()).collect();
    let primal = module.functions().find(|f| shims.contains(f.name().as_str()));
    for f in module.functions().filter(|f| !f.is_declaration()) {
        if let Some(primal) = primal {
            f.copy_attributes(primal, &INHERITED);
        }
        if !entries::is_public(&f.name()) {
            f.set_linkage(Linkage::LLVMInternalLinkage);
        }
    }
    module.strip_metadata();
    module.run_passes(optimise::AFTER)?;
    module.run_passes("globaldce")?;
    module.compile()
}
