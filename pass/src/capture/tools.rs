//! LLVM's tools: where they are, and the message when they are not.

use std::path::{Path, PathBuf};

/// The LLVM that everything here is made for.
pub const LLVM_MAJOR: u32 = 22;
/// The variable that names LLVM's folder; the same that the build of this crate reads.
pub const PREFIX_VARIABLE: &str = "LLVM_SYS_221_PREFIX";

/// The compiler driver and the linker that finish a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools {
    /// `clang`: it knows where the C library and its start-up files are.
    pub clang: PathBuf,
    /// `ld.lld`: it compiles bitcode while it links.
    pub lld: PathBuf,
}

/// Where a tool was looked for.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{name}` of LLVM {LLVM_MAJOR} was not found (looked in {places}); install it with `cargo xtask setup`, or with `apt-get install clang-{LLVM_MAJOR} lld-{LLVM_MAJOR}`, or set {PREFIX_VARIABLE} to LLVM's folder"
)]
pub struct MissingTool {
    name: &'static str,
    places: String,
}

impl Tools {
    /// Looks in LLVM's folder if one is named, in Debian's folder and on the `PATH`.
    ///
    /// # Errors
    /// If one of the tools is in none of them.
    pub fn find() -> Result<Tools, MissingTool> {
        let prefix = std::env::var_os(PREFIX_VARIABLE).map(PathBuf::from);
        let path: Vec<PathBuf> = std::env::var_os("PATH")
            .map(|p| std::env::split_paths(&p).collect())
            .unwrap_or_default();
        let tool = |name| find_tool(name, prefix.as_deref(), &path);
        Ok(Tools {
            clang: tool("clang")?,
            lld: tool("ld.lld")?,
        })
    }
}

fn find_tool(name: &'static str, prefix: Option<&Path>, path: &[PathBuf]) -> Result<PathBuf, MissingTool> {
    let debian = PathBuf::from(format!("/usr/lib/llvm-{LLVM_MAJOR}"));
    let in_folder = prefix
        .into_iter()
        .chain([debian.as_path()])
        .map(|folder| folder.join("bin").join(name));
    let on_path = path.iter().map(|folder| folder.join(format!("{name}-{LLVM_MAJOR}")));
    in_folder
        .chain(on_path)
        .find(|file| file.is_file())
        .ok_or_else(|| MissingTool {
            name,
            places: match prefix {
                Some(prefix) => format!("{}, {} and the PATH", prefix.display(), debian.display()),
                None => format!("{} and the PATH", debian.display()),
            },
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_folder_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        let clang = dir.path().join("bin/clang");
        std::fs::write(&clang, "").unwrap();
        assert_eq!(find_tool("clang", Some(dir.path()), &[]).unwrap(), clang);
    }

    #[test]
    fn a_missing_tool_says_how_to_get_it() {
        let text = find_tool("no-such-tool", None, &[]).unwrap_err().to_string();
        assert!(
            text.contains("`no-such-tool`") && text.contains("cargo xtask setup"),
            "{text}"
        );
    }
}
