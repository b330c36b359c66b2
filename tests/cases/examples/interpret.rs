//! Runs the cases of a folder through the reference interpreter: `interpret FOLDER [--tier TIER] [--only TEXT]`. Fails
//! if a case does.

use anyhow::Result;
use clap::Parser;
use cotangent_cases::{Outcome, Report, Selection, interpret};
use std::process::ExitCode;

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    selection: Selection,
}

fn main() -> Result<ExitCode> {
    let mut report = Report::default();
    for case in Options::parse().selection.cases()? {
        let outcome = match interpret(&case) {
            // The interpreter is to have every op that everything else is built on.
            Outcome::Refused(why) if case.tier == "P0" => Outcome::Failed(why),
            outcome => outcome,
        };
        report.add(&case.id, outcome);
    }
    report.print();
    println!("{}", report.counts());
    Ok(ExitCode::from(u8::from(!report.failures.is_empty())))
}
