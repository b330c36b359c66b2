//! `build`, `run`, `test` and `bench`: Cargo's own commands, with bitcode in the place of machine code until the link.

use crate::arguments::Arguments;
use crate::config::Config;
use crate::messages::{Outcome, follow, show_failures};
use crate::options::CargoArguments;
use crate::toolchain::Toolchain;
use crate::{LINKER_NAME, STATE_VARIABLE, artifacts, rustflags};
use anyhow::{Context, Result, bail};
use cotangent_pass::capture::{Failure, State, tool_identity};
use serde_json::Value;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

/// The workspace that is built.
pub(crate) struct Project {
    /// Its root folder.
    pub(crate) root: PathBuf,
    /// Cargo's target folder for these builds: apart from the plain one, since the flags differ.
    pub(crate) target: PathBuf,
    /// What `cargo metadata` says.
    pub(crate) metadata: Value,
}

impl Project {
    /// Asks Cargo.
    pub(crate) fn find(manifest: Option<&Path>, target: Option<&Path>) -> Result<Project> {
        let mut command = Command::new(cargo());
        command.args(["metadata", "--format-version", "1", "--no-deps"]);
        if let Some(manifest) = manifest {
            command.arg("--manifest-path").arg(manifest);
        }
        let output = command.output().context("cannot run Cargo")?;
        if !output.status.success() {
            bail!(
                "{}",
                String::from_utf8_lossy(&output.stderr)
                    .trim()
                    .trim_start_matches("error: ")
            );
        }
        let metadata: Value = serde_json::from_slice(&output.stdout).context("cannot read `cargo metadata`")?;
        let path = |name: &str| {
            metadata[name]
                .as_str()
                .map(PathBuf::from)
                .with_context(|| format!("no {name}"))
        };
        let target = match target {
            Some(target) => std::path::absolute(target).context("cannot tell the working directory")?,
            None => path("target_directory")?,
        };
        Ok(Project {
            root: path("workspace_root")?,
            target: target.join("cotangent"),
            metadata,
        })
    }

    /// The state that the linker keeps.
    pub(crate) fn state(&self) -> State {
        State::at(self.target.join("pass"))
    }
}

/// Runs a command of Cargo.
pub(crate) fn build(task: &str, given: CargoArguments) -> Result<ExitCode> {
    let arguments = Arguments::parse(task, given.arguments)?;
    if arguments.has("-h") || arguments.has("--help") {
        return finish(
            Command::new(cargo())
                .arg(task)
                .arg("--help")
                .status()
                .context("cannot run Cargo")?,
        );
    }
    let toolchain = Toolchain::find()?;
    if let Some(target) = arguments.value("--target").filter(|t| *t != toolchain.host) {
        bail!(
            "cannot build for {target}: derivatives are built for the host only ({})",
            toolchain.host
        );
    }
    let project = Project::find(
        arguments.value("--manifest-path").map(Path::new),
        arguments.target_dir.as_deref(),
    )?;
    let state = project.state();
    prepare(&state)?;
    let environment = environment(&arguments, &project, &state, &toolchain)?;
    let cargo_command = |task: &str| {
        let mut command = Command::new(cargo());
        command
            .arg(task)
            .envs(environment.iter().map(|(name, value)| (name, value)));
        command.env_remove("RUSTFLAGS").env_remove("RUSTDOCFLAGS");
        if arguments.value("--target").is_none() {
            command.args(["--target", &toolchain.host]);
        }
        command
    };
    let styled = styled(&arguments);
    // Whoever wants Cargo's messages gets them as they are; documentation tests cannot be built apart from their run.
    if arguments.value("--message-format").is_some() || arguments.has("--doc") {
        let status = cargo_command(task)
            .args(arguments.all())
            .status()
            .context("cannot run Cargo")?;
        show_failures(&state, &project.root, styled)?;
        return finish(status);
    }

    let mut first = cargo_command(if task == "run" { "build" } else { task });
    first.args(arguments.cargo());
    if task == "run" {
        let directory = std::env::current_dir().context("cannot tell the working directory")?;
        first.args(arguments.program_to_run(&project.metadata, &directory));
    }
    first.arg(if styled {
        "--message-format=json-diagnostic-rendered-ansi"
    } else {
        "--message-format=json"
    });
    if matches!(task, "test" | "bench") && !arguments.has("--no-run") {
        first.arg("--no-run");
    }
    let Outcome { status, executables } = follow(&mut first, &state, &project.root, styled)?;
    if !status.success() {
        return finish(status);
    }
    if let Some(file) = &arguments.artifact {
        artifacts::write_out(&state, &executables, file)?;
    }
    if task == "build" || arguments.has("--no-run") {
        return Ok(ExitCode::SUCCESS);
    }
    let mut second = cargo_command(task);
    // The build showed its warnings already.
    second.env("CARGO_BUILD_WARNINGS", "allow");
    // `explain` shows functions as this run is going to call them.
    let _ = std::fs::remove_file(state.calls());
    second.env("COTANGENT_CALLS", state.calls());
    if task == "run"
        && !["-v", "-vv", "--verbose", "-q", "--quiet"]
            .iter()
            .any(|flag| arguments.has(flag))
    {
        // The build has been reported already.
        second.arg("--quiet");
    }
    let status = second.args(arguments.all()).status().context("cannot run Cargo")?;
    show_failures(&state, &project.root, styled)?;
    finish(status)
}

