//! What a derivative keeps between its sweeps, as people read it: bytes of a call, and of an iteration of each loop.

use crate::kernel::reverse::plan::Plan;
use crate::llvm::{Value, demangle};
use std::fmt::{Display, Formatter, Result};

/// What a function keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tape {
    /// The function.
    pub function: String,
    /// Bytes of a call: with the frames of the calls in it, if these are of known size.
    pub bytes: u64,
    /// Its loops, outer ones first.
    pub loops: Vec<Loop>,
}

/// What a loop keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Reads a plan.
    pub(crate) fn of(plan: &Plan<'_>) -> Self {
        let loops = plan.shape.regions.iter().enumerate().skip(1);
        let located = |i: &Value<'_>| i.location().is_some();
        Self {
            function: plan.function.name(),
            bytes: plan.frames.size(0),
            loops: loops
                .filter_map(|(region, r)| {
                    let location = r.header?.instructions().find(located).and_then(|i| i.location());
                    Some(Loop {
                        file: location.map(|l| l.file().1).unwrap_or_default(),
                        line: location.map_or(0, |l| l.position().0),
                        depth: r.depth - 1,
                        bytes: plan.frames.size(region),
                        counted: r.counted.is_some(),
                    })
                })
                .collect(),
        }
    }

    /// What an allocation for so many bytes takes of the arena.
    pub fn taken(bytes: u64) -> u64 {
        bytes.next_multiple_of(16)
    }
}

impl Display for Tape {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, "{}: {} bytes a call", demangle(&self.function), self.bytes)?;
        for l in &self.loops {
            let margin = "  ".repeat(l.depth as usize + 1);
            let place = match l.line {
                0 => String::new(),
                line => format!(" at {}:{line}", l.file),
            };
            writeln!(f, "{margin}loop{place}: {} bytes an iteration", l.bytes)?;
        }
        Ok(())
    }
}
