//! `cargo xtask cases`: recorded operator cases, tensor programs and kernels, from any folder of their formats.
//!
//! `ops` runs the cases in one program, through the graph crate's interpreter and through compiled code. `tensors`
//! makes one test crate of all files, builds it once with `cargo cotangent`, and runs each test in a process of its
//! own, so that a crash or a hang is the failure of one test. `kernels` does the same for Rust, and compiles and runs C
//! and C++ programs with the plugin. All end with one JSON object if asked for.

mod c;
mod crates;
mod kernels;
mod process;
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
    /// Only cases whose name contains this; of kernels: only those in `c`, or in `rust`
    #[arg(long)]
    only: Option<String>,
    #[command(flatten)]
    kernels: kernels::Ways,
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
    /// Functions over floats in registers and memory, in C, C++ and Rust
    Kernels,
}

/// What became of the cases.
#[derive(Default, Serialize)]
struct Report {
    passed: usize,
    failed: usize,
    refused: usize,
    failures: Vec<String>,
    refusals: Vec<(String, String)>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    regions: Option<Regions>,
}

/// How the regions of tensor programs ran.
#[derive(Default, Serialize)]
struct Regions {
    /// Cases all of whose regions ran by rules of Cotangent's own.
    own: usize,
    /// Cases with an opaque op in a region.
    opaque: usize,
    /// Cases with a region that LibTorch's tape recorded: there is no such way.
    native: usize,
}

/// How one case ended.
enum End {
    Passed,
    Refused(String),
    Failed(String),
}

impl Report {
    /// Counts a case.
    fn add(&mut self, name: &str, end: End) {
        match end {
            End::Passed => self.passed += 1,
            End::Refused(why) => {
                self.refused += 1;
                self.refusals.push((name.to_owned(), why));
            }
            End::Failed(why) => {
                println!("FAILED {name}: {why}");
                self.failed += 1;
                self.failures.push(name.to_owned());
            }
        }
    }
}

/// Runs the cases.
pub(crate) fn run(options: &Options) -> Result<()> {
    let report = match options.kind {
        Kind::Ops => {
            setup::ensure()?;
            return ops(options);
        }
        Kind::Tensors => {
            setup::ensure()?;
            tensors::run(&options.from, options.only.as_deref())?
        }
        Kind::Kernels => kernels::run(&options.from, options.only.as_deref(), &options.kernels)?,
    };
    for (name, why) in &report.refusals {
        println!("refused {name}: {why}");
    }
    print!(
        "passed {}, failed {}, refused {}",
        report.passed, report.failed, report.refused
    );
    match &report.regions {
        Some(r) => println!("; own {}, opaque {}, native {}", r.own, r.opaque, r.native),
        None => println!(),
    }
    if options.json {
        println!("{}", serde_json::to_string(&report)?);
    }
    if report.failed > 0 {
        bail!("{} of the cases failed: {}", report.failed, report.failures.join(", "));
    }
    Ok(())
}

/// Operator cases: the interpreter first, compiled code last, so that its JSON object ends the output. Either fails if
/// one of its cases does.
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
    let interpreted = cargo(own("cotangent-cases", &["--example", "interpret", "--"]), &shared);
    println!("compiled:");
    if options.json {
        shared.push("--json".into());
    }
    cargo(own("cotangent-cases-compiled", &["--"]), &shared).and(interpreted)
}

/// Where generated crates go.
fn scratch(name: &str) -> PathBuf {
    root().join("target").join("cases").join(name)
}
