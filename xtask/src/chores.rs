//! Chores that drive Cargo.

use crate::{kernels, plugin, setup};
use anyhow::{Context, Result, bail};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Trains the MNIST model with compiled pullbacks next to the same model under LibTorch's autograd.
pub(crate) fn demo(arguments: &[OsString]) -> Result<()> {
    setup::ensure()?;
    cotangent(
        ["run", "--release", "--package", "cotangent", "--example", "mnist", "--"],
        arguments,
    )
}

/// All tests: those that need derivatives are built with the pass, the others plainly.
pub(crate) fn test(arguments: &[OsString]) -> Result<()> {
    setup::ensure()?;
    cargo(["test", "--workspace", "--exclude", "cotangent"], arguments)?;
    cotangent(["test", "--package", "cotangent"], arguments)?;
    cotangent(["test", "--package", "cotangent", "--benches"], arguments)?;
    kernels::in_cpp(&[&"--small".into()])?;
    without_jit()?;
    cargo(["xtask", "cases", "tensors", "--from", "tests/tensors"], &[])?;
    let plugin = plugin::tested()?.into_os_string();
    cargo(
        ["xtask", "cases", "kernels", "--from", "tests/kernels"],
        &["--plugin".into(), plugin],
    )
}

/// A program that saves what it compiled, and the same program without a JIT, which loads it.
fn without_jit() -> Result<()> {
    let file = target().join("saved.so").into_os_string();
    let run = ["run", "--package", "cotangent", "--example", "saved", "--"];
    cotangent(run, &["save".into(), file.clone()])?;
    let bare = ["run", "--no-default-features"];
    cotangent(bare.into_iter().chain(run[1..].iter().copied()), &["load".into(), file])
}

/// One bench by name, or all.
pub(crate) fn bench(arguments: &[OsString]) -> Result<()> {
    setup::ensure()?;
    match arguments.split_first() {
        Some((name, rest)) if name == "kernels" => kernels::bench(rest),
        Some((name, rest)) if name == "pass" => {
            cargo(["bench", "--package", "cotangent-pass", "--bench", "pass", "--"], rest)
        }
        Some((name, rest)) if !name.to_string_lossy().starts_with('-') => {
            let named = [
                OsStr::new("bench"),
                "--package".as_ref(),
                "cotangent".as_ref(),
                "--bench".as_ref(),
                name,
            ];
            cotangent(named.into_iter().chain(["--".as_ref()]), rest)
        }
        _ => cotangent(["bench", "--package", "cotangent", "--"], arguments),
    }
}

/// What CI runs.
pub(crate) fn ci() -> Result<()> {
    setup::ensure()?;
    cargo(["fmt", "--all", "--check"], &[])?;
    cargo(
        ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"],
        &[],
    )?;
    test(&[])
}

/// The workspace's folder.
pub(crate) fn root() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    own.parent().map_or(own.clone(), Path::to_owned)
}

/// Cargo's target folder.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Cargo, as it runs this program. It set variables for this program before set-up wrote the settings; passed on, they
/// would hide them.
pub(crate) fn cargo_command() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, value) in std::env::vars_os() {
        if value.to_string_lossy().starts_with(setup::UNSET) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs Cargo.
pub(crate) fn cargo<A: AsRef<OsStr>>(own: impl IntoIterator<Item = A>, passed: &[OsString]) -> Result<()> {
    let mut command = cargo_command();
    command.args(own).args(passed);
    let shown = shown(&command);
    eprintln!("$ {shown}");
    let status = command.status().context("cannot run Cargo")?;
    match status.success() {
        true => Ok(()),
        false => bail!("`{shown}` failed"),
    }
}

/// `cargo cotangent`.
pub(crate) fn cotangent_command() -> Command {
    let mut command = cargo_command();
    command.arg("cotangent");
    command
}

/// Runs `cargo cotangent`.
fn cotangent<A: AsRef<OsStr>>(own: impl IntoIterator<Item = A>, passed: &[OsString]) -> Result<()> {
    let own: Vec<OsString> = own.into_iter().map(|a| a.as_ref().to_owned()).collect();
    cargo(["cotangent".into()].into_iter().chain(own), passed)
}

/// A command as one would type it.
fn shown(command: &Command) -> String {
    let arguments = command.get_args().map(|a| a.to_string_lossy());
    ["cargo".into()]
        .into_iter()
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}
