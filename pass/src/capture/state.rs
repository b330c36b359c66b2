//! The folder in which the tool keeps what outlives one link: caches, artifacts, the record of links.

use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The folder. It lies inside Cargo's target folder, so that `cargo clean` removes it.
#[derive(Clone, Debug)]
pub struct State {
    root: PathBuf,
}

/// What the tool knows of a program that it linked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// The linked program.
    pub output: PathBuf,
    /// The tool that made its artifact, as [`tool_identity`] tells it.
    pub tool: String,
}

impl State {
    /// The state in a folder, which need not exist.
    pub fn at(root: impl Into<PathBuf>) -> State {
        State { root: root.into() }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Objects that the native linker compiled from bitcode.
    pub fn objects(&self) -> PathBuf {
        self.root.join("objects")
    }

    /// Failures that wait to be shown.
    pub fn failures(&self) -> PathBuf {
        self.root.join("failures")
    }

    /// What the functions of the last run were called with.
    pub fn calls(&self) -> PathBuf {
        self.root.join("calls")
    }

    /// The artifact for bitcode of a given hash.
    pub fn cached(&self, hash: &str) -> PathBuf {
        self.root.join("cache").join(hash)
    }

    fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// The artifact of a linked program.
    pub fn artifact(&self, output: &Path) -> PathBuf {
        self.artifacts().join(stem(output)).with_extension("cotangent")
    }

    /// Remembers a link.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn record(&self, record: &LinkRecord) -> io::Result<()> {
        std::fs::create_dir_all(self.artifacts())?;
        let file = self.artifacts().join(stem(&record.output)).with_extension("json");
        std::fs::write(file, serde_json::to_vec(record)?)
    }

    /// All links that are remembered, the latest first, each with its artifact.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn records(&self) -> io::Result<Vec<LinkRecord>> {
        let entries = match std::fs::read_dir(self.artifacts()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut records = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.path().extension().is_some_and(|e| e == "json") {
                let record: LinkRecord = serde_json::from_slice(&std::fs::read(entry.path())?)?;
                records.push((entry.metadata()?.modified()?, record));
            }
        }
        records.sort_by_key(|(modified, _)| std::cmp::Reverse(*modified));
        Ok(records.into_iter().map(|(_, record)| record).collect())
    }

    /// Removes programs that another version of the tool linked, so that Cargo links them again.
    ///
    /// # Errors
    /// If the records cannot be read.
    pub fn forget_other_tools(&self, tool: &str) -> io::Result<()> {
        for record in self.records()? {
            if record.tool != tool {
                // A program that is gone already is what is wanted.
                let _ = std::fs::remove_file(&record.output);
                let _ = std::fs::remove_file(self.artifacts().join(stem(&record.output)).with_extension("json"));
            }
        }
        Ok(())
    }
}

/// A file's name without what may follow its last dot; Cargo's hash in it tells builds apart.
fn stem(output: &Path) -> PathBuf {
    PathBuf::from(output.file_stem().unwrap_or(output.as_os_str()))
}

/// What tells this build of the tool from any other.
///
/// # Errors
/// If the running program's file cannot be examined.
pub fn tool_identity() -> io::Result<String> {
    let metadata = std::fs::metadata(std::env::current_exe()?)?;
    let modified = metadata
        .modified()?
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Ok(format!(
        "{} {} {}",
        env!("CARGO_PKG_VERSION"),
        metadata.len(),
        modified.as_nanos()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_another_tool_is_removed_and_one_of_this_tool_stays() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::at(dir.path().join("state"));
        for (name, tool) in [("old-1", "a"), ("new-2", "b")] {
            let output = dir.path().join(name);
            std::fs::write(&output, "").unwrap();
            state
                .record(&LinkRecord {
                    output,
                    tool: tool.into(),
                })
                .unwrap();
        }
        state.forget_other_tools("b").unwrap();
        assert!(!dir.path().join("old-1").exists());
        assert!(dir.path().join("new-2").exists());
        assert_eq!(state.records().unwrap().len(), 1);
    }
}
