//! Which cases of a folder are run, as both drivers take it on their command lines.

use crate::{Case, load};
use anyhow::{Result, ensure};
use clap::Args;
use std::path::PathBuf;

/// A folder, and which of its cases.
#[derive(Args, Clone, Debug, Default)]
pub struct Selection {
    /// Folder of the cases
    pub folder: PathBuf,
    /// Only cases of this tier: P0, P1, P2, other
    #[arg(long)]
    pub tier: Option<String>,
    /// Only cases whose name contains this
    #[arg(long)]
    pub only: Option<String>,
}

impl Selection {
    /// The cases.
    ///
    /// # Errors
    /// If the folder cannot be read, or none of its cases is selected.
    pub fn cases(&self) -> Result<Vec<Case>> {
        let selected = |c: &Case| {
            self.tier.as_ref().is_none_or(|t| *t == c.tier) && self.only.as_ref().is_none_or(|o| c.id.contains(o))
        };
        let cases: Vec<Case> = load(&self.folder)?.into_iter().filter(selected).collect();
        ensure!(!cases.is_empty(), "no case in {} is selected", self.folder.display());
        Ok(cases)
    }
}
