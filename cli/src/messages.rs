//! Cargo's messages, shown as Cargo would show them, except that a refusal takes the place of rustc's words about the
//! linker.

use crate::LINKER_NAME;
use anyhow::{Context, Result};
use cotangent_pass::capture::{Failure, State};
use serde_json::Value;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// How a build ended.
pub(crate) struct Outcome {
    /// Cargo's status.
    pub(crate) status: ExitStatus,
    /// The programs that the build was for, linked now or before.
    pub(crate) executables: Vec<PathBuf>,
}

/// Runs Cargo, and shows its messages.
pub(crate) fn follow(command: &mut Command, state: &State, root: &Path, styled: bool) -> Result<Outcome> {
    let mut cargo = command.stdout(Stdio::piped()).spawn().context("cannot run Cargo")?;
    let stdout = cargo.stdout.take().context("Cargo has no output")?;
    let mut executables = Vec::new();
    for line in std::io::BufReader::new(stdout).lines() {
        let line = line.context("cannot read Cargo's messages")?;
        match serde_json::from_str::<Value>(&line) {
            Ok(message) => {
                if is_linker_failure(&message) && show_failures(state, root, styled)? {
                    continue;
                }
                if let Some(text) = message["message"]["rendered"].as_str() {
                    eprint!("{text}");
                }
                executables.extend(message["executable"].as_str().map(PathBuf::from));
            }
            // Not a message: a build without messages is Cargo's own text.
            Err(_) => writeln!(std::io::stdout(), "{line}").context("cannot write")?,
        }
    }
    let status = cargo.wait().context("cannot wait for Cargo")?;
    show_failures(state, root, styled)?;
    Ok(Outcome { status, executables })
}

/// Whether a message is rustc's about our linker.
fn is_linker_failure(message: &Value) -> bool {
    let text = message["message"]["message"].as_str().unwrap_or_default();
    text.starts_with("linking with `") && text.contains(LINKER_NAME)
}

/// Shows the failures that the linker left; says whether there were any.
pub(crate) fn show_failures(state: &State, root: &Path, styled: bool) -> Result<bool> {
    let failures = Failure::take(&state.failures()).context("cannot read what the linker left")?;
    for failure in &failures {
        eprintln!("{}\n", failure.render(root, styled));
    }
    Ok(!failures.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_about_our_linker_are_replaced() {
        let message = |text: &str| serde_json::json!({"reason": "compiler-message", "message": {"message": text}});
        assert!(is_linker_failure(&message(
            "linking with `cotangent-linker` failed: exit status: 1"
        )));
        assert!(!is_linker_failure(&message("linking with `cc` failed: exit status: 1")));
        assert!(!is_linker_failure(&serde_json::json!({"reason": "build-finished"})));
    }
}
