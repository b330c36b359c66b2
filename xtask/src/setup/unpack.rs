//! Unpacking parts of archives, with a progress bar.

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Unpacks those files of a wheel for which `place` names a destination. Returns how many there were.
pub(super) fn wheel(wheel: &Path, place: impl Fn(&str) -> Option<PathBuf>) -> Result<usize> {
    let in_wheel = || format!("cannot unpack {}", wheel.display());
    let file = io::BufReader::new(File::open(wheel).with_context(in_wheel)?);
    let mut archive = zip::ZipArchive::new(file).with_context(in_wheel)?;
    let mut chosen = Vec::new();
    let mut bytes = 0;
    for k in 0..archive.len() {
        let entry = archive.by_index_raw(k).with_context(in_wheel)?;
        if let Some(to) = place(entry.name()).filter(|_| entry.is_file()) {
            bytes += entry.size();
            chosen.push((k, to));
        }
    }
    let bar = bar(bytes);
    for (k, to) in &chosen {
        let mut entry = archive.by_index(*k).with_context(in_wheel)?;
        let folder = to.parent().context("a destination has a folder")?;
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let mut out = File::create(to).with_context(|| format!("cannot create {}", to.display()))?;
        io::copy(&mut bar.wrap_read(&mut entry), &mut out).with_context(in_wheel)?;
    }
    bar.finish_and_clear();
    Ok(chosen.len())
}

/// One text file of a wheel.
pub(super) fn text(wheel: &Path, name: &str) -> Result<String> {
    let in_wheel = || format!("cannot read {name} in {}", wheel.display());
    let file = io::BufReader::new(File::open(wheel).with_context(in_wheel)?);
    let mut archive = zip::ZipArchive::new(file).with_context(in_wheel)?;
    let entry = archive.by_name(name).with_context(in_wheel)?;
    io::read_to_string(entry).with_context(in_wheel)
}

/// Unpacks named files of a gzipped tar archive into a folder.
pub(super) fn tarball(tarball: &Path, names: &[&str], folder: &Path) -> Result<()> {
    let in_tarball = || format!("cannot unpack {}", tarball.display());
    let file = File::open(tarball).with_context(in_tarball)?;
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut found = 0;
    for entry in archive.entries().with_context(in_tarball)? {
        let mut entry = entry.with_context(in_tarball)?;
        let path = entry.path().with_context(in_tarball)?.into_owned();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        if names.contains(&name) {
            entry.unpack(folder.join(name)).with_context(in_tarball)?;
            found += 1;
        }
    }
    if found != names.len() {
        bail!(
            "{} has {found} of the {} files that it should have",
            tarball.display(),
            names.len()
        );
    }
    Ok(())
}

/// Unpacks a gzipped file.
pub(super) fn gzip(from: &Path, to: &Path) -> Result<()> {
    let source = File::open(from).with_context(|| format!("cannot read {}", from.display()))?;
    let mut out = File::create(to).with_context(|| format!("cannot create {}", to.display()))?;
    io::copy(&mut flate2::read::GzDecoder::new(source), &mut out)
        .with_context(|| format!("cannot unpack {}", from.display()))?;
    Ok(())
}

fn bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    if let Ok(style) = ProgressStyle::with_template("      unpacking {wide_bar} {bytes}/{total_bytes} {eta}") {
        bar.set_style(style);
    }
    bar
}
