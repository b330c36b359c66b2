//! `cargo xtask plugin`: the pass as a library that `opt` and `clang` load.

use crate::chores::{cargo_command, root, target};
use crate::setup;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;

/// How the plugin is built.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// As the tests need it anyway: slower at work, sooner there.
    Dev,
    /// As users need it.
    Release,
}

/// Builds the plugin; gives its path.
pub(crate) fn build(profile: Profile) -> Result<PathBuf> {
    let mut command = cargo_command();
    command.args(["build", "--quiet", "--package", "cotangent-plugin"]);
    let folder = match profile {
        Profile::Dev => "debug",
        Profile::Release => {
            command.arg("--release");
            "release"
        }
    };
    command.current_dir(root()).env(setup::PREFIX_VARIABLE, setup::llvm()?);
    if !command.status().context("cannot run Cargo")?.success() {
        bail!("the plugin does not build");
    }
    let library = target().join(folder).join("libcotangent_plugin.so");
    if !library.is_file() {
        bail!("the build left no {}", library.display());
    }
    Ok(library)
}
