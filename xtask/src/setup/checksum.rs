//! Checksums of what was downloaded.

use anyhow::{Context, Result, bail};
use indicatif::ProgressBar;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Whether a file has this SHA-256.
pub(super) fn matches(file: &Path, expected: &str) -> Result<bool> {
    let bar = ProgressBar::new_spinner().with_message("checking");
    let mut hasher = Sha256::new();
    let mut source = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut block = vec![0; 1 << 20];
    loop {
        let n = source
            .read(&mut block)
            .with_context(|| format!("cannot read {}", file.display()))?;
        if n == 0 {
            break;
        }
        hasher.update(&block[..n]);
        bar.tick();
    }
    bar.finish_and_clear();
    let found: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(found == expected)
}

/// Removes a file that has not this SHA-256, and says so.
pub(super) fn demand(file: &Path, expected: &str) -> Result<()> {
    if matches(file, expected)? {
        return Ok(());
    }
    std::fs::remove_file(file).with_context(|| format!("cannot remove {}", file.display()))?;
    bail!(
        "{} is damaged (its SHA-256 is not {expected}) and was removed; run the set-up again",
        file.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SHA-256 of `abc`.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_damaged_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "abc").unwrap();
        demand(&file, ABC).unwrap();
        std::fs::write(&file, "abd").unwrap();
        assert!(
            demand(&file, ABC)
                .unwrap_err()
                .to_string()
                .contains("run the set-up again")
        );
        assert!(!file.exists());
    }
}
