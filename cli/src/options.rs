//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Builds Rust programs with their derivatives.
#[derive(Parser, Debug)]
#[command(name = "cargo-cotangent", bin_name = "cargo cotangent", version, about)]
pub(crate) struct Options {
    #[command(subcommand)]
    pub(crate) task: Task,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Task {
    /// Build: takes the arguments of `cargo build`, and `--artifact FILE` to write the artifact out
    #[command(visible_alias = "b", disable_help_flag = true)]
    Build(CargoArguments),
    /// Build and run a program: takes the arguments of `cargo run`
    #[command(visible_alias = "r", disable_help_flag = true)]
    Run(CargoArguments),
    /// Build and run tests: takes the arguments of `cargo test`
    #[command(visible_alias = "t", disable_help_flag = true)]
    Test(CargoArguments),
    /// Build and run benches: takes the arguments of `cargo bench`
    #[command(disable_help_flag = true)]
    Bench(CargoArguments),
    /// Show what the pass made of a function
    Explain(Explain),
    /// Print a function at a stage of the pass
    Emit(Emit),
}

/// Cargo's own arguments.
#[derive(Args, Debug)]
pub(crate) struct CargoArguments {
    /// Arguments for Cargo
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<OsString>,
}

/// Which function, of which program.
#[derive(Args, Debug)]
pub(crate) struct Subject {
    /// The function: its path, or the end of it
    pub(crate) function: String,
    /// Read this artifact instead of what the last build wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) artifact: Option<PathBuf>,
    /// The kind and shape of a parameter, such as `x=f32[128,784]`; repeat it for each
    #[arg(long = "input", value_name = "NAME=KIND[SIZES]")]
    pub(crate) inputs: Vec<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// `explain`.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) subject: Subject,
}

/// `emit`.
#[derive(Args, Debug)]
pub(crate) struct Emit {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// The stage
    #[arg(long, value_enum, default_value_t = Stage::Raise)]
    pub(crate) stage: Stage,
}

/// A stage whose result can be printed. All but the first need `--input`.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The tree of decisions with its open graphs, as the artifact holds it
    Raise,
    /// The graph for such arguments: every size is a number
    Specialize,
    /// The graph without writes, and the writes that remain
    Functionalize,
    /// Forward and backward in one graph
    Differentiate,
    /// Forward and backward apart, and what is saved between them
    Partition,
    /// Both as they are executed: steps, slots, releases
    Plan,
}
