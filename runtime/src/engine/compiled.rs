//! Compiled code that outlives the process.

use super::request;
use crate::error::Error;
use crate::library;
use std::path::Path;

/// Writes the machine code of every specialization that is in use (as made for the calls so far, with the backwards
/// that were asked for) into a library for [`load_compiled`]. Gives the number of pieces.
///
/// # Errors
/// If no function was called yet, no linker is found, or the file cannot be written.
#[cfg(feature = "jit")]
pub fn save_compiled(file: impl AsRef<Path>) -> Result<usize, Error> {
    library::save(file.as_ref())
}

/// Loads a library that an earlier run of this program wrote. Calls for which it has the code compile nothing. Gives
/// the number of its pieces.
///
/// # Errors
/// If the file is something else, truncated or damaged, or was made by another program or version of Cotangent or for
/// another processor.
pub fn load_compiled(file: impl AsRef<Path>) -> Result<usize, Error> {
    let keys = request::keys();
    // The backward of `f` is `f'`; an instance of a generic function has its types in angle brackets.
    let path = |name: &str| {
        name.trim_end_matches('\'')
            .split('<')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let belongs = |name: &str| match &keys {
        Some(keys) => keys.iter().any(|key| path(key) == path(name)),
        // Functions that were made by hand are nobody's.
        None => true,
    };
    library::load(file.as_ref(), belongs).map_err(|e| Error::new(e.to_string()))
}

/// How many pieces of code were found in loaded libraries so far, instead of being compiled.
pub fn compiled_hits() -> u64 {
    library::hits()
}
