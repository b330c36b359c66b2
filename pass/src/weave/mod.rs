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
mod pointed;

use crate::capture::exported;
use crate::kernel::attributes::{NATIVE, TOLD};
use crate::kernel::prepare::{INHERITED, UNNAMED, closure, inline_wrappers, optimise};
use crate::kernel::{self, Refusal, Tape};
use crate::llvm::{Function, Linkage, Mod, OwnedMod, Value, demangle};
pub(crate) use assemble::Assembly;
use assemble::{LOCAL, globals, is_defined, join, local_module};
pub(crate) use entries::{KERNEL_MARKER, Kernel};
pub(crate) use pointed::may_hold;
use std::collections::BTreeSet;

/// What became of the kernels of a program.
#[derive(Debug, Default)]
pub(crate) struct Woven {
    /// The object to link; none if there are no derivatives.
    pub(crate) object: Option<Vec<u8>>,
    /// What kernels with derivatives keep between the sweeps, by key.
    pub(crate) tapes: Vec<(String, Vec<Tape>)>,
    /// Kernels without derivatives: key and reasons.
    pub(crate) refused: Vec<(String, Vec<Refusal>)>,
    /// Statics of modules of the program, as `module!symbol`, that the object uses.
    pub(crate) exports: BTreeSet<String>,
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

/// Differentiates kernels whose code was assembled: each by itself, so that what is known of one, and what is wrong with
/// it, does not depend on others.
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
            shim.add_string_attribute(TOLD, "");
        }
        for f in kernel.pointed.iter().filter_map(|name| module.function(name)) {
            f.set_linkage(Linkage::LLVMExternalLinkage);
        }
    }
    kernel::marks::read(module);
    kernel::rules::lower_outputs(module);
    entries::declare(module, kernels);
    entries::inline(module)?;
    inline_wrappers(module);
    optimise::before(module)?;
    module.verify()?;
    let (mut good, mut pieces, mut refused, mut tapes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut exports = BTreeSet::new();
    for (i, kernel) in kernels.iter().enumerate() {
        match derive(module, kernels, i, &mut exports)? {
            Ok((piece, kept)) => {
                good.push((i, kernel));
                pieces.push(piece);
                tapes.push((kernel.key.clone(), kept));
            }
            Err(why) => refused.push((kernel.key.clone(), why)),
        }
    }
    let object = match join(pieces)? {
        Some(all) => Some(finish(all.module(), &good)?),
        None => None,
    };
    Ok(Woven {
        object,
        tapes,
        refused,
        exports,
    })
}

/// A module with the derivatives of a kernel, and what these keep between the sweeps.
type Piece<'m> = (OwnedMod<'m>, Vec<Tape>);

