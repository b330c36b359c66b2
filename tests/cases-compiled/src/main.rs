//! Runs the operator cases of a folder through the compiled path:
//! `cotangent-cases-compiled FOLDER [--tier TIER] [--only TEXT] [--json]`. Fails if a case does.

use anyhow::Result;
use clap::Parser;
use cotangent_cases::Selection;
use cotangent_cases_compiled::run_cases;
use std::process::ExitCode;

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    selection: Selection,
    /// End with one JSON object on a line
    #[arg(long)]
    json: bool,
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    tch::set_num_threads(1);
    let summary = run_cases(&options.selection.cases()?);
    summary.report.print();
    println!(
        "{}; own {}, opaque {}, native 0",
        summary.report.counts(),
        summary.own,
        summary.opaque
    );
    if options.json {
        println!("{}", summary.json());
    }
    Ok(ExitCode::from(u8::from(!summary.report.failures.is_empty())))
}
