//! Renews the cases that the repository keeps: `excerpt FROM TO`, both folders of recorded cases.

use anyhow::{Context, Result};
use cotangent_cases::{excerpt, selection};
use std::path::Path;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut folder = || args.next().context("usage: excerpt FROM TO");
    let (from, to) = (folder()?, folder()?);
    let ids = selection(Path::new(&from))?;
    excerpt(Path::new(&from), Path::new(&to), &ids)?;
    println!("{} cases", ids.len());
    Ok(())
}
