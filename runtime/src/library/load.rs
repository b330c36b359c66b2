//! Loading a library, and finding code in those that were loaded.

use super::format::{self, Manifest};
use super::{LibraryError, Problem, cpu};
use crate::imports;
use libloading::Library;
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, PoisonError, RwLock};

/// Names a piece of code: a hash of its text.
pub(crate) type Key = String;

/// Addresses of the loaded pieces.
static LOADED: LazyLock<RwLock<HashMap<Key, usize>>> = LazyLock::new(RwLock::default);
static HITS: AtomicU64 = AtomicU64::new(0);

/// Symbol of the slots for the addresses that a library imports.
pub(super) const SLOTS: &str = "cotangent_slots";
/// Symbol of the addresses of a library's pieces.
pub(super) const PIECES: &str = "cotangent_pieces";

/// How many pieces of code were found in loaded libraries, instead of being compiled.
pub(crate) fn hits() -> u64 {
    HITS.load(Ordering::Relaxed)
}

/// The code of that text, if it was loaded.
pub(crate) fn find(text: &str) -> Option<usize> {
    let loaded = LOADED.read().unwrap_or_else(PoisonError::into_inner);
    if loaded.is_empty() {
        return None;
    }
    let address = *loaded.get(&key(text))?;
    HITS.fetch_add(1, Ordering::Relaxed);
    Some(address)
}

/// The key of a piece with that text.
pub(super) fn key(text: &str) -> Key {
    use sha2::{Digest, Sha256};
    Sha256::digest(text)[..16].iter().map(|b| format!("{b:02x}")).collect()
}

/// Loads a library, if `belongs` says of one of its functions that this program has it. Gives the number of its
/// pieces.
pub(crate) fn load(file: &Path, belongs: impl Fn(&str) -> bool) -> Result<usize, LibraryError> {
    open(file, belongs).map_err(|problem| problem.of(file))
}

fn open(file: &Path, belongs: impl Fn(&str) -> bool) -> Result<usize, Problem> {
    let unreadable = |e: &dyn std::fmt::Display| Problem::Unreadable(e.to_string());
    let bytes = std::fs::read(file).map_err(|e| unreadable(&e))?;
    let manifest = format::read(&bytes)?;
    let present = cpu::features();
    let lacking: Vec<&str> = manifest.features.iter().map(String::as_str).collect();
    let lacking: Vec<&str> = lacking
        .into_iter()
        .filter(|f| !present.iter().any(|p| p == f))
        .collect();
    if !lacking.is_empty() {
        return Err(Problem::Processor(lacking.join(", ")));
    }
    let mut functions: Vec<&str> = manifest.pieces.iter().map(|(_, name)| name.as_str()).collect();
    if !functions.iter().any(|f| belongs(f)) {
        functions.sort_unstable();
        functions.dedup();
        return Err(Problem::Program(format!("`{}`", functions.join("`, `"))));
    }
    let addresses = addresses(&manifest)?;
    // A path without a slash would be looked for in the system's folders.
    let file = file.canonicalize().map_err(|e| unreadable(&e))?;
    // SAFETY: by its checksum the library is one that `save` wrote: it has no initialisers.
    let library = unsafe { Library::new(&file) }.map_err(|e| unreadable(&e))?;
    // SAFETY: a library of this format exports an array with a slot for each import, which is ours to fill, and one
    // with an address for each piece. Both live as long as the library, which is never unloaded.
    let pieces: Vec<usize> = unsafe {
        let slots = library.get::<*mut *const ()>(SLOTS).map_err(|e| unreadable(&e))?;
        let mut loaded = LOADED.write().unwrap_or_else(PoisonError::into_inner);
        for (k, address) in addresses.iter().enumerate() {
            slots.add(k).write(*address);
        }
        let pieces = library.get::<*const *const ()>(PIECES).map_err(|e| unreadable(&e))?;
        let pieces = (0..manifest.pieces.len())
            .map(|k| (*pieces.add(k)).expose_provenance())
            .collect::<Vec<_>>();
        let keys = manifest.pieces.iter().map(|(key, _)| key.clone());
        loaded.extend(keys.zip(pieces.iter().copied()));
        pieces
    };
    std::mem::forget(library);
    Ok(pieces.len())
}

/// What the library imports, in its order.
fn addresses(manifest: &Manifest) -> Result<Vec<*const ()>, Problem> {
    let all: HashMap<String, *const ()> = imports::all().collect();
    let address = |name: &String| all.get(name).copied().ok_or_else(|| Problem::Import(name.clone()));
    manifest.imports.iter().map(address).collect()
}
