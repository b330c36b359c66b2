//! Tensor programs: tests in Rust, and how their regions ran.

use super::crates::TestCrate;
use super::{End, Regions, Report};
use anyhow::{Result, bail};
use std::path::Path;

/// Builds and runs all tests of a folder.
pub(super) fn run(from: &Path, only: Option<&str>) -> Result<Report> {
    let outcomes = TestCrate::write("tensors", from, 0)?.run(only)?;
    if outcomes.is_empty() {
        bail!("no tests in {}", from.display());
    }
    let mut report = Report::default();
    let mut regions = Regions::default();
    for outcome in outcomes {
        if matches!(outcome.end, End::Passed) {
            // A line is: function, own ops, names of opaque ops.
            let mut lines = outcome.regions.lines();
            let opaque = lines.any(|l| l.split('\t').nth(2).is_some_and(|names| !names.is_empty()));
            *(if opaque { &mut regions.opaque } else { &mut regions.own }) += 1;
        }
        report.add(&outcome.name, outcome.end);
    }
    report.regions = Some(regions);
    Ok(report)
}
