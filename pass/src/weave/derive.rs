//! One kernel's derivatives: a module with everything that they use, differentiated, optimised and compiled.

use super::assemble::{LOCAL, RULES, globals, is_defined, local_module};
use super::direct::{self, Direct};
use super::entries::{self, Kernel};
use super::pointed;
use crate::capture::exported;
use crate::kernel::attributes::NATIVE;
use crate::kernel::prepare::{INHERITED, UNNAMED, closure, optimise};
use crate::kernel::{self, DiffRequest, Refusal, Tape};
use crate::llvm::{Function, Linkage, Mod, Value, demangle};
use std::collections::BTreeSet;

/// A kernel's derivatives.
pub(super) struct Derived {
    /// An object with the functions that the table names.
    pub(super) object: Vec<u8>,
    /// What they keep between the sweeps.
    pub(super) tapes: Vec<Tape>,
    /// Statics of modules of the program, as `module!symbol`, that the object uses.
    pub(super) exports: BTreeSet<String>,
}

/// The derivatives of kernel number `i` of a prepared module.
///
/// # Errors
/// If something is wrong with the pass itself.
pub(super) fn derive<'m>(
    module: Mod<'m>,
    kernels: &[Kernel],
    i: usize,
) -> Result<Result<Derived, Vec<Refusal>>, String> {
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
    let behind = shim_of(piece.module(), &kernels[i])
        .and_then(|shim| Some(demangle(&direct::behind(shim.as_function()?)?.name())));
    if let (Some(shim), Some(bits)) = (piece.module().function(&kernels[i].shim), kernels[i].float) {
        entries::write_float(shim, bits);
    }
    let direct = ask_directly(piece.module(), kernels, i, &mut asked);
    let mut requests: Vec<_> = asked.into_iter().filter_map(request).collect();
    requests.extend(direct);
    let mut tapes = match kernel::differentiate_with_tapes(piece.module(), &requests) {
        Ok(tapes) => tapes,
        Err(why) => return Ok(Err(why)),
    };
    drop(requests);
    told_once(&mut tapes, &kernels[i], behind.as_deref());
    let module = piece.module();
    pointed::release(module);
    if let Some(spare) = module.global(SPARE[0]) {
        // The runtime, whose arenas these are, puts chunks there.
        spare.replace_with(module.add_global(SPARE[1], module.context().ptr()));
        spare.delete_global();
    }
    module.verify()?;
    for v in globals(module).filter(|v| is_defined(*v)) {
        match own.contains(&v.name()) {
            true => v.hide(),
            false => v.set_global_linkage(Linkage::LLVMInternalLinkage),
        }
    }
    let primal = module.function(&kernels[i].shim);
    for f in module.functions().filter(|f| !f.is_declaration()) {
        if let Some(primal) = primal {
            f.copy_attributes(primal, &INHERITED);
        }
    }
    module.run_passes("globaldce")?;
    match share(module) {
        Ok(exports) => {
            module.strip_metadata();
            optimise::after(module)?;
            module.run_passes("globaldce")?;
            let object = module.compile()?;
            Ok(Ok(Derived { object, tapes, exports }))
        }
        Err(name) => {
            let what = format!("the use of `{}`, which its crate keeps to itself", demangle(&name));
            let help = "derivatives cannot reach it: make it public, or pass it as an argument";
            Ok(Err(vec![Refusal::of(&kernels[i].shim, what, help)]))
        }
    }
}

/// Where the kernel's function can be differentiated by itself, the request for that takes the place of the one for the
/// shim's gradient. Not in code that asks for derivatives itself.
fn ask_directly<'m>(
    module: Mod<'m>,
    kernels: &[Kernel],
    i: usize,
    asked: &mut Vec<(usize, String, kernel::Mode)>,
) -> Option<DiffRequest<'m>> {
    let at = asked.iter().position(|(_, _, mode)| *mode == kernel::Mode::Combined)?;
    let shim = module.function(&kernels[i].shim)?;
    if asked.iter().any(|(k, ..)| *k != i) {
        return None;
    }
    let direct = Direct::of(shim, &kernels[i])?;
    let gradient = module.function(&asked.remove(at).1)?;
    let entry = format!("{}.direct", gradient.name());
    direct.write(module, gradient, &entry);
    Some(direct.request(entry))
}

/// Names the kernel as its users do, and leaves out what several modes have in common, and the shim beside the function
/// that stands `behind` it.
fn told_once(tapes: &mut Vec<Tape>, kernel: &Kernel, behind: Option<&str>) {
    let shim = demangle(&kernel.shim);
    let own = behind.filter(|name| tapes.iter().any(|t| t.function == *name));
    let all = std::mem::take(tapes);
    for mut tape in all {
        if own.is_some() && tape.function == shim {
            continue;
        }
        if tape.function == own.unwrap_or(&shim) {
            tape.function.clone_from(&kernel.key);
        }
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
fn share(module: Mod<'_>) -> Result<BTreeSet<String>, String> {
    let mut exports = BTreeSet::new();
    let own: Vec<_> = globals(module).filter(|v| !is_defined(*v)).collect();
    for v in own {
        let symbol = v.name();
        let Some(k) = local_module(&symbol) else { continue };
        let name = symbol.rsplit_once(LOCAL).map_or(symbol.as_str(), |(name, _)| name);
        let is_called = |f: Function<'_>| f.string_attribute(NATIVE).is_some() || symbol.contains(RULES);
        let inaccessible = v.as_function().is_some_and(|f| !is_called(f));
        if inaccessible || v.is_thread_local() || name.starts_with(UNNAMED) {
            return Err(name.to_owned());
        }
        exports.insert(format!("{k}!{name}"));
        v.set_name(&exported(k, name));
    }
    Ok(exports)
}

/// The variable that holds the spare chunk of arenas, in the support functions and in the runtime.
const SPARE: [&str; 2] = ["cotangent.spare", "cotangent_spare"];