/// The Cargo that called, or the one on the path.
fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn finish(status: ExitStatus) -> Result<ExitCode> {
    // A program that `cargo run` runs takes Cargo's place; a signal that ends it is told as shells do.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Sets up the linker's folder: this program under the linker's name, no programs of other tools, no old failures.
fn prepare(state: &State) -> Result<()> {
    let folder = state.root();
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let tool = std::env::current_exe().context("cannot tell where this program is")?;
    let link = folder.join(LINKER_NAME);
    if std::fs::read_link(&link).ok().as_ref() != Some(&tool) {
        let fresh = folder.join(format!("{LINKER_NAME}.{}", std::process::id()));
        std::os::unix::fs::symlink(&tool, &fresh)
            .and_then(|()| std::fs::rename(&fresh, &link))
            .with_context(|| format!("cannot create {}", link.display()))?;
    }
    state
        .forget_other_tools(&tool_identity()?)
        .context("cannot read the record of links")?;
    Failure::take(&state.failures()).context("cannot clear old failures")?;
    Ok(())
}

/// The environment of a build.
fn environment(
    arguments: &Arguments,
    project: &Project,
    state: &State,
    toolchain: &Toolchain,
) -> Result<Vec<(String, OsString)>> {
    let config = Config::read(arguments.cargo())?;
    // The linker is named, not placed: its path would make Cargo rebuild everything whenever it changes.
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let path = [state.root().to_owned()]
        .into_iter()
        .chain(std::env::split_paths(&inherited));
    let mut environment: Vec<(String, OsString)> = vec![
        (
            "PATH".into(),
            std::env::join_paths(path).context("a folder on the PATH has a colon in its name")?,
        ),
        (STATE_VARIABLE.into(), state.root().into()),
        ("CARGO_TARGET_DIR".into(), project.target.clone().into()),
        (toolchain.host_variable("LINKER"), LINKER_NAME.into()),
        (
            "CARGO_ENCODED_RUSTFLAGS".into(),
            rustflags::encoded_rustflags(&config, toolchain)?.into(),
        ),
        (
            "CARGO_ENCODED_RUSTDOCFLAGS".into(),
            rustflags::encoded_rustdocflags(&config, LINKER_NAME).into(),
        ),
    ];
    let own = arguments
        .value("--profile")
        .filter(|p| !matches!(*p, "dev" | "release" | "test" | "bench"));
    for profile in ["dev", "release"].into_iter().chain(own) {
        let variable = format!("CARGO_PROFILE_{}", profile.to_uppercase().replace('-', "_"));
        // Optimisation across crates happens in our link; rustc's own would hide the crates from it.
        environment.push((format!("{variable}_LTO"), "off".into()));
        if profile != "dev" && !sets_debug(&project.root, profile) {
            // Refusals point at source lines.
            environment.push((format!("{variable}_DEBUG"), "line-tables-only".into()));
        }
    }
    Ok(environment)
}

/// Whether the workspace's manifest says how much debug information a profile has.
fn sets_debug(root: &Path, profile: &str) -> bool {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).unwrap_or_default();
    let table = manifest.parse::<toml::Table>().unwrap_or_default();
    table
        .get("profile")
        .and_then(|p| p.get(profile))
        .is_some_and(|p| p.get("debug").is_some())
}

fn styled(arguments: &Arguments) -> bool {
    let chosen = arguments
        .value("--color")
        .map(str::to_owned)
        .or_else(|| std::env::var("CARGO_TERM_COLOR").ok());
    match chosen.as_deref() {
        Some("always") => true,
        Some("never") => false,
        _ => std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
    }
}
