//! Runs the cases of a folder through the reference interpreter: `interpret FOLDER [TIER]`.

use anyhow::{Context, Result};
use cotangent_cases::{Report, interpret, load};
use std::path::Path;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let folder = args.next().context("usage: interpret FOLDER [TIER]")?;
    let tier = args.next();
    let mut report = Report::default();
    for case in load(Path::new(&folder))? {
        if tier.as_ref().is_none_or(|t| *t == case.tier) {
            report.add(&case.id, interpret(&case));
        }
    }
    for (id, why) in &report.refusals {
        println!("refused {id}: {why}");
    }
    for (id, why) in &report.failures {
        println!("FAILED {id}: {why}");
    }
    let (failed, refused) = (report.failures.len(), report.refusals.len());
    println!("passed {}, failed {failed}, refused {refused}", report.passed);
    Ok(())
}
