//! Kernels of a Rust program: their derivatives, as one native object that becomes part of it.
//!
//! ```text
//! shims of the requests ─▶ assemble    bodies that they reach, from the program's and the standard library's bitcode
//!                       ─▶ entries     what the runtime calls, in terms of what is asked of the engine
//!                       ─▶ derive      each kernel by itself, on all cores: differentiate, optimise, compile
//!                       ─▶ archive     an object per kernel, and one with the table `cotangent_kernels`
//! ```
//!
//! A function is a kernel if nothing that it reaches calls LibTorch. The objects have copies of the functions and
//! constants that derivatives use, for the program is compiled as its profile says, and derivatives are always optimised.
//! State is never copied: statics and thread-locals, the allocator and the panic machinery are the program's own, known
//! by their symbols.

mod assemble;
mod crew;
mod derive;
mod direct;
mod entries;
mod pointed;

use crate::kernel::attributes::TOLD;
use crate::kernel::prepare::{inline_wrappers, optimise};
use crate::kernel::{self, Refusal, Tape};
use crate::llvm::{Context, Linkage, Mod, empty_like};
use ar_archive_writer::{ArchiveKind, DEFAULT_OBJECT_READER, NewArchiveMember, write_archive_to_stream};
pub(crate) use assemble::Assembly;
pub(crate) use direct::plain;
pub(crate) use entries::{KERNEL_MARKER, Kernel, float};
pub(crate) use pointed::may_hold;
use std::collections::BTreeSet;

/// What became of the kernels of a program.
#[derive(Debug, Default)]
pub(crate) struct Woven {
    /// An archive of objects, to be linked whole; none if there are no derivatives.
    pub(crate) archive: Option<Vec<u8>>,
    /// What kernels with derivatives keep between the sweeps, by key.
    pub(crate) tapes: Vec<(String, Vec<Tape>)>,
    /// Kernels without derivatives: key and reasons.
    pub(crate) refused: Vec<(String, Vec<Refusal>)>,
    /// Statics of modules of the program, as `module!symbol`, that the objects use.
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
    prepare(work.module(), kernels)?;
    let derived = crew::each(&work.module().bitcode(), kernels.len(), |module, i| {
        derive::derive(module, kernels, i)
    })?;
    let (mut good, mut objects, mut woven) = (Vec::new(), Vec::new(), Woven::default());
    for (i, (kernel, derived)) in kernels.iter().zip(derived).enumerate() {
        match derived {
            Ok(derived) => {
                good.push((i, kernel));
                objects.push(derived.object);
                woven.tapes.push((kernel.key.clone(), derived.tapes));
                woven.exports.extend(derived.exports);
            }
            Err(why) => woven.refused.push((kernel.key.clone(), why)),
        }
    }
    if !good.is_empty() {
        let context = Context::new();
        let table = empty_like(work.module(), context.handle(), "table");
        entries::table(table.module(), &good);
        objects.push(table.module().compile()?);
        woven.archive = Some(archive(objects)?);
    }
    Ok(woven)
}

/// Brings all code into the form that kernels are differentiated in.
fn prepare(module: Mod<'_>, kernels: &[Kernel]) -> Result<(), String> {
    for kernel in kernels {
        if let Some(shim) = module.function(&kernel.shim) {
            shim.set_linkage(Linkage::LLVMExternalLinkage);
            shim.add_string_attribute(TOLD, "");
        }
        for f in kernel.pointed.iter().filter_map(|name| module.function(name)) {
            f.set_linkage(Linkage::LLVMExternalLinkage);
        }
    }
    // What the user's functions say of their parameters is lost where they are inlined.
    let shims = kernels.iter().filter_map(|k| module.function(&k.shim));
    let apart: Vec<_> = shims
        .filter_map(direct::behind)
        .filter(|f| f.attribute("alwaysinline").is_none())
        .collect();
    for f in &apart {
        f.add_attribute("noinline");
        f.add_string_attribute(TOLD, "");
    }
    let apart: Vec<_> = apart.into_iter().map(|f| f.name()).collect();
    kernel::marks::read(module);
    kernel::rules::lower_outputs(module);
    entries::declare(module, kernels);
    entries::inline(module)?;
    inline_wrappers(module);
    optimise::before(module)?;
    for f in apart.iter().filter_map(|name| module.function(name)) {
        f.remove_attribute("noinline");
    }
    module.verify()
}

/// The objects in one file.
fn archive(objects: Vec<Vec<u8>>) -> Result<Vec<u8>, String> {
    let member = |(i, buf): (usize, Vec<u8>)| NewArchiveMember {
        buf: Box::new(buf),
        object_reader: &DEFAULT_OBJECT_READER,
        member_name: format!("{i}.o"),
        mtime: 0,
        uid: 0,
        gid: 0,
        perms: 0o644,
    };
    let members: Vec<_> = objects.into_iter().enumerate().map(member).collect();
    let mut file = std::io::Cursor::new(Vec::new());
    write_archive_to_stream(&mut file, &members, ArchiveKind::Gnu, false, None)
        .map_err(|e| format!("cannot write an archive: {e}"))?;
    Ok(file.into_inner())
}
