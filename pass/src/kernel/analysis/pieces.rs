//! Pointers that are moved in pieces: where bytes are copied that may be those of a pointer, what the pointer leads to is
//! reached from where the bytes go.
//!
//! Which bytes are copied, and do not only count, is known when [`words`](super::words) are: constraints are added then,
//! and solved again.

use super::constraints::Constraints;
use super::content::cells_within;
use super::kinds::Kinds;
use std::collections::HashSet;

/// Follows the pieces that `moved` tells, by slot. Was there anything new beside what was `followed` before?
pub(super) fn follow(c: &mut Constraints<'_, '_>, moved: &[bool], followed: &mut HashSet<(u32, u32, bool)>) -> bool {
    let mut new = vec![];
    for (slot, pointer, write) in c.bytes.clone() {
        if !moved.get(slot as usize).is_some_and(|m| *m) {
            continue;
        }
        let p = c.slots_of(pointer);
        let Some(t) = c.regions.target(p) else { continue };
        let mut cells = cells_within(c, t, Some(2));
        cells.retain(|cell| c.regions.kinds(*cell).meets(Kinds::PTR));
        // A buffer of bytes in between.
        cells.push(c.regions.bytes_of(t.node));
        for cell in cells {
            let (cell, slot) = (c.regions.rep(cell), c.regions.rep(slot));
            if cell != slot && followed.insert((slot, cell, write)) {
                new.push(if write { (slot, cell) } else { (cell, slot) });
            }
        }
    }
    for (from, to) in &new {
        c.regions.flow_whole(*from, *to);
    }
    c.regions.solve();
    !new.is_empty()
}
