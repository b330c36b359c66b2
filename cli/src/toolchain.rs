//! The rustc that Cargo will use: its host and its LLVM.

use anyhow::{Context, Result, bail};
use cotangent_pass::capture::LLVM_MAJOR;
use std::process::Command;

/// What `rustc -vV` says.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Toolchain {
    /// The first line, such as `rustc 1.95.0 (…)`.
    pub(crate) version: String,
    /// The target triple of this machine.
    pub(crate) host: String,
    llvm: String,
}

impl Toolchain {
    /// Asks rustc, and refuses one whose bitcode this build of Cotangent cannot read.
    pub(crate) fn find() -> Result<Toolchain> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(&rustc)
            .arg("-vV")
            .output()
            .with_context(|| format!("cannot run {rustc:?}"))?;
        let toolchain = Toolchain::parse(&String::from_utf8_lossy(&output.stdout))?;
        toolchain.check()?;
        Ok(toolchain)
    }

    fn parse(text: &str) -> Result<Toolchain> {
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|v| v.trim().to_owned())
        };
        match (text.lines().next(), field("host:"), field("LLVM version:")) {
            (Some(version), Some(host), Some(llvm)) => Ok(Toolchain {
                version: version.to_owned(),
                host,
                llvm,
            }),
            _ => bail!("`rustc -vV` names no host and LLVM version; it said:\n{text}"),
        }
    }

    fn check(&self) -> Result<()> {
        let major = self.llvm.split('.').next().and_then(|m| m.parse::<u32>().ok());
        if major != Some(LLVM_MAJOR) {
            bail!(
                "{} has LLVM {}, and this version of Cotangent reads the bitcode of LLVM {LLVM_MAJOR}; use a toolchain with LLVM {LLVM_MAJOR}, such as Rust 1.95.0 (`rustup override set 1.95.0`)",
                self.version,
                self.llvm
            );
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn parse_for_test(text: &str) -> Toolchain {
        Toolchain::parse(text).expect("the test's text is complete")
    }

    /// The host as it stands in the names of Cargo's variables.
    pub(crate) fn host_variable(&self, suffix: &str) -> String {
        format!(
            "CARGO_TARGET_{}_{suffix}",
            self.host.to_uppercase().replace(['-', '.'], "_")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_llvm(version: &str) -> Toolchain {
        let text = format!("rustc 1.99.0\nhost: x86_64-unknown-linux-gnu\nLLVM version: {version}\n");
        Toolchain::parse(&text).unwrap()
    }

    #[test]
    fn a_rustc_with_another_llvm_is_refused_by_name() {
        assert!(with_llvm("22.1.2").check().is_ok());
        let text = with_llvm("23.0.0").check().unwrap_err().to_string();
        assert!(text.contains("rustc 1.99.0 has LLVM 23.0.0"), "{text}");
    }

    #[test]
    fn cargos_variables_are_in_capitals() {
        let name = with_llvm("22.1.2").host_variable("LINKER");
        assert_eq!(name, "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER");
    }
}
