//! Cargo's arguments, as far as they must be understood to build first and run after.

use anyhow::{Context, Result};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Options of Cargo that take their value from the next argument.
const VALUED: [&str; 21] = [
    "--bin",
    "--example",
    "--test",
    "--bench",
    "-p",
    "--package",
    "--exclude",
    "-F",
    "--features",
    "-j",
    "--jobs",
    "--profile",
    "--target",
    "--target-dir",
    "--manifest-path",
    "--message-format",
    "--color",
    "--config",
    "-Z",
    "--lockfile-path",
    "--artifact-dir",
];

/// The arguments of one command.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// Arguments for Cargo, except those that are ours.
    cargo: Vec<OsString>,
    /// `--` and what follows it, or what follows the first word that is no option of `run`: for the program.
    program: Vec<OsString>,
    /// Where to write the artifact (our `--artifact`).
    pub(crate) artifact: Option<PathBuf>,
    /// The target folder (Cargo's `--target-dir`, which we give to Cargo in our own way).
    pub(crate) target_dir: Option<PathBuf>,
}

impl Arguments {
    /// Tells Cargo's arguments from ours and the program's.
    pub(crate) fn parse(task: &str, given: Vec<OsString>) -> Result<Arguments> {
        let mut arguments = Arguments::default();
        let mut given = given.into_iter();
        while let Some(argument) = given.next() {
            let text = argument.to_string_lossy().into_owned();
            if let Some(value) = own("--artifact", &text, &mut given)? {
                arguments.artifact = Some(value);
            } else if let Some(value) = own("--target-dir", &text, &mut given)? {
                arguments.target_dir = Some(value);
            } else if text == "--" || (task == "run" && !text.starts_with('-')) {
                arguments.program.push(argument);
                arguments.program.extend(given.by_ref());
            } else {
                arguments.cargo.push(argument);
                if VALUED.contains(&text.as_str()) {
                    arguments.cargo.extend(given.next());
                }
            }
        }
        Ok(arguments)
    }

    /// All arguments, for Cargo and for the program.
    pub(crate) fn all(&self) -> impl Iterator<Item = &OsString> {
        self.cargo.iter().chain(&self.program)
    }

    /// The arguments for Cargo.
    pub(crate) fn cargo(&self) -> &[OsString] {
        &self.cargo
    }

    /// Whether Cargo is given a flag.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.cargo.iter().any(|a| a == flag)
    }

    /// The value of an option of Cargo.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        let mut rest = self.cargo.iter().filter_map(|a| a.to_str());
        while let Some(argument) = rest.next() {
            if argument == option {
                return rest.next();
            }
            let joined = argument.strip_prefix(option).and_then(|r| r.strip_prefix('='));
            if joined.is_some() {
                return joined;
            }
            if VALUED.contains(&argument) {
                rest.next();
            }
        }
        None
    }

    /// What `cargo build` must be told to build just the program that `cargo run` would run: Cargo's own choice, which
    /// `cargo build` would not make. Nothing where the arguments say it, or where Cargo will complain itself.
    pub(crate) fn program_to_run(&self, metadata: &Value, directory: &Path) -> Vec<OsString> {
        if self.value("--bin").is_some() || self.value("--example").is_some() {
            return Vec::new();
        }
        let chosen = self.value("-p").or_else(|| self.value("--package"));
        let members = metadata["workspace_default_members"].as_array();
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let here = packages.clone().find(|p| folder(p).is_some_and(|f| f == directory));
        let considered = packages.filter(|p| match (chosen, here) {
            (Some(name), _) => p["name"] == name,
            (None, Some(here)) => p["id"] == here["id"],
            (None, None) => members.is_none_or(|m| m.contains(&p["id"])),
        });
        let mut programs = Vec::new();
        for package in considered {
            if let Some(name) = package["default_run"].as_str() {
                return vec!["--bin".into(), name.into()];
            }
            let targets = package["targets"].as_array().into_iter().flatten();
            let binaries = targets.filter(|t| t["kind"].as_array().is_some_and(|k| k.contains(&"bin".into())));
            programs.extend(binaries.filter_map(|t| t["name"].as_str()));
        }
        match programs[..] {
            [name] => vec!["--bin".into(), name.into()],
            _ => Vec::new(),
        }
    }
}

/// The value of an option of ours, if the argument is that option.
fn own(option: &str, text: &str, rest: &mut impl Iterator<Item = OsString>) -> Result<Option<PathBuf>> {
    match text.strip_prefix(option) {
        Some("") => Ok(Some(
            rest.next().with_context(|| format!("`{option}` needs a value"))?.into(),
        )),
        Some(joined) => Ok(joined.strip_prefix('=').map(PathBuf::from)),
        None => Ok(None),
    }
}

/// The folder of a package.
fn folder(package: &Value) -> Option<&Path> {
    Path::new(package["manifest_path"].as_str()?).parent()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(task: &str, given: &[&str]) -> Arguments {
        Arguments::parse(task, given.iter().map(OsString::from).collect()).unwrap()
    }

    fn texts(arguments: &[OsString]) -> Vec<&str> {
        arguments.iter().map(|a| a.to_str().unwrap()).collect()
    }

    #[test]
    fn our_options_are_taken_out_and_the_programs_are_left_alone() {
        let given = [
            "--release",
            "--artifact",
            "f",
            "--target-dir=t",
            "--bin",
            "x",
            "--",
            "--artifact",
            "g",
        ];
        let arguments = parse("build", &given);
        assert_eq!(texts(arguments.cargo()), ["--release", "--bin", "x"]);
        assert_eq!(arguments.artifact.as_deref(), Some(Path::new("f")));
        assert_eq!(arguments.target_dir.as_deref(), Some(Path::new("t")));
        assert_eq!(arguments.all().count(), 6);
    }

    #[test]
    fn the_first_word_after_run_belongs_to_the_program() {
        let arguments = parse("run", &["-p", "a", "word", "--release"]);
        assert_eq!(texts(arguments.cargo()), ["-p", "a"]);
        assert_eq!(parse("test", &["name", "--release"]).cargo().len(), 2);
    }

    #[test]
    fn values_are_found_in_both_spellings_and_never_among_other_values() {
        let arguments = parse("build", &["--features", "--target", "--profile=x", "--color", "always"]);
        assert_eq!(arguments.value("--target"), None);
        assert_eq!(arguments.value("--profile"), Some("x"));
        assert_eq!(arguments.value("--color"), Some("always"));
    }

    #[test]
    fn run_builds_the_default_program_alone() {
        let metadata = |default: Value| {
            serde_json::json!({
                "workspace_default_members": ["a"],
                "packages": [{"id": "a", "name": "a", "manifest_path": "/a/Cargo.toml", "default_run": default,
                    "targets": [{"kind": ["bin"], "name": "one"}, {"kind": ["bin"], "name": "two"}]}]
            })
        };
        let chosen = |given: &[&str], default: Value| {
            let arguments = parse("run", given).program_to_run(&metadata(default), Path::new("/elsewhere"));
            arguments
                .iter()
                .map(|a| a.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(chosen(&[], "two".into()), ["--bin", "two"]);
        assert!(chosen(&[], Value::Null).is_empty());
        assert!(chosen(&["--example", "x"], "two".into()).is_empty());
    }
}
