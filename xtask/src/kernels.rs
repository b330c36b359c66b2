//! `cargo xtask bench kernels`: gradients of kernels against the kernels themselves.
//!
//! The C++ side: the plugin differentiates `benches/kernels/c` while clang compiles it.

use crate::chores::{root, target};
use crate::plugin;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// The program in C++, with `arguments` of its own (`--small`, `--json`, names of workloads). At a small size,
/// which is for tests, the plugin may be the one that they have.
pub(crate) fn bench(arguments: &[OsString]) -> Result<()> {
    let small = arguments.iter().any(|a| a == "--small");
    let plugin = match plugin::tested() {
        Ok(tested) if small => tested,
        _ => plugin::build()?,
    };
    let (sources, out) = (root().join("benches/kernels/c"), target().join("kernels"));
    std::fs::create_dir_all(&out)?;
    let mut objects = vec![];
    for entry in std::fs::read_dir(&sources).with_context(|| format!("cannot read {}", sources.display()))? {
        let source = entry?.path();
        if source.extension().is_none_or(|e| e != "cc") {
            continue;
        }
        let object = out.join(source.file_name().unwrap_or_default()).with_extension("o");
        clang(|c| {
            c.args(["-O3", "-std=c++17", "-c"]).arg(&source).arg("-o").arg(&object);
            c.arg(format!("-fpass-plugin={}", plugin.display()));
            // A cache of compilations would not see that the plugin has changed.
            c.env("CCACHE_DISABLE", "1");
        })?;
        objects.push(object);
    }
    let program = out.join("kernels");
    clang(|c| _ = c.args(&objects).arg("-o").arg(&program))?;
    run(&program, arguments)
}

fn clang(with: impl FnOnce(&mut Command)) -> Result<()> {
    let mut command = Command::new("clang++-22");
    with(&mut command);
    if !command.status().context("cannot run clang++-22")?.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}

fn run(program: &Path, arguments: &[OsString]) -> Result<()> {
    let status = Command::new(program).args(arguments).status();
    match status
        .with_context(|| format!("cannot run {}", program.display()))?
        .success()
    {
        true => Ok(()),
        false => bail!("the bench failed"),
    }
}
