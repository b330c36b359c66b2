//! The flags for rustc: the user's own, and those that make rustc hand us bitcode.
//!
//! Cargo takes flags from the first place that has any: the environment, `target` tables, `build`. Ours go through the
//! environment and so would hide the user's; they are looked up here and passed along.

use crate::config::{Config, words};
use crate::toolchain::Toolchain;
use anyhow::{Context, Result};
use cargo_platform::{Cfg, Platform};
use std::process::Command;
use std::str::FromStr;

/// What separates flags in Cargo's encoded variables.
const SEPARATOR: &str = "\x1f";
/// What makes rustc emit bitcode that is as it was written: unoptimised, for us to read and to compile.
const CAPTURE: [&str; 4] = ["-C", "linker-plugin-lto", "-C", "no-prepopulate-passes"];

/// A variable of the environment, as text.
type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Flags for rustc, encoded for `CARGO_ENCODED_RUSTFLAGS`.
pub(crate) fn encoded_rustflags(config: &Config, toolchain: &Toolchain) -> Result<String> {
    let environment = |name: &str| std::env::var(name).ok();
    let mut flags = match from_environment(&environment, "RUSTFLAGS") {
        Some(flags) => flags,
        None => {
            let cfg = if config.targets().any(|(name, _)| name.starts_with("cfg(")) {
                print_cfg()?
            } else {
                Vec::new()
            };
            configured(config, toolchain, &cfg, &environment)
        }
    };
    flags.extend(CAPTURE.map(str::to_owned));
    Ok(flags.join(SEPARATOR))
}

/// Flags for rustdoc, which compiles documentation tests, encoded for `CARGO_ENCODED_RUSTDOCFLAGS`.
pub(crate) fn encoded_rustdocflags(config: &Config, linker: &str) -> String {
    let environment = |name: &str| std::env::var(name).ok();
    let mut flags = from_environment(&environment, "RUSTDOCFLAGS")
        .or_else(|| environment("CARGO_BUILD_RUSTDOCFLAGS").map(|v| split(&v)))
        .or_else(|| config.words(&["build", "rustdocflags"]))
        .unwrap_or_default();
    flags.extend(CAPTURE.map(str::to_owned));
    flags.extend(["-C".to_owned(), format!("linker={linker}")]);
    flags.join(SEPARATOR)
}

fn from_environment(environment: Environment<'_>, name: &str) -> Option<Vec<String>> {
    match environment(&format!("CARGO_ENCODED_{name}")) {
        Some(encoded) if encoded.is_empty() => Some(Vec::new()),
        Some(encoded) => Some(encoded.split(SEPARATOR).map(str::to_owned).collect()),
        None => environment(name).map(|flags| split(&flags)),
    }
}

/// The flags of `target` tables that match the host, or else those of `build`.
fn configured(config: &Config, toolchain: &Toolchain, cfg: &[Cfg], environment: Environment<'_>) -> Vec<String> {
    let mut flags = Vec::new();
    for (name, table) in config.targets() {
        let matches = match name.starts_with("cfg(") {
            true => Platform::from_str(name).is_ok_and(|platform| platform.matches(&toolchain.host, cfg)),
            false => name == toolchain.host,
        };
        if matches && let Some(of_table) = table.get("rustflags").and_then(words) {
            flags.extend(of_table);
        }
    }
    flags.extend(
        environment(&toolchain.host_variable("RUSTFLAGS"))
            .map(|v| split(&v))
            .unwrap_or_default(),
    );
    if flags.is_empty() {
        flags = config.words(&["build", "rustflags"]).unwrap_or_default();
        flags.extend(
            environment("CARGO_BUILD_RUSTFLAGS")
                .map(|v| split(&v))
                .unwrap_or_default(),
        );
    }
    flags
}

fn split(flags: &str) -> Vec<String> {
    flags.split_whitespace().map(str::to_owned).collect()
}

fn print_cfg() -> Result<Vec<Cfg>> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--print", "cfg"])
        .output()
        .context("cannot run `rustc --print cfg`")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text.lines().filter_map(|line| Cfg::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain() -> Toolchain {
        Toolchain::parse_for_test("rustc 1.95.0\nhost: x86_64-unknown-linux-gnu\nLLVM version: 22.1.2\n")
    }

    fn flags(config: &str, environment: &[(&str, &str)]) -> Vec<String> {
        let config = Config::from_text(config);
        let lookup = |name: &str| environment.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string());
        let cfg = [Cfg::from_str("unix").unwrap()];
        from_environment(&lookup, "RUSTFLAGS").unwrap_or_else(|| configured(&config, &toolchain(), &cfg, &lookup))
    }

    const BOTH: &str = "build.rustflags = ['build']\n[target.x86_64-unknown-linux-gnu]\nrustflags = ['host']\n[target.'cfg(unix)']\nrustflags = ['unix']\n[target.'cfg(windows)']\nrustflags = ['windows']\n";

    #[test]
    fn tables_of_the_target_hide_those_of_the_build() {
        let mut found = flags(BOTH, &[]);
        found.sort();
        assert_eq!(found, ["host", "unix"]);
        assert_eq!(
            flags("build.rustflags = '-C link-arg=-Wl,-rpath,/x'", &[]),
            ["-C", "link-arg=-Wl,-rpath,/x"]
        );
    }

    #[test]
    fn the_environment_hides_the_configuration() {
        assert_eq!(flags(BOTH, &[("RUSTFLAGS", "-g  -O")]), ["-g", "-O"]);
        assert_eq!(
            flags(BOTH, &[("RUSTFLAGS", "-g"), ("CARGO_ENCODED_RUSTFLAGS", "a b\x1fc")]),
            ["a b", "c"]
        );
        assert_eq!(flags(BOTH, &[("RUSTFLAGS", "")]), Vec::<String>::new());
    }
}
