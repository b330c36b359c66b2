//! The table of addresses that the run needs: symbols of the program, most of them local to one of its modules.
//!
//! Such a module is linked in a rewritten form, in which the symbol has a name of its own that the table can refer to.

use super::bitcode::Bitcode;
use crate::llvm::{Export, export};
use cotangent_graph::program::Named;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// The name under which the program's other modules, and derivatives of kernels, know a symbol of module `k`'s own.
pub(crate) fn exported(k: usize, symbol: &str) -> String {
    format!("cotangent_exported_{k}_{symbol}")
}

/// The table and what stands behind it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    /// For each entry the symbol to link it with; `None` where it cannot be had (in the native standard library).
    pub(super) entries: Vec<Option<String>>,
    /// Rewritten modules: number and bitcode.
    modules: Vec<(usize, Vec<u8>)>,
}

impl Addresses {
    /// The table of these symbols, as the artifact lists them.
    pub(super) fn of(symbols: &[Named], bitcode: &Bitcode) -> io::Result<Self> {
        let mut addresses = Self::default();
        let mut exports: BTreeMap<usize, Vec<Export>> = BTreeMap::new();
        for Named { symbol, thread_local } in symbols {
            let local = symbol
                .split_once('!')
                .and_then(|(k, name)| Some((k.parse::<usize>().ok()?, name)));
            let global = local.or(thread_local.map(|k| (k, symbol.as_str())));
            addresses.entries.push(match global {
                None => Some(symbol.clone()),
                Some((k, _)) if bitcode.modules().get(k).is_none_or(|m| m.is_native()) => None,
                Some((k, global)) => {
                    let name = exported(k, global);
                    exports.entry(k).or_default().push(Export {
                        global: global.to_owned(),
                        name: name.clone(),
                        thread_local: thread_local.is_some(),
                    });
                    Some(name)
                }
            });
        }
        for (k, globals) in exports {
            let module = &bitcode.modules()[k];
            let written = export(module.bytes()?, &globals)
                .map_err(|why| io::Error::other(format!("cannot rewrite the bitcode of {}: {why}", module.name())))?;
            addresses.modules.push((k, written));
        }
        Ok(addresses)
    }

    /// Writes the rewritten modules next to `object`, and puts them in the place of the originals. One that is a member
    /// of an archive goes before it, so that the linker has no need of the member.
    pub(super) fn substitute(&self, bitcode: &Bitcode, object: &Path, arguments: &mut Vec<OsString>) -> io::Result<()> {
        for (k, bytes) in &self.modules {
            let module = &bitcode.modules()[*k];
            let file = object.with_extension(format!("{k}.o"));
            std::fs::write(&file, bytes)?;
            let at = arguments
                .iter()
                .position(|a| Path::new(a) == module.file())
                .ok_or_else(|| io::Error::other(format!("{} is not on the linker's command line", module.name())))?;
            match module.is_local() {
                true => arguments[at] = file.into(),
                false => arguments.insert(at, file.into()),
            }
        }
        Ok(())
    }
}
