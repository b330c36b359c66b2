//! Test files in Rust: one test crate of all files, built with `cargo cotangent`, one process per test. The files are
//! dealt out to a few test programs, for one link keeps one core busy.

use super::{End, process, scratch};
use crate::chores::{cargo_command, root, target};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Longest time for one test.
const PATIENCE: Duration = Duration::from_secs(180);

/// Most test programs of a crate: each holds LibTorch's bindings and the compiler's memory anew.
const MOST_PROGRAMS: usize = 4;

/// Features that the workspace's tests ask of what LibTorch's bindings stand on: so these are not built anew.
const AS_THE_WORKSPACE: &str = "[dev-dependencies]\n\
    bitflags = { version = \"2\", features = [\"std\"] }\n\
    num-traits = \"0.2\"\n";

/// A test crate.
pub(super) struct TestCrate {
    /// What its test programs are called.
    programs: Vec<String>,
    package: PathBuf,
    /// How far the crate is optimised.
    level: u8,
}

/// How a test ended, and what regions it made.
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) end: End,
    pub(super) regions: String,
}

impl TestCrate {
    /// Writes a package whose integration tests have every file of the folder as a module. `name` is one of its own for
    /// each kind of case.
    pub(super) fn write(name: &'static str, from: &Path, level: u8) -> Result<TestCrate> {
        let from = std::path::absolute(from)?;
        let package = scratch(name);
        fs::create_dir_all(package.join("tests"))?;
        let mut files: Vec<PathBuf> = fs::read_dir(&from)
            .with_context(|| format!("cannot read {}", from.display()))?
            .map(|e| Ok(e?.path()))
            .collect::<Result<_>>()?;
        files.retain(|f| f.extension().is_some_and(|e| e == "rs"));
        files.sort();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let programs: Vec<String> = (0..cores.min(MOST_PROGRAMS)).map(|i| format!("{name}_{i}")).collect();
        let mut modules = vec![String::new(); programs.len()];
        for (i, file) in files.iter().enumerate() {
            let module = file
                .file_stem()
                .and_then(|s| s.to_str())
                .context("a file name that is not text")?;
            if module != "support" {
                writeln!(modules[i % programs.len()], "#[path = {file:?}]\nmod {module};")?;
            }
        }
        let mut manifest = format!(
            "[package]\nname = \"{name}-cases\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\
             autotests = false\n\n[dependencies]\ncotangent = {{ path = {:?} }}\ntch = \"=0.26.0\"\n\n{AS_THE_WORKSPACE}\n\
             [lib]\ntest = false\ndoctest = false\n\n[workspace]\n\n{}\n",
            root(),
            profiles(level)?
        );
        for (program, modules) in programs.iter().zip(&modules) {
            writeln!(
                manifest,
                "[[test]]\nname = {program:?}\npath = \"tests/{program}.rs\"\n"
            )?;
            write(&package.join(format!("tests/{program}.rs")), modules)?;
        }
        write(&package.join("src/lib.rs"), "")?;
        write(&package.join("Cargo.toml"), &manifest)?;
        // The workspace's own versions, where both have a package.
        let lock = package.join("Cargo.lock");
        if !lock.exists() {
            fs::copy(root().join("Cargo.lock"), lock)?;
        }
        Ok(TestCrate {
            programs,
            package,
            level,
        })
    }

    /// Builds the crate and runs all its tests whose name contains `only`.
    pub(super) fn run(&self, only: Option<&str>) -> Result<Vec<Outcome>> {
        self.build()?;
        let mut tests = Vec::new();
        for name in &self.programs {
            let program = newest(name)?;
            tests.extend(list(&program, only)?.into_iter().map(|test| (program.clone(), test)));
        }
        let ends = process::for_each(
            &tests,
            |(_, name)| name.clone(),
            |i, (program, name)| {
                let regions = self.package.join(format!("regions-{i}"));
                let _ = fs::remove_file(&regions);
                let end = run_one(program, name, &regions);
                let made = fs::read_to_string(&regions).unwrap_or_default();
                let _ = fs::remove_file(&regions);
                (end, made)
            },
        )?;
        let outcomes = tests
            .into_iter()
            .zip(ends)
            .map(|((_, name), (end, regions))| Outcome { name, end, regions });
        let mut outcomes: Vec<Outcome> = outcomes.collect();
        outcomes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(outcomes)
    }

    /// Builds the test; functions that are refused fail when they are called, not the build.
    fn build(&self) -> Result<()> {
        let mut command = cargo_command();
        command
            .args(["cotangent", "test", "--manifest-path"])
            .arg(self.package.join("Cargo.toml"))
            .args(["--", "--list"])
            .stdout(Stdio::null())
            .current_dir(root())
            .env("CARGO_TARGET_DIR", target())
            .env("COTANGENT_KEEP_REFUSED", "1");
        if !command.status().context("cannot run Cargo")?.success() {
            bail!(
                "the test crate in {} does not build at opt-level {}",
                self.package.display(),
                self.level
            );
        }
        Ok(())
    }
}

