//! Why a function is not differentiated, and where.

use crate::llvm::{Value, demangle};
use std::path::Path;

/// A construct without a derivative that the engine could vouch for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// The function that holds it.
    pub function: String,
    /// Directory and name of the source file; empty without debug information.
    pub file: (String, String),
    /// Line, from one; zero without debug information.
    pub line: u32,
    /// Column, from one.
    pub column: u32,
    /// What it is.
    pub construct: Box<str>,
    /// What the user can do.
    pub help: Box<str>,
}

impl Refusal {
    /// A refusal of an instruction, located where it was written: in the innermost function it was inlined from.
    pub fn at(instruction: Value<'_>, construct: impl Into<Box<str>>, help: impl Into<Box<str>>) -> Self {
        let location = instruction.location();
        let (line, column) = location.map_or((0, 0), |l| l.position());
        Self {
            function: instruction.block().parent().name(),
            file: location.map(|l| l.file()).unwrap_or_default(),
            line,
            column,
            construct: construct.into(),
            help: help.into(),
        }
    }

    /// A refusal of a whole function.
    pub fn of(function: &str, construct: impl Into<Box<str>>, help: impl Into<Box<str>>) -> Self {
        Self {
            function: function.into(),
            file: Default::default(),
            line: 0,
            column: 0,
            construct: construct.into(),
            help: help.into(),
        }
    }

    /// The refusal as users read it, with the function that they asked for.
    pub fn for_users(&self, asked: &str) -> cotangent_graph::program::Refusal {
        let inner = match demangle(&self.function) {
            name if name.is_empty() || name.contains(asked) => String::new(),
            name => format!(" in `{name}`"),
        };
        let help = if self.help.is_empty() {
            String::new()
        } else {
            format!("; {}", self.help)
        };
        let file = Path::new(&self.file.0).join(&self.file.1);
        let at = cotangent_graph::ir::Loc {
            file: file.to_string_lossy().into_owned(),
            line: self.line,
            column: self.column,
        };
        cotangent_graph::program::Refusal {
            message: format!("cannot differentiate `{asked}`: {}{inner}{help}", self.construct),
            at: if self.line == 0 { vec![] } else { vec![at] },
        }
    }
}
