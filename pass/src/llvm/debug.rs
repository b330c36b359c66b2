//! Source locations.

use super::raw::{M, V};
use cotangent_graph::ir::Loc;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Locations by metadata node, so that equal ones share memory.
#[derive(Default)]
pub(crate) struct Locations<'c>(RefCell<HashMap<M<'c>, Rc<[Loc]>>>);

impl<'c> Locations<'c> {
    /// Where an instruction comes from: its own frame first, then the frames that it was inlined into.
    pub(super) fn of(&self, inst: V<'c>) -> Rc<[Loc]> {
        let Some(node) = inst.debug_loc() else {
            return Rc::new([]);
        };
        if let Some(found) = self.0.borrow().get(&node) {
            return found.clone();
        }
        let mut locs = vec![];
        let mut at = Some(node);
        while let Some(m) = at {
            locs.push(Loc {
                file: m.scope().and_then(M::file).map(file_name).unwrap_or_default(),
                line: m.line(),
                column: m.column(),
            });
            at = m.inlined_at();
        }
        let locs: Rc<[Loc]> = locs.into();
        self.0.borrow_mut().insert(node, locs.clone());
        locs
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
