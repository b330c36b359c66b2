//! Source locations.

use super::raw::{M, V};
use cotangent_graph::ir::Loc;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Locations of all modules of a context, numbered; number zero has none.
#[derive(Default)]
pub(crate) struct Locations<'c> {
    numbers: RefCell<HashMap<M<'c>, u32>>,
    table: RefCell<Vec<Rc<[Loc]>>>,
}

impl<'c> Locations<'c> {
    /// Where an instruction comes from: its own frame first, then the frames that it was inlined into.
    pub(super) fn of(&self, inst: V<'c>) -> u32 {
        let Some(node) = inst.debug_loc() else {
            return 0;
        };
        *self.numbers.borrow_mut().entry(node).or_insert_with(|| {
            let frames = std::iter::successors(Some(node), |m| m.inlined_at()).map(|m| Loc {
                file: m.scope().and_then(M::file).map(file_name).unwrap_or_default(),
                line: m.line(),
                column: m.column(),
            });
            let mut table = self.table.borrow_mut();
            table.push(frames.collect());
            table.len() as u32
        })
    }

    /// The locations of a number.
    pub(crate) fn get(&self, number: u32) -> Rc<[Loc]> {
        let index = (number as usize).checked_sub(1);
        index
            .and_then(|i| self.table.borrow().get(i).cloned())
            .unwrap_or_else(|| Rc::new([]))
    }
}

/// The file's name as the compiler was given it; joined to its directory where that lies outside of the crate.
fn file_name(file: M<'_>) -> String {
    let (directory, name) = file.path();
    if name.starts_with('/') || directory.is_empty() || !directory.contains("/registry/src/") {
        name
    } else {
        format!("{directory}/{name}")
    }
}
