//! What crosses the module: copied from memory that code outside knows, perhaps by way of the module's own memory and of
//! registers, to memory that code outside knows, and touched by no code of the module as what it is.
//!
//! Such cells are noted as foreign ([`Constraints::foreign`]). Numbers are no such cells: what is computed with is an integer.

use super::constraints::{Constraints, Flow};
use std::collections::HashSet;

/// Notes what crosses.
pub(super) fn note(c: &mut Constraints<'_, '_>) {
    let slots = c.regions.slot_count();
    let mut open: HashSet<u32> = HashSet::new();
    for node in 0..c.regions.node_count() as u32 {
        if c.regions.find(node).0 == node && c.regions.origin(node).open {
            for (_, cell) in c.regions.cells(node).0 {
                open.insert(c.regions.rep(cell));
            }
        }
    }
    let mut out = vec![vec![]; slots];
    let mut back = vec![vec![]; slots];
    for slot in 0..slots as u32 {
        if c.regions.rep(slot) == slot {
            out[slot as usize] = c.regions.copies(slot);
            for to in &out[slot as usize] {
                back[*to as usize].push(slot);
            }
        }
    }
    let from = beyond(&open, &out);
    let to = beyond(&open, &back);
    let mut numbers = HashSet::new();
    for (a, b, flow) in c.flows.clone() {
        if flow == Flow::Change {
            numbers.extend([c.regions.class(a), c.regions.class(b)]);
        }
    }
    for slot in 0..slots as u32 {
        let crosses = from[slot as usize] && to[slot as usize] && !open.contains(&slot);
        if crosses && c.regions.kinds(slot).is_none() {
            let class = c.regions.class(slot);
            if !numbers.contains(&class) {
                let kinds = c.foreign();
                c.regions.note(slot, kinds);
            }
        }
    }
}

/// What is reached from the slots over at least one edge.
fn beyond(from: &HashSet<u32>, edges: &[Vec<u32>]) -> Vec<bool> {
    let mut seen = vec![false; edges.len()];
    let mut work: Vec<u32> = from.iter().flat_map(|s| edges[*s as usize].iter().copied()).collect();
    while let Some(s) = work.pop() {
        if !std::mem::replace(&mut seen[s as usize], true) {
            work.extend(edges[s as usize].iter().filter(|t| !seen[**t as usize]));
        }
    }
    seen
}
