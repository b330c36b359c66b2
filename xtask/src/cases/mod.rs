//! `cargo xtask cases`: recorded operator cases and tensor programs, from any folder of their formats.
//!
//! `ops` runs the cases in one program, through the graph crate's interpreter and through compiled code. `tensors`
//! makes one test crate of all files, builds it once with `cargo cotangent`, and runs each test in a process of its
//! own, so that a crash or a hang is the failure of one test. Both end with one JSON object if asked for.

mod tensors;

use crate::chores::{cargo, root};
use crate::setup;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;

/// Which cases, and how.
#[derive(Args)]
pub(crate) struct Options {
    /// What kind of cases
    kind: Kind,
    /// Folder of the cases
    #[arg(long, value_name = "FOLDER")]
    from: PathBuf,
    /// Only operator cases of this tier: P0, P1, P2, other
    #[arg(long)]
    tier: Option<String>,
    /// Only cases whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// End with one JSON object on a line
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Recorded calls of LibTorch's functions
    Ops,
    /// Programs over tensors
    Tensors,
}

/// What became of the cases.
#[derive(Default, Serialize)]
struct Report {
    passed: usize,
    failed: usize,
    refused: usize,
    failures: Vec<String>,
    refusals: Vec<(String, String)>,
    /// Cases all of whose regions ran by rules of Cotangent's own.
    own: usize,
    /// Cases with an opaque op in a region.
    opaque: usize,
    /// Cases with a region that LibTorch's tape recorded: there is no such way.
    native: usize,
}

/// Runs the cases.
pub(crate) fn run(options: &Options) -> Result<()> {
    setup::ensure()?;
    match options.kind {
        Kind::Ops => ops(options),
        Kind::Tensors => {
            let report = tensors::run(&options.from, options.only.as_deref())?;
            for (name, why) in &report.refusals {
                println!("refused {name}: {why}");
            }
            println!(
                "passed {}, failed {}, refused {}; own {}, opaque {}, native {}",
                report.passed, report.failed, report.refused, report.own, report.opaque, report.native
            );
            if options.json {
                println!("{}", serde_json::to_string(&report)?);
            }
            if report.failed > 0 {
                bail!("{} of the cases failed: {}", report.failed, report.failures.join(", "));
            }
            Ok(())
        }
    }
}

/// Operator cases: the interpreter first, compiled code last, so that its JSON object ends the output.
fn ops(options: &Options) -> Result<()> {
    let folder = std::path::absolute(&options.from)?;
    let mut shared = vec![folder.into_os_string()];
    for (flag, value) in [("--tier", &options.tier), ("--only", &options.only)] {
        if let Some(value) = value {
            shared.extend([flag.into(), value.into()]);
        }
    }
    let own = |package: &str, rest: &[&str]| {
        let run = ["run", "--quiet", "--package", package]
            .into_iter()
            .chain(rest.iter().copied());
        run.map(Into::into).collect::<Vec<std::ffi::OsString>>()
    };
    println!("interpreter:");
    cargo(own("cotangent-cases", &["--example", "interpret", "--"]), &shared)?;
    println!("compiled:");
    if options.json {
        shared.push("--json".into());
    }
    cargo(own("cotangent-cases-compiled", &["--"]), &shared)
}

/// Where generated crates go.
fn scratch(name: &str) -> PathBuf {
    root().join("target").join("cases").join(name)
}
