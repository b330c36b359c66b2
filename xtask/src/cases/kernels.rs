//! Kernels: `c/` with C and C++ programs, `rust/` with tests in Rust. A case passes if it passes at every level of
//! optimisation.

use super::crates::TestCrate;
use super::{End, Report, c};
use crate::setup;
use anyhow::{Result, bail};
use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How kernels are run.
#[derive(Args)]
pub(super) struct Ways {
    /// Only kernels whose name contains this
    #[arg(long)]
    filter: Option<String>,
    /// C programs: with the pass in `opt` between two runs of `clang`, not inside `clang`
    #[arg(long)]
    opt: bool,
    /// C programs: also under the address sanitizer, with a poisoned allocator, and under valgrind
    #[arg(long)]
    stress: bool,
    /// C programs: this plugin, not the one that is built now
    #[arg(long, value_name = "LIBRARY")]
    plugin: Option<PathBuf>,
}

/// The levels at which Rust tests are run.
const RUST_LEVELS: [u8; 2] = [0, 3];

/// Runs the kernels of a folder.
pub(super) fn run(from: &Path, only: Option<&str>, options: &Ways) -> Result<Report> {
    let wanted = |language: &str| only.is_none_or(|o| o == language) && from.join(language).is_dir();
    if !wanted("c") && !wanted("rust") {
        bail!("{} has neither `c` nor `rust` of what is asked for", from.display());
    }
    let mut report = Report::default();
    let filter = options.filter.as_deref();
    if wanted("c") {
        let plugin = match &options.plugin {
            Some(plugin) => std::path::absolute(plugin)?,
            None => crate::plugin::build()?,
        };
        let way = c::Way {
            plugin,
            opt: options.opt,
            stress: options.stress,
        };
        add(&mut report, "c", c::run(&from.join("c"), filter, &way)?);
    }
    if wanted("rust") {
        setup::ensure()?;
        let mut ends = Vec::new();
        for level in RUST_LEVELS {
            let outcomes = TestCrate::write("kernels", &from.join("rust"), level)?.run(filter)?;
            ends.extend(
                outcomes
                    .into_iter()
                    .map(|o| (o.name, format!("opt-level {level}"), o.end)),
            );
        }
        add(&mut report, "rust", ends);
    }
    if report.passed + report.failed + report.refused == 0 {
        bail!("no case's name contains that");
    }
    Ok(report)
}

/// Adds cases that were run in several ways: each passes if it passes in all, and is refused if no way gave anything
/// worse.
fn add(report: &mut Report, language: &str, ends: Vec<(String, String, End)>) {
    let mut cases: BTreeMap<String, Vec<(String, End)>> = BTreeMap::new();
    for (name, way, end) in ends {
        cases.entry(name).or_default().push((way, end));
    }
    for (name, ends) in cases {
        let name = format!("{language}/{name}");
        let (mut failed, mut refused) = (Vec::new(), Vec::new());
        for (way, end) in ends {
            match end {
                End::Passed => {}
                End::Refused(why) => refused.push((way, why)),
                End::Failed(why) => failed.push((way, why)),
            }
        }
        let all = |list: &[(String, String)]| list.iter().map(|(way, _)| way.as_str()).collect::<Vec<_>>().join(", ");
        match (failed.first(), refused.first()) {
            (Some((_, why)), _) => report.add(&format!("{name} ({})", all(&failed)), End::Failed(why.clone())),
            (None, Some((_, why))) => report.add(&format!("{name} ({})", all(&refused)), End::Refused(why.clone())),
            (None, None) => report.add(&name, End::Passed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_no_better_than_its_worst_level() {
        let mut report = Report::default();
        let end = |name: &str, way: &str, end| (name.to_owned(), way.to_owned(), end);
        let ends = vec![
            end("a", "-O0", End::Passed),
            end("a", "-O1", End::Refused("r".into())),
            end("b", "-O0", End::Failed("f".into())),
            end("b", "-O1", End::Refused("r".into())),
            end("c", "-O0", End::Passed),
        ];
        add(&mut report, "c", ends);
        assert_eq!((report.passed, report.failed, report.refused), (1, 1, 1));
        assert_eq!(report.failures, ["c/b (-O0)"]);
        assert_eq!(report.refusals, [("c/a (-O1)".to_owned(), "r".to_owned())]);
    }
}
