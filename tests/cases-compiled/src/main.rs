//! Runs the operator cases of a folder through the compiled path:
//! `cotangent-cases-compiled FOLDER [--tier TIER] [--only TEXT] [--json]`. Fails if a case does.

use anyhow::{Context, Result, bail};
use cotangent_cases_compiled::run_folder;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> Result<ExitCode> {
    let (mut folder, mut tier, mut only, mut json) = (None, None, None, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--tier" => tier = Some(args.next().context("--tier takes a tier: P0, P1, P2, other")?),
            "--only" => only = Some(args.next().context("--only takes a part of a case's name")?),
            "--json" => json = true,
            flag if flag.starts_with('-') => bail!("unknown option `{flag}`"),
            path => folder = Some(PathBuf::from(path)),
        }
    }
    let folder = folder.context("usage: cotangent-cases-compiled FOLDER [--tier TIER] [--only TEXT] [--json]")?;
    tch::set_num_threads(1);
    let summary = run_folder(&folder, tier.as_deref(), only.as_deref())?;
    let report = &summary.report;
    for (id, why) in &report.refusals {
        println!("refused {id}: {why}");
    }
    for (id, why) in &report.failures {
        println!("FAILED {id}: {why}");
    }
    let (failed, refused) = (report.failures.len(), report.refusals.len());
    println!(
        "passed {}, failed {failed}, refused {refused}; own {}, opaque {}, native 0",
        report.passed, summary.own, summary.opaque
    );
    if json {
        println!("{}", summary.json());
    }
    Ok(ExitCode::from(u8::from(failed > 0)))
}
