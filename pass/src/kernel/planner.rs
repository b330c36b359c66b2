//! The one planner: what every request needs, each derivative once.

use super::engine::Engine;
use super::order::order;
use super::{DiffRequest, Refusal, root};
use crate::llvm::{Analyses, Mod};

/// Emits the derivative functions that are asked for into the module.
///
/// # Errors
/// Everything that has no derivative, located. The module is then to be thrown away.
pub fn differentiate<'m>(module: Mod<'m>, requests: &[DiffRequest<'m>]) -> Result<(), Vec<Refusal>> {
    let analyses = Analyses::new(module);
    answer(module, requests, &analyses)
}

fn answer<'m>(module: Mod<'m>, requests: &[DiffRequest<'m>], analyses: &'m Analyses<'m>) -> Result<(), Vec<Refusal>> {
    let roots = requests.iter().map(|r| r.function).collect();
    let mut engine = Engine::new(module, analyses, roots).map_err(|r| vec![r])?;
    let mut refusals: Vec<Refusal> = vec![];
    for k in order(requests).map_err(|r| vec![r])? {
        if let Err(more) = root::emit(&mut engine, &requests[k]) {
            let new: Vec<_> = more.into_iter().filter(|r| !refusals.contains(r)).collect();
            refusals.extend(new);
        }
    }
    if refusals.is_empty() { Ok(()) } else { Err(refusals) }
}