/// The test program of a name that was built last.
fn newest(name: &str) -> Result<PathBuf> {
    let mut found: Option<(std::time::SystemTime, PathBuf)> = None;
    let prefix = format!("{name}-");
    for triple in fs::read_dir(target().join("cotangent"))?.flatten() {
        let Ok(files) = fs::read_dir(triple.path().join("debug/deps")) else {
            continue;
        };
        for file in files.flatten() {
            let name = file.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(&prefix) && !name.contains('.') {
                let time = file.metadata()?.modified()?;
                if found.as_ref().is_none_or(|(t, _)| time > *t) {
                    found = Some((time, file.path()));
                }
            }
        }
    }
    Ok(found.context("the build left no test program")?.1)
}

/// The workspace's profiles, so that what both build is built once; the tests themselves are optimised as asked.
fn profiles(level: u8) -> Result<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).context("cannot read the workspace's manifest")?;
    let mut manifest: toml::Table = manifest.parse().context("cannot parse the workspace's manifest")?;
    manifest.retain(|name, _| name == "profile");
    // The test crate does not contain the pass, and Cargo warns of a profile of what is not there.
    let packages = manifest
        .get_mut("profile")
        .and_then(|p| p.get_mut("dev")?.get_mut("package"));
    if let Some(packages) = packages.and_then(|p| p.as_table_mut()) {
        packages.remove("cotangent-pass");
    }
    if level > 0 {
        let own: toml::Table =
            format!("[profile.test]\nopt-level = {level}\n[profile.test.package.\"*\"]\nopt-level = 0\n")
                .parse()
                .context("cannot write TOML")?;
        let profile = manifest.entry("profile").or_insert_with(|| toml::Table::new().into());
        if let (Some(profile), Some(toml::Value::Table(own))) = (profile.as_table_mut(), own.get("profile")) {
            profile.extend(own.clone());
        }
    }
    toml::to_string(&manifest).context("cannot write TOML")
}

/// Writes a file if its contents change, so that nothing is rebuilt for nothing.
fn write(file: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(file).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::create_dir_all(file.parent().context("a file has a folder")?)?;
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn list(program: &Path, only: Option<&str>) -> Result<Vec<String>> {
    let output = Command::new(program).args(["--list", "--format", "terse"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|l| l.strip_suffix(": test"));
    Ok(names
        .filter(|n| only.is_none_or(|o| n.contains(o)))
        .map(str::to_owned)
        .collect())
}

/// How the runtime's line about a refusal begins.
const REFUSED: &str = "!\t";

fn run_one(program: &Path, name: &str, regions: &Path) -> End {
    let mut command = Command::new(program);
    command
        .args(["--exact", name, "--nocapture"])
        .env("COTANGENT_REGIONS", regions);
    let output = match process::output(&mut command, PATIENCE) {
        Ok(output) => output,
        Err(e) => return End::Failed(format!("{e:#}")),
    };
    match output.status {
        None => End::Failed(format!("did not end in {} s", PATIENCE.as_secs())),
        Some(status) if status.success() => End::Passed,
        Some(status) if status.code().is_none() => End::Failed(format!("crashed: {status}")),
        Some(_) => {
            let report = fs::read_to_string(regions).unwrap_or_default();
            failed(&output.text, &report)
        }
    }
}

/// What a test that failed says: that a call was refused, if the runtime reported so and the test failed with that.
fn failed(output: &str, report: &str) -> End {
    // The line after "panicked at" says why.
    let why = output.lines().skip_while(|l| !l.contains("panicked at")).nth(1);
    let why = why.unwrap_or("no message").trim();
    let mut refusals = report.lines().filter_map(|l| l.strip_prefix(REFUSED));
    match refusals.any(|reason| why.contains(reason)) {
        true => End::Refused(why.to_owned()),
        false => End::Failed(why.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_what_the_runtime_reported_and_the_test_failed_with() {
        let output = "thread 't' panicked at a.rs:1:1:\n`a::f`: cannot be differentiated: a reason (at a.rs:3)\n";
        let refused = |report: &str| matches!(failed(output, report), End::Refused(_));
        assert!(refused("a::g\t3\t\n!\ta reason (at a.rs:3)\n"));
        assert!(!refused("a::g\t3\t\n"));
        assert!(!refused("!\tanother reason (at a.rs:3)\n"));
    }

    #[test]
    fn the_tests_alone_are_optimised() {
        let text = profiles(3).unwrap();
        let table: toml::Table = text.parse().unwrap();
        assert_eq!(table["profile"]["test"]["opt-level"].as_integer(), Some(3));
        assert_eq!(
            table["profile"]["test"]["package"]["*"]["opt-level"].as_integer(),
            Some(0)
        );
        assert!(!profiles(0).unwrap().contains("[profile.test]"));
        assert!(!profiles(0).unwrap().contains("cotangent-pass"));
    }
}