/// The derivatives of kernel number `i`, in a module with everything that they use.
fn derive<'m>(
    module: Mod<'m>,
    kernels: &[Kernel],
    i: usize,
    exports: &mut BTreeSet<String>,
) -> Result<Result<Piece<'m>, Vec<Refusal>>, String> {
    let own: Vec<String> = entries::names(i, &kernels[i]).into_iter().flatten().collect();
    let entries = own.iter().filter_map(|n| module.function(n)).map(Function::value);
    let pointed = kernels[i]
        .pointed
        .iter()
        .filter_map(|n| module.function(n))
        .map(Function::value);
    let mut roots: Vec<Value<'m>> = entries.chain(pointed).chain(shim_of(module, &kernels[i])).collect();
    // The kernels whose derivatives this one asks for, and what they ask for themselves.
    let mut asked: Vec<(usize, String, kernel::Mode)> =
        entries::asked(i, &kernels[i]).map(|(e, m)| (i, e, m)).collect();
    let reached = loop {
        let reached = closure::direct(&roots, &|_| true);
        let is_mentioned = |entry: &str| reached.names.iter().any(|v| v.name() == entry);
        let every = (0..kernels.len()).flat_map(|k| entries::asked(k, &kernels[k]).map(move |(e, m)| (k, e, m)));
        let known: Vec<&String> = asked.iter().map(|(_, entry, _)| entry).collect();
        let more: Vec<_> = every
            .filter(|(_, e, _)| is_mentioned(e) && !known.contains(&e))
            .collect();
        if more.is_empty() {
            break reached;
        }
        roots.extend(more.iter().flat_map(|(k, ..)| shim_of(module, &kernels[*k])));
        asked.extend(more);
    };
    let piece = module.copy_of(&reached.definitions);
    pointed::mark(piece.module(), &kernels[i].pointed);
    let request = |(k, entry, mode): (usize, String, kernel::Mode)| {
        let shim = piece.module().function(&kernels[k].shim)?;
        Some(entries::request(shim, mode, entry))
    };
    let requests: Vec<_> = asked.into_iter().filter_map(request).collect();
    let mut tapes = match kernel::differentiate_with_tapes(piece.module(), &requests) {
        Ok(tapes) => tapes,
        Err(why) => return Ok(Err(why)),
    };
    drop(requests);
    told_once(&mut tapes, &kernels[i]);
    let module = piece.module();
    pointed::release(module);
    if let Some(spare) = module.global(SPARE[0]) {
        // The runtime, whose arenas these are, puts chunks there.
        spare.replace_with(module.add_global(SPARE[1], module.context().ptr()));
        spare.delete_global();
    }
    module.verify()?;
    for v in globals(module).filter(|v| is_defined(*v) && !own.contains(&v.name())) {
        v.set_global_linkage(Linkage::LLVMInternalLinkage);
    }
    module.run_passes("globaldce")?;
    match share(module, exports) {
        Ok(()) => Ok(Ok((piece, tapes))),
        Err(name) => {
            let what = format!("the use of `{}`, which its crate keeps to itself", demangle(&name));
            let help = "derivatives cannot reach it: make it public, or pass it as an argument";
            Ok(Err(vec![Refusal::of(&kernels[i].shim, what, help)]))
        }
    }
}

/// Names the kernel as its users do, and leaves out what several modes have in common.
fn told_once(tapes: &mut Vec<Tape>, kernel: &Kernel) {
    let shim = demangle(&kernel.shim);
    tapes
        .iter_mut()
        .filter(|t| t.function == shim)
        .for_each(|t| t.function.clone_from(&kernel.key));
    let all = std::mem::take(tapes);
    for tape in all {
        if !tapes.contains(&tape) {
            tapes.push(tape);
        }
    }
}

fn shim_of<'m>(module: Mod<'m>, kernel: &Kernel) -> Option<Value<'m>> {
    module.function(&kernel.shim).map(Function::value)
}

/// Derivatives use the program's own statics, by names under which these are shown to them. The error is the name of one
/// that cannot be shown.
fn share(module: Mod<'_>, exports: &mut BTreeSet<String>) -> Result<(), String> {
    let own: Vec<_> = globals(module).filter(|v| !is_defined(*v)).collect();
    for v in own {
        let symbol = v.name();
        let Some(k) = local_module(&symbol) else { continue };
        let name = symbol.rsplit_once(LOCAL).map_or(symbol.as_str(), |(name, _)| name);
        let inaccessible = v.as_function().is_some_and(|f| f.string_attribute(NATIVE).is_none());
        if inaccessible || v.is_thread_local() || name.starts_with(UNNAMED) {
            return Err(name.to_owned());
        }
        exports.insert(format!("{k}!{name}"));
        v.set_name(&exported(k, name));
    }
    Ok(())
}

/// The variable that holds the spare chunk of arenas, in the support functions and in the runtime.
const SPARE: [&str; 2] = ["cotangent.spare", "cotangent_spare"];

/// Adds the table of kernels, optimises derivatives and compiles them.
fn finish(module: Mod<'_>, kernels: &[(usize, &Kernel)]) -> Result<Vec<u8>, String> {
    entries::table(module, kernels);
    let primal = kernels.first().and_then(|(_, k)| module.function(&k.shim));
    for f in module.functions().filter(|f| !f.is_declaration()) {
        if let Some(primal) = primal {
            f.copy_attributes(primal, &INHERITED);
        }
    }
    for v in globals(module).filter(|v| is_defined(*v) && !entries::is_public(&v.name())) {
        v.set_global_linkage(Linkage::LLVMInternalLinkage);
    }
    module.strip_metadata();
    optimise::after(module)?;
    module.run_passes("globaldce")?;
    module.compile()
}
