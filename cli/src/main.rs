//! `cargo cotangent`: builds programs with their derivatives, and shows what the pass made of them.
//!
//! The same program is rustc's linker during such a build, under the name [`LINKER_NAME`].

mod arguments;
mod artifacts;
mod build;
mod config;
mod inputs;
mod kernels;
mod messages;
mod options;
mod report;
mod rustflags;
mod stages;
mod toolchain;

use clap::Parser;
use cotangent_pass::capture::{self, Refused, State};
use cotangent_pass::raise::raise_requests;
use options::{Options, Task};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The name under which this program is rustc's linker.
const LINKER_NAME: &str = "cotangent-linker";
/// The variable that tells the linker where the tool's state is.
const STATE_VARIABLE: &str = "COTANGENT_STATE";
/// The variable that, set to 1, lets a program link although some of its functions cannot be differentiated: calls of
/// those fail with the reason.
const KEEP_VARIABLE: &str = "COTANGENT_KEEP_REFUSED";

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments
        .first()
        .is_some_and(|a| Path::new(a).file_name() == Some(LINKER_NAME.as_ref()))
    {
        return linker(arguments.split_off(1));
    }
    // Cargo repeats the subcommand's name when it runs an installed `cargo-cotangent`.
    if arguments.get(1).is_some_and(|a| a == "cotangent") {
        arguments.remove(1);
    }
    let done = match Options::parse_from(arguments).task {
        Task::Build(args) => build::build("build", args),
        Task::Run(args) => build::build("run", args),
        Task::Test(args) => build::build("test", args),
        Task::Bench(args) => build::build("bench", args),
        Task::Explain(options) => report::explain(&options),
        Task::Emit(options) => report::emit(&options),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

/// Links in rustc's place. What goes wrong is left in a file: rustc would bury it.
fn linker(arguments: Vec<OsString>) -> ExitCode {
    let Some(state) = std::env::var_os(STATE_VARIABLE) else {
        eprintln!("`{LINKER_NAME}` links for `cargo cotangent` only: {STATE_VARIABLE} is not set");
        return ExitCode::FAILURE;
    };
    let state = State::at(PathBuf::from(state));
    let keep = std::env::var_os(KEEP_VARIABLE).is_some_and(|v| v == "1");
    let refused = if keep { Refused::Keep } else { Refused::Fail };
    match capture::link(arguments, &state, refused, &raise_requests) {
        Ok(status) => match status.code() {
            Some(0) => ExitCode::SUCCESS,
            code => code
                .and_then(|c| u8::try_from(c).ok())
                .map_or(ExitCode::FAILURE, ExitCode::from),
        },
        Err(failure) => {
            let left = failure.leave(&state.failures(), &std::process::id().to_string());
            if let Err(error) = left {
                eprintln!("cannot write to {}: {error}", state.failures().display());
                eprintln!("{}", failure.render(Path::new(""), false));
            }
            ExitCode::FAILURE
        }
    }
}
