//! Kernels as an artifact tells of them: what their derivatives keep between the sweeps. The derivatives themselves are
//! native code of the program.

use serde::{Deserialize, Serialize};
use std::fmt::{Display, Formatter, Result};

/// A kernel with derivatives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelNote {
    /// What the runtime knows it by.
    pub key: String,
    /// What the macro says about it, as JSON.
    pub description: String,
    /// What each function in it keeps, inner ones first. Nothing where only forward mode is asked for.
    pub tapes: Vec<Tape>,
}

/// What a function keeps between its sweeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tape {
    /// The function.
    pub function: String,
    /// Bytes of a call: with the frames of the calls in it, if these are of known size.
    pub bytes: u64,
    /// Its loops, outer ones first.
    pub loops: Vec<Loop>,
}

/// What a loop keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loop {
    /// Source file, if it is known.
    pub file: String,
    /// Line, from one; zero if it is not known.
    pub line: u32,
    /// Number of loops around it.
    pub depth: u32,
    /// Bytes of an iteration.
    pub bytes: u64,
    /// Is it one block for all iterations? Otherwise each has one.
    pub counted: bool,
}

impl Tape {
    /// What a block of so many bytes takes of the memory of a call.
    pub fn taken(bytes: u64) -> u64 {
        bytes.next_multiple_of(16)
    }
}

impl Display for Tape {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "{}: {} bytes a call", self.function, self.bytes)?;
        for l in &self.loops {
            let margin = "  ".repeat(l.depth as usize + 1);
            let place = match l.line {
                0 => String::new(),
                line => format!(" at {}:{line}", l.file),
            };
            let blocks = match (l.bytes, l.counted) {
                (0, _) => "",
                (_, true) => ", one block for all of them",
                (_, false) => ", a block for each",
            };
            writeln!(f, "{margin}loop{place}: {} bytes an iteration{blocks}", l.bytes)?;
        }
        Ok(())
    }
}
