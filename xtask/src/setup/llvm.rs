//! LLVM 22: the libraries for the pass and the run time, `clang` and `ld.lld` for the link.

use super::apt;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// The variable that names LLVM's folder to the build.
pub(crate) const PREFIX_VARIABLE: &str = "LLVM_SYS_221_PREFIX";
/// Where Debian puts LLVM.
const DEBIAN: &str = "/usr/lib/llvm-22";
/// What the folder must have.
const NEEDED: [&str; 3] = ["bin/llvm-config", "bin/clang", "bin/ld.lld"];

/// Puts LLVM on the system unless the user has one; says where it is.
pub(super) fn set_up() -> Result<PathBuf> {
    let named = std::env::var_os(PREFIX_VARIABLE).map(PathBuf::from);
    if let Some(prefix) = named.filter(|prefix| prefix.is_absolute() && prefix != Path::new(DEBIAN)) {
        if let Some(gone) = missing(&prefix) {
            bail!(
                "{PREFIX_VARIABLE} is {}, which has no {gone}; unset it to use Debian's LLVM",
                prefix.display()
            );
        }
        eprintln!("      {} ({PREFIX_VARIABLE})", prefix.display());
        apt::install(&["g++"])?;
        return Ok(prefix);
    }
    apt::install(&["llvm-22-dev", "clang-22", "lld-22", "g++"])?;
    if let Some(gone) = missing(Path::new(DEBIAN)) {
        bail!("Debian's LLVM packages are installed, but {DEBIAN}/{gone} is missing");
    }
    eprintln!("      {DEBIAN}");
    Ok(DEBIAN.into())
}

fn missing(prefix: &Path) -> Option<&'static str> {
    NEEDED.into_iter().find(|name| !prefix.join(name).is_file())
}
