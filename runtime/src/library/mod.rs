//! Libraries of compiled code: what one run compiled, for later runs that then need no JIT.
//!
//! Everything before machine code happens in every run. So a piece of code is known by a hash of its lowered text,
//! which says all that the code depends on but the machine: a piece is the right one, or it is not found. What a
//! library says about itself ([`format`]) is checked before it is loaded.

mod cpu;
mod format;
mod load;
#[cfg(feature = "jit")]
mod save;

pub(crate) use load::{find, hits, load};
#[cfg(feature = "jit")]
pub(crate) use save::save;

use crate::lower::Lowered;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Why a library of compiled code cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("`{}` {problem}; {REBUILD}", file.display())]
pub(crate) struct LibraryError {
    /// The library.
    file: PathBuf,
    /// What is wrong with it.
    problem: Problem,
}

const REBUILD: &str = "rebuild it: run the program with the JIT (`cargo cotangent run`) and let it call \
                       `cotangent::save_compiled` on this file";

/// What is wrong with a library of compiled code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Problem {
    /// It cannot be read, or loaded.
    #[error("cannot be loaded: {0}")]
    Unreadable(String),
    /// It is something else.
    #[error("is not a library of compiled code")]
    Foreign,
    /// The end is missing.
    #[error("is truncated")]
    Truncated,
    /// The checksum does not fit.
    #[error("is damaged: its checksum does not fit")]
    Damaged,
    /// Another version of Cotangent made it.
    #[error(
        "was made by version {made} of Cotangent (format {format}), and this program has version {}",
        format::VERSION
    )]
    Version {
        /// The version that made it.
        made: String,
        /// Its number of the format.
        format: u32,
    },
    /// It was made for another processor.
    #[error("was made for a processor with {0}, which this one does not have")]
    Processor(String),
    /// It was made by another program.
    #[error("was made by another program: it has code of {0}, of which this program has nothing")]
    Program(String),
    /// It imports a function that this program does not have.
    #[error("imports `{0}`, which this program does not have")]
    Import(String),
}

impl Problem {
    fn of(self, file: &Path) -> LibraryError {
        LibraryError {
            file: file.to_owned(),
            problem: self,
        }
    }
}

/// The graphs of this process that have machine code.
static USED: Mutex<Vec<Weak<Lowered>>> = Mutex::new(vec![]);

/// Remembers a graph, for as long as it lives.
pub(crate) fn remember(lowered: &Arc<Lowered>) {
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    if used.len() == used.capacity() {
        used.retain(|w| w.strong_count() > 0);
    }
    used.push(Arc::downgrade(lowered));
}
