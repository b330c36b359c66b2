//! Set-up: everything that the workspace needs beside Rust, put where it outlives the workspace.
//!
//! Each step looks first whether its work is done, so that running again does nothing, and running again after an
//! interruption goes on where it stopped. Downloads go through the registries' own clients, which know the user's
//! mirrors, proxies and certificates, and are held against checksums.

mod apt;
mod checksum;
mod libtorch;
mod llvm;
mod local;
mod mnist;
mod unpack;

use anyhow::{Context, Result};
use std::path::PathBuf;

pub(crate) use llvm::PREFIX_VARIABLE;

/// How the variables begin that `.cargo/unset.toml` sets in the place of a set-up.
pub(crate) const UNSET: &str = "(not set up:";

/// Runs all steps.
pub(crate) fn run() -> Result<()> {
    let cache = cache()?;
    let llvm = step(1, "LLVM 22 and a C++ compiler", llvm::set_up)?;
    let torch = step(2, "LibTorch 2.13", || libtorch::set_up(&cache))?;
    step(3, "MNIST", || mnist::set_up(&cache))?;
    step(4, "Cargo's settings", || local::write(&local::Settings { llvm, torch }))?;
    eprintln!("ready: `cargo build`, `cargo test`, `cargo cotangent build`, `cargo xtask demo`");
    Ok(())
}

/// Runs the set-up unless it was completed before.
pub(crate) fn ensure() -> Result<()> {
    match local::is_complete() && mnist::present(&cache()?).is_some() {
        true => Ok(()),
        false => run(),
    }
}

/// A text file of the wheel that LibTorch comes from.
pub(crate) fn torch_file(name: &str) -> Result<String> {
    libtorch::file(name, &cache()?.join("downloads"))
}

/// LLVM's folder; LLVM is installed if it is missing. What works on C alone needs no LibTorch.
pub(crate) fn llvm() -> Result<PathBuf> {
    local::llvm().map_or_else(llvm::set_up, Ok)
}

fn step<T>(number: usize, what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("[{number}/4] {what}");
    work().with_context(|| format!("set-up of {what}"))
}

/// The folder of this user for what is downloaded.
fn cache() -> Result<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute());
    let base = base.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    Ok(base
        .context("this user has no home folder; set XDG_CACHE_HOME")?
        .join("cotangent"))
}
