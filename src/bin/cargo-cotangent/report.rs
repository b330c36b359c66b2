//! `explain` and `emit`: what the pass made of a function.

use crate::artifacts;
use crate::options::{Emit, Explain, Stage};
use anyhow::Result;
use std::process::ExitCode;

/// Prints a function at a stage.
pub(crate) fn emit(options: &Emit) -> Result<ExitCode> {
    let program = artifacts::find(&options.subject)?;
    let text = match options.stage {
        Stage::Raise => program.to_string(),
    };
    if options.subject.json {
        println!("{}", serde_json::json!({"function": program.key, "text": text}));
    } else {
        print!("{text}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Explains a function.
pub(crate) fn explain(options: &Explain) -> Result<ExitCode> {
    let program = artifacts::find(&options.subject)?;
    println!("{} has {} path(s)", program.key, program.leaves.len());
    Ok(ExitCode::SUCCESS)
}
