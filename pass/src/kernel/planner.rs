//! The one planner: what every request needs, each derivative once.

use super::engine::Engine;
use super::order::order;
use super::{DiffRequest, Refusal, Tape, root, support};
use crate::llvm::{Analyses, Mod};

/// Emits the derivative functions that are asked for into the module.
///
/// # Errors
/// Everything that has no derivative, located. The module is then to be thrown away.
pub fn differentiate<'m>(module: Mod<'m>, requests: &[DiffRequest<'m>]) -> Result<(), Vec<Refusal>> {
    differentiate_with_tapes(module, requests).map(drop)
}

/// As [`differentiate`]; tells what every derivative in reverse mode keeps between its sweeps, inner functions first.
///
/// # Errors
/// As there.
pub fn differentiate_with_tapes<'m>(module: Mod<'m>, requests: &[DiffRequest<'m>]) -> Result<Vec<Tape>, Vec<Refusal>> {
    let analyses = Analyses::new(module);
    answer(module, requests, &analyses)
}

fn answer<'m>(
    module: Mod<'m>,
    requests: &[DiffRequest<'m>],
    analyses: &'m Analyses<'m>,
) -> Result<Vec<Tape>, Vec<Refusal>> {
    let mut tapes = vec![];
    let mut engine = Engine::new(module, analyses, requests).map_err(|r| vec![r])?;
    let mut refusals: Vec<Refusal> = vec![];
    // What was answered since the engine looked at the module: to it these are still functions without bodies.
    let mut new: Vec<usize> = vec![];
    let order = order(requests).map_err(|r| vec![r])?;
    for (at, (k, calls)) in order.iter().enumerate() {
        let request = &requests[*k];
        if calls.iter().any(|called| new.contains(called)) && refusals.is_empty() {
            // What the request calls is by now ordinary code. A new engine looks at it: handles of the old one may be
            // stale after the passes.
            engine.finish();
            let failed = |e: String| vec![Refusal::of(&request.function.name(), e, "please report this")];
            module.run_passes(NESTED).map_err(failed)?;
            analyses.forget_all();
            tapes.extend_from_slice(engine.tapes());
            let left: Vec<_> = order[at..].iter().map(|(k, _)| requests[*k].clone()).collect();
            engine = Engine::new(module, analyses, &left).map_err(|r| vec![r])?;
            new.clear();
        }
        match root::emit(&mut engine, request) {
            Ok(()) => new.push(*k),
            Err(more) => {
                let more: Vec<_> = more.into_iter().filter(|r| !refusals.contains(r)).collect();
                refusals.extend(more);
            }
        }
    }
    engine.finish();
    support::close(module).map_err(|e| vec![Refusal::of("cotangent", e, "please report this")])?;
    tapes.extend_from_slice(engine.tapes());
    if refusals.is_empty() { Ok(tapes) } else { Err(refusals) }
}

/// What makes a derivative that is differentiated again as plain as a primal.
const NESTED: &str = concat!(
    "always-inline,",
    "function(sroa<modify-cfg>,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,gvn,",
    "sroa<modify-cfg>,dse,instcombine<no-verify-fixpoint>,simplifycfg,adce,loop-simplify,lcssa)"
);
