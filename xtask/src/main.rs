//! `cargo xtask`: the chores of this workspace. Needs Rust alone.

mod cases;
mod chores;
mod kernels;
mod ops_table;
mod plugin;
mod setup;

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::process::ExitCode;

/// Chores of the Cotangent workspace
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask")]
struct Options {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Get LLVM, LibTorch and MNIST, and tell Cargo where they are
    Setup,
    /// Train on MNIST with compiled pullbacks, next to LibTorch's own autograd
    Demo(Rest),
    /// Run all tests
    Test(Rest),
    /// Run a bench, or all of them
    Bench(Rest),
    /// Run recorded cases: `ops`, `tensors` or `kernels`, with `--from FOLDER`
    Cases(cases::Options),
    /// Build the pass for `opt` and `clang`, and print its path
    Plugin,
    /// Write the table of LibTorch's functions anew, from torch-sys and PyTorch's records
    OpsTable(ops_table::Options),
    /// What CI runs: set-up, formatting, lints, tests
    Ci,
}

#[derive(Args)]
struct Rest {
    /// Arguments that are passed on
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

fn main() -> ExitCode {
    let done = match Options::parse().chore {
        Chore::Setup => setup::run(),
        Chore::Demo(rest) => chores::demo(&rest.arguments),
        Chore::Test(rest) => chores::test(&rest.arguments),
        Chore::Bench(rest) => chores::bench(&rest.arguments),
        Chore::Cases(options) => cases::run(&options),
        Chore::Plugin => plugin::build().map(|path| println!("{}", path.display())),
        Chore::OpsTable(options) => ops_table::run(&options),
        Chore::Ci => chores::ci(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Options;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Options::command().debug_assert();
    }
}
