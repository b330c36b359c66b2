//! `cargo xtask plugin`: the pass as a library that `opt` and `clang` load.

use crate::chores::{cargo_command, root, target};
use crate::setup;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// Builds the plugin as users need it; gives its path.
pub(crate) fn build() -> Result<PathBuf> {
    let mut command = cargo_command();
    command.args(["build", "--quiet", "--release", "--package", "cotangent-plugin"]);
    command.current_dir(root()).env(setup::PREFIX_VARIABLE, setup::llvm()?);
    if !command.status().context("cannot run Cargo")?.success() {
        bail!("the plugin does not build");
    }
    present(target().join("release"))
}

/// The plugin that the workspace's tests were built with: slower at work, sooner there.
pub(crate) fn tested() -> Result<PathBuf> {
    present(target().join("debug/deps"))
}

fn present(folder: PathBuf) -> Result<PathBuf> {
    let library = folder.join("libcotangent_plugin.so");
    if !library.is_file() {
        bail!("there is no {}", library.display());
    }
    Ok(library)
}
