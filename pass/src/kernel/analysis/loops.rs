//! Loops: the forest of cycles of a function, and how often each goes round.
//!
//! **Promise.** Every cycle of the control flow graph that the entry reaches is in the forest, below the cycles that hold
//! it. One with a single entry is a natural loop with that header; others are irreducible. A count is exact, unless an
//! exit from which the function cannot return (a panic, unwinding) is taken before: see [`Analyses::backedges`].

use crate::llvm::{Analyses, Backedges, Block, CycleRef, Function};
use std::collections::HashMap;
use std::fmt::Write;

/// A cycle of the control flow graph.
#[derive(Clone, Debug)]
pub struct Loop<'m> {
    /// Where it is entered: the header alone, if it is a natural loop.
    pub entries: Vec<Block<'m>>,
    /// Its blocks, those of inner loops included, in the function's order.
    pub blocks: Vec<Block<'m>>,
    /// Blocks that lead back to the entry.
    pub latches: Vec<Block<'m>>,
    /// Edges that leave it.
    pub exits: Vec<(Block<'m>, Block<'m>)>,
    /// The loop around it.
    pub parent: Option<usize>,
    /// How often it goes round again.
    pub backedges: Backedges,
}

impl Loop<'_> {
    /// Is it entered in more than one place?
    pub fn is_irreducible(&self) -> bool {
        self.entries.len() != 1
    }
}

/// The loops of a function, in the order of their first blocks.
pub fn loops<'m>(f: Function<'m>, llvm: &Analyses<'m>) -> Vec<Loop<'m>> {
    let mut found: Vec<Loop<'m>> = vec![];
    let mut numbers: HashMap<CycleRef<'m>, usize> = HashMap::new();
    let mut parents: Vec<Option<CycleRef<'m>>> = vec![];
    for block in f.blocks() {
        let mut cycle = llvm.cycle_of(block);
        while let Some(c) = cycle {
            let parent = llvm.cycle_parent(c);
            let number = *numbers.entry(c).or_insert_with(|| {
                let entries = llvm.cycle_entries(c);
                let backedges = match entries[..] {
                    [header] => llvm.backedges(header),
                    _ => Backedges::Unknown,
                };
                parents.push(parent);
                found.push(Loop {
                    entries,
                    blocks: vec![],
                    latches: vec![],
                    exits: vec![],
                    parent: None,
                    backedges,
                });
                found.len() - 1
            });
            found[number].blocks.push(block);
            cycle = parent;
        }
    }
    for (l, parent) in found.iter_mut().zip(parents) {
        l.parent = parent.and_then(|p| numbers.get(&p).copied());
        for block in &l.blocks {
            let next = block.successors();
            if next.iter().any(|n| l.entries.contains(n)) {
                l.latches.push(*block);
            }
            let out = next.into_iter().filter(|n| !l.blocks.contains(n));
            l.exits.extend(out.map(|n| (*block, n)));
        }
    }
    found
}

/// Text form.
pub fn print<'m>(f: Function<'m>, llvm: &Analyses<'m>) -> String {
    let mut text = format!("@{}\n", f.name());
    let names = |blocks: &[Block<'m>]| blocks.iter().map(|b| b.name()).collect::<Vec<_>>().join(" ");
    for (i, l) in loops(f, llvm).iter().enumerate() {
        let sort = if l.is_irreducible() { "irreducible" } else { "loop" };
        let _ = write!(text, "  #{i} {sort} {}: blocks {}", names(&l.entries), names(&l.blocks));
        let _ = write!(text, "; latches {}; exits", names(&l.latches));
        for (from, to) in &l.exits {
            let _ = write!(text, " {}->{}", from.name(), to.name());
        }
        if let Some(p) = l.parent {
            let _ = write!(text, "; in #{p}");
        }
        let _ = match l.backedges {
            Backedges::Unknown => writeln!(text, "; count unknown"),
            Backedges::Computable => writeln!(text, "; counted"),
            Backedges::Constant(n) => writeln!(text, "; {n} times again"),
        };
    }
    text
}
