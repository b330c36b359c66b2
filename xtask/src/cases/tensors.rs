//! Tensor programs: one test crate of all files, one process per test.

use super::{Report, scratch};
use crate::chores::{cargo_command, root, target};
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Longest time for one test.
const PATIENCE: Duration = Duration::from_secs(180);
/// How one test ended.
enum End {
    Passed,
    Refused(String),
    Failed(String),
}

/// Builds and runs all tests of a folder.
pub(super) fn run(from: &Path, only: Option<&str>) -> Result<Report> {
    let from = std::path::absolute(from)?;
    let package = write_crate(&from)?;
    build(&package)?;
    let program = newest(&target().join("cotangent"))?;
    let tests = list(&program, only)?;
    if tests.is_empty() {
        bail!("no tests in {}", from.display());
    }
    let results = run_all(&program, &tests, &package)?;
    let mut report = Report::default();
    for (name, (end, regions)) in tests.iter().zip(results) {
        match end {
            End::Passed => {
                report.passed += 1;
                // A line is: function, own ops, names of opaque ops.
                let opaque = regions
                    .lines()
                    .any(|l| l.split('\t').nth(2).is_some_and(|names| !names.is_empty()));
                *(if opaque { &mut report.opaque } else { &mut report.own }) += 1;
            }
            End::Refused(why) => {
                report.refused += 1;
                report.refusals.push((name.clone(), why));
            }
            End::Failed(why) => {
                println!("FAILED {name}: {why}");
                report.failed += 1;
                report.failures.push(name.clone());
            }
        }
    }
    Ok(report)
}

/// A package with one integration test that has every file of the folder as a module.
fn write_crate(from: &Path) -> Result<PathBuf> {
    let package = scratch("tensors");
    fs::create_dir_all(package.join("tests"))?;
    let mut files: Vec<PathBuf> = fs::read_dir(from)
        .with_context(|| format!("cannot read {}", from.display()))?
        .map(|e| Ok(e?.path()))
        .collect::<Result<_>>()?;
    files.retain(|f| f.extension().is_some_and(|e| e == "rs"));
    files.sort();
    let mut modules = String::new();
    for file in &files {
        let name = file
            .file_stem()
            .and_then(|s| s.to_str())
            .context("a file name that is not text")?;
        if name != "support" {
            writeln!(modules, "#[path = {file:?}]\nmod {name};")?;
        }
    }
    let manifest = format!(
        "[package]\nname = \"tensor-cases\"\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n[dependencies]\n\
         cotangent = {{ path = {:?} }}\ntch = \"=0.26.0\"\n\n[[test]]\nname = \"tensors\"\npath = \"tests/tensors.rs\"\n\n\
         [workspace]\n\n{}",
        root(),
        profiles()?
    );
    write(&package.join("tests/tensors.rs"), &modules)?;
    write(&package.join("src/lib.rs"), "")?;
    write(&package.join("Cargo.toml"), &manifest)?;
    // The workspace's own versions, where both have a package.
    let lock = package.join("Cargo.lock");
    if !lock.exists() {
        fs::copy(root().join("Cargo.lock"), lock)?;
    }
    Ok(package)
}

/// The workspace's profiles, so that what both build is built once.
fn profiles() -> Result<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).context("cannot read the workspace's manifest")?;
    let mut manifest: toml::Table = manifest.parse().context("cannot parse the workspace's manifest")?;
    manifest.retain(|name, _| name == "profile");
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

/// Builds the test crate; functions that are refused fail when they are called, not the build.
fn build(package: &Path) -> Result<()> {
    let mut command = cargo_command();
    command
        .args(["cotangent", "test", "--manifest-path"])
        .arg(package.join("Cargo.toml"))
        .args(["--", "--list"])
        .stdout(Stdio::null())
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target())
        .env("COTANGENT_KEEP_REFUSED", "1");
    if !command.status().context("cannot run Cargo")?.success() {
        bail!("the test crate in {} does not build", package.display());
    }
    Ok(())
}

/// The test program that was built last.
fn newest(target: &Path) -> Result<PathBuf> {
    let mut found: Option<(std::time::SystemTime, PathBuf)> = None;
    for triple in fs::read_dir(target)?.flatten() {
        let Ok(files) = fs::read_dir(triple.path().join("debug/deps")) else {
            continue;
        };
        for file in files.flatten() {
            let name = file.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("tensors-") && !name.contains('.') {
                let time = file.metadata()?.modified()?;
                if found.as_ref().is_none_or(|(t, _)| time > *t) {
                    found = Some((time, file.path()));
                }
            }
        }
    }
    Ok(found.context("the build left no test program")?.1)
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

/// Runs every test, two at a time; gives how each ended and what regions it made.
fn run_all(program: &Path, tests: &[String], package: &Path) -> Result<Vec<(End, String)>> {
    let bar = ProgressBar::new(tests.len() as u64)
        .with_style(ProgressStyle::with_template("{bar:30} {pos}/{len} tests  {msg}")?);
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<(End, String)>>> = Mutex::new(tests.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((i, name)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, tests.get(i)?)))
                {
                    bar.set_message(name.clone());
                    let regions = package.join(format!("regions-{i}"));
                    let _ = fs::remove_file(&regions);
                    let end = run_one(program, name, &regions);
                    let made = fs::read_to_string(&regions).unwrap_or_default();
                    let _ = fs::remove_file(&regions);
                    results.lock().expect("no thread panics")[i] = Some((end, made));
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let results = results.into_inner().expect("no thread panics");
    Ok(results.into_iter().map(|r| r.expect("every test was run")).collect())
}

fn run_one(program: &Path, name: &str, regions: &Path) -> End {
    let output = regions.with_extension("out");
    let end = match fs::File::create(&output).and_then(|out| {
        let copy = out.try_clone()?;
        Command::new(program)
            .args(["--exact", name, "--nocapture"])
            .env("COTANGENT_REGIONS", regions)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(copy)
            .spawn()
    }) {
        Err(e) => return End::Failed(format!("cannot be run: {e}")),
        Ok(mut child) => {
            let start = Instant::now();
            loop {
                match child.try_wait() {
                    Ok(Some(status)) => break Some(status),
                    Ok(None) if start.elapsed() > PATIENCE => {
                        let _ = child.kill();
                        let _ = child.wait();
                        break None;
                    }
                    Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                    Err(e) => return End::Failed(format!("cannot be waited for: {e}")),
                }
            }
        }
    };
    let text = fs::read_to_string(&output).unwrap_or_default();
    let _ = fs::remove_file(&output);
    match end {
        None => End::Failed(format!("did not end in {} s", PATIENCE.as_secs())),
        Some(status) if status.success() => End::Passed,
        Some(status) if status.code().is_none() => End::Failed(format!("crashed: {status}")),
        Some(_) => {
            // The line after "panicked at" says why.
            let why = text.lines().skip_while(|l| !l.contains("panicked at")).nth(1);
            let why = why.unwrap_or("no message").trim().to_owned();
            if is_refusal(&why) {
                End::Refused(why)
            } else {
                End::Failed(why)
            }
        }
    }
}

/// Whether a message is the runtime's about a function that it declines: it names the function and the source line.
fn is_refusal(message: &str) -> bool {
    message.starts_with('`') && message.contains("`: ") && message.contains(" (at ") && message.ends_with(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_function_and_the_line() {
        assert!(is_refusal(
            "`a::f`: control flow depends on the elements of a tensor (at a.rs:3:4)"
        ));
        assert!(!is_refusal("`a::f`: no derivative for `dropout`"));
        assert!(!is_refusal("assertion failed (at a.rs:3:4)"));
    }
}
