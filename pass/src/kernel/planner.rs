//! The one planner: what every request needs, each derivative once.

use super::{DiffRequest, Refusal};
use crate::llvm::Mod;

/// Emits the derivative functions that are asked for into the module.
///
/// # Errors
/// Everything that has no derivative, located. The module is then to be thrown away.
pub fn differentiate<'m>(_module: Mod<'m>, requests: &[DiffRequest<'m>]) -> Result<(), Vec<Refusal>> {
    let missing = |r: &DiffRequest<'m>| {
        let mode = format!("{:?} derivatives", r.mode);
        Refusal::of(
            &r.function.name(),
            mode,
            "this build of the pass has no engine for them",
        )
    };
    let refusals: Vec<_> = requests.iter().map(missing).collect();
    if refusals.is_empty() { Ok(()) } else { Err(refusals) }
}
