//! `cargo xtask bench kernels`: gradients of kernels against the kernels themselves.
//!
//! The C++ side: the plugin differentiates `benches/kernels/c` while clang compiles it. The Rust side is a bench of the
//! crate `cotangent`, built with `cargo cotangent`.

use crate::chores::{cotangent_command, root, target};
use crate::plugin;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Command, Stdio};

/// Seconds of each workload's primal, gradient, and gradient by hand.
type Times = BTreeMap<String, [f64; 3]>;

/// Both programs, with `arguments` of their own (`--small`, names of workloads). With `--json` one object goes to the
/// standard output: gradient over primal of each workload, in C++ by its name, in Rust by that with `.rust`.
pub(crate) fn bench(arguments: &[OsString]) -> Result<()> {
    let is_json = |a: &&OsString| *a == "--json";
    let (json, passed): (Vec<_>, Vec<_>) = arguments.iter().partition(is_json);
    let cpp = in_cpp(&passed)?;
    let mut command = cotangent_command();
    command.args(["bench", "--quiet", "--package", "cotangent", "--bench", "kernels", "--"]);
    let rust = run(command.args(&passed).arg("--json"))?;
    eprintln!("Primals in Rust over those in C++:");
    for (name, [primal, ..]) in &rust {
        if let Some([peer, ..]) = cpp.get(name) {
            eprintln!("{name:<8}{:>6.2}", primal / peer);
        }
    }
    if !json.is_empty() {
        let ratio = |[primal, gradient, _]: &[f64; 3]| gradient / primal;
        let own = cpp.iter().map(|(name, times)| (name.clone(), ratio(times)));
        let ours = rust.iter().map(|(name, times)| (format!("{name}.rust"), ratio(times)));
        let all: BTreeMap<_, _> = own.chain(ours).collect();
        println!("{}", serde_json::to_string(&all)?);
    }
    Ok(())
}

/// The program in C++. At a small size, which is for tests, the plugin may be the one that they have.
pub(crate) fn in_cpp(arguments: &[&OsString]) -> Result<Times> {
    let small = arguments.iter().any(|a| *a == "--small");
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
    run(Command::new(program).args(arguments).arg("--json"))
}

fn clang(with: impl FnOnce(&mut Command)) -> Result<()> {
    let mut command = Command::new("clang++-22");
    with(&mut command);
    if !command.status().context("cannot run clang++-22")?.success() {
        bail!("{command:?} failed");
    }
    Ok(())
}

/// What a program measured.
fn run(command: &mut Command) -> Result<Times> {
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed");
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("{command:?} gave no times"))
}
