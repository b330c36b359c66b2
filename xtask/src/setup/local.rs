//! Cargo's settings for this machine: `.cargo/cotangent.toml`, which `.cargo/config.toml` includes.
//!
//! They let plain `cargo build` and `cargo test` find LLVM and LibTorch, and built programs find LibTorch's libraries.

use super::libtorch::Torch;
use super::llvm::PREFIX_VARIABLE;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Where things are.
pub(super) struct Settings {
    /// LLVM's folder.
    pub(super) llvm: PathBuf,
    /// LibTorch.
    pub(super) torch: Torch,
}

impl Settings {
    fn text(&self) -> Result<String> {
        let mut env = Table::new();
        let mut set = |name: &str, value: &Path| env.insert(name.into(), Value::String(value.display().to_string()));
        set(PREFIX_VARIABLE, &self.llvm);
        let lib = match &self.torch {
            Torch::Folder(folder) => {
                set("LIBTORCH", folder);
                folder.join("lib")
            }
            Torch::Python(lib) => {
                set("LIBTORCH_USE_PYTORCH", Path::new("1"));
                // The folder above `lib` has `include` too.
                set("LIBTORCH", lib.parent().unwrap_or(lib));
                lib.clone()
            }
        };
        let rpath = format!("link-arg=-Wl,-rpath,{}", lib.display());
        let mut build = Table::new();
        // Documentation tests are programs too.
        for tool in ["rustflags", "rustdocflags"] {
            build.insert(tool.into(), Value::Array(vec!["-C".into(), rpath.clone().into()]));
        }
        let mut root = Table::new();
        root.insert("env".into(), env.into());
        root.insert("build".into(), build.into());
        let text = toml::to_string(&root).context("cannot write TOML")?;
        Ok(format!("# Written by `cargo xtask setup`.\n\n{text}"))
    }
}

/// Writes the settings. A file that says the same already is left alone: Cargo looks at its time.
pub(super) fn write(settings: &Settings) -> Result<()> {
    let file = file();
    let text = settings.text()?;
    if std::fs::read_to_string(&file).ok().as_ref() != Some(&text) {
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    eprintln!("      {}", file.display());
    Ok(())
}

/// Whether the settings are written, and what they name is still there.
pub(super) fn is_complete() -> bool {
    llvm().is_some() && named("LIBTORCH").is_some()
}

/// LLVM's folder, if the settings name it and it is still there.
pub(super) fn llvm() -> Option<PathBuf> {
    named(PREFIX_VARIABLE)
}

/// What the settings name with a variable, if it is there.
fn named(variable: &str) -> Option<PathBuf> {
    let settings: Table = std::fs::read_to_string(file()).ok()?.parse().ok()?;
    let path = Path::new(settings.get("env")?.get(variable)?.as_str()?);
    path.exists().then(|| path.to_owned())
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .with_file_name(".cargo")
        .join("cotangent.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(torch: Torch) -> Table {
        let settings = Settings {
            llvm: "/llvm".into(),
            torch,
        };
        settings.text().unwrap().parse().unwrap()
    }

    #[test]
    fn programs_find_the_libraries_of_either_kind_of_libtorch() {
        for (torch, root) in [
            (Torch::Folder("/t".into()), "/t"),
            (Torch::Python("/py/torch/lib".into()), "/py/torch"),
        ] {
            let table = settings(torch);
            assert_eq!(table["env"]["LIBTORCH"].as_str(), Some(root));
            let flags = table["build"]["rustflags"].as_array().unwrap();
            assert_eq!(flags[1].as_str().unwrap(), format!("link-arg=-Wl,-rpath,{root}/lib"));
        }
    }
}
