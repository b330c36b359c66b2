//! Places in the source, and refusals that name them.

use super::{Eval, Flow, Frame, Stop};
use cotangent_graph::ir::Loc;
use cotangent_graph::program::Refusal;
use std::rc::Rc;

impl<'a> Eval<'a> {
    /// Moves to a place of the current function.
    pub(super) fn enter(&mut self, at: u32) {
        let loader = self.loader;
        let own = self.places.entry(at).or_insert_with(|| {
            let locs = loader.locations(at);
            locs.iter()
                .find(|l| is_user(l))
                .or(locs.first())
                .map(|l| Rc::new(l.clone()))
        });
        let user = own.clone().filter(|l| is_user(l));
        let outer = self.stack.last().and_then(|f| f.user.clone());
        self.here = Frame {
            at,
            user: user.or(outer).or_else(|| own.clone()),
        };
    }

    /// The current place in the user's own source: the innermost frame that is not a library's.
    pub(crate) fn loc(&self) -> Option<Rc<Loc>> {
        self.here.user.clone()
    }

    pub(super) fn frames(&self) -> Vec<Loc> {
        let numbers = std::iter::once(&self.here).chain(self.stack.iter().rev()).map(|f| f.at);
        numbers.flat_map(|n| self.loader.locations(n).to_vec()).collect()
    }

    /// Records that something cannot be raised, and stops.
    pub(crate) fn refuse<T>(&mut self, message: impl Into<String>) -> Flow<T> {
        let at: Vec<Loc> = self.frames().into_iter().filter(is_user).take(8).collect();
        let refusal = Refusal {
            message: message.into(),
            at,
        };
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
        Err(Stop::Refused)
    }
}

/// Where Cargo and rustc keep the sources of registry crates, of crates from version control, of the standard library.
const LIBRARIES: [&str; 2] = ["/registry/src/", "/git/checkouts/"];
const STANDARD: [&str; 2] = ["/rustc/", "library/"];

/// Is the file part of the user's own code?
pub fn is_user(loc: &Loc) -> bool {
    let library = LIBRARIES.iter().any(|l| loc.file.contains(l)) || STANDARD.iter().any(|s| loc.file.starts_with(s));
    !library && loc.line > 0
}
