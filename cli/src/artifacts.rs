//! Finding artifacts and the programs in them.

use crate::build::Project;
use crate::options::Subject;
use anyhow::{Context, Result, bail};
use cotangent_graph::artifact;
use cotangent_graph::kernel::KernelNote;
use cotangent_graph::program::{Artifact, Program};
use cotangent_pass::capture::{self, LinkRecord, State};
use serde::Deserialize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What an artifact has of a function.
pub(crate) enum Found {
    /// A function of tensors.
    Program(Box<Program>),
    /// A kernel.
    Kernel(KernelNote),
}

/// A function, from the artifact that is named or else from the latest build that has the function.
pub(crate) fn find(subject: &Subject) -> Result<Found> {
    let mut seen = Vec::new();
    for file in files(subject)? {
        let artifact = read(&file)?;
        for program in artifact.programs {
            if names(&program.key, &subject.function) {
                return Ok(Found::Program(Box::new(program)));
            }
            seen.push(program.key);
        }
        for kernel in artifact.kernels {
            if names(&kernel.key, &subject.function) {
                return Ok(Found::Kernel(kernel));
            }
            seen.push(kernel.key);
        }
    }
    seen.sort();
    seen.dedup();
    let function = &subject.function;
    if seen.is_empty() {
        bail!("no differentiable function was built yet; run `cargo cotangent build`, then ask for `{function}` again");
    }
    bail!(
        "no function `{function}` in the last build; there are:\n  {}",
        seen.join("\n  ")
    )
}

/// What a function was last called with, if the last run called it: inputs, as `--input` takes them.
pub(crate) fn last_call(key: &str) -> Result<Option<Vec<String>>> {
    /// A line of the file.
    #[derive(Deserialize)]
    struct Call {
        function: String,
        inputs: Vec<String>,
    }
    let calls = std::fs::read_to_string(Project::find(None, None)?.state().calls()).unwrap_or_default();
    // A run that was killed may leave half a line.
    let calls = calls.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
    Ok(calls
        .into_iter()
        .find_map(|c: Call| (c.function == key).then_some(c.inputs)))
}

/// Artifacts to look in, the latest first.
fn files(subject: &Subject) -> Result<Vec<PathBuf>> {
    if let Some(file) = &subject.artifact {
        return Ok(vec![file.clone()]);
    }
    let state = Project::find(None, None)?.state();
    let records = state.records().context("cannot read the record of links")?;
    Ok(records
        .iter()
        .map(|r| state.artifact(&r.output))
        .filter(|file| file.is_file())
        .collect())
}

/// An artifact: a plain one, or one inside a shared object or program.
fn read(file: &Path) -> Result<Artifact> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let plain = capture::extract(&bytes);
    artifact::decode(plain.unwrap_or(&bytes)).with_context(|| file.display().to_string())
}

/// Whether a key belongs to a function that is named by its path or the end of its path.
fn names(key: &str, function: &str) -> bool {
    let path = if function.contains('<') {
        key
    } else {
        key.split('<').next().unwrap_or(key)
    };
    path == function || path.strip_suffix(function).is_some_and(|rest| rest.ends_with("::"))
}

/// Writes the artifact of what was just built: a shared object if the file's name says so, else the plain bytes.
pub(crate) fn write_out(state: &State, executables: &[PathBuf], file: &Path) -> Result<()> {
    let records = state.records().context("cannot read the record of links")?;
    let built: Vec<&LinkRecord> = records
        .iter()
        .filter(|r| executables.iter().any(|e| same_file(e, &r.output)))
        .collect();
    let output = match built[..] {
        [one] => &one.output,
        [] => bail!("`--artifact`: nothing that was built has differentiable functions"),
        _ => bail!(
            "`--artifact`: {} programs were built; choose one, with `--bin NAME` for example",
            built.len()
        ),
    };
    let artifact = state.artifact(output);
    if file.extension().is_some_and(|e| e == "so") {
        let bytes = std::fs::read(&artifact).with_context(|| format!("cannot read {}", artifact.display()))?;
        capture::write_shared_object(&bytes, file).with_context(|| format!("cannot write {}", file.display()))
    } else {
        std::fs::copy(&artifact, file).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(())
    }
}

/// Whether two paths are one file: Cargo links what it built into a second folder.
fn same_file(a: &Path, b: &Path) -> bool {
    match (std::fs::metadata(a), std::fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_by_the_end_of_its_path() {
        assert!(names("app::model::loss", "loss") && names("app::model::loss", "model::loss"));
        assert!(!names("app::model::my_loss", "loss"));
        assert!(names("app::f<f64>", "f") && names("app::f<f64>", "f<f64>") && !names("app::f<f64>", "f<f32>"));
    }
}
