//! `memcpy`, `memmove` and `memset`.
//!
//!     forward   copy(d, s, n)     shadow pointers in S[s] are copied to S[d]
//!               set(d, b, n)      nothing: floats of one byte repeated do not vary
//!     reverse   S[s] += S[d]; S[d] = 0, for the floats among the bytes
//!               S[d] = 0

use super::augment::Augment;
use super::memory::guarded;
use super::plan::{Need, Plan, Target};
use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::llvm::Value;

/// Destination, and what is copied from there or set to.
pub(super) fn needs<'m>(i: Value<'m>, plan: &Plan<'m>) -> Vec<Need<'m>> {
    let mut needs = vec![Need::Primal(i.operand(2))];
    for pointer in [i.operand(0), i.operand(1)] {
        if pointer.ty().is_pointer() && plan.known_target(pointer) != Target::Inactive {
            needs.push(Need::Shadow(pointer));
        }
    }
    needs
}

pub(super) fn forward_copy<'m>(_: Value<'m>, _: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    Ok(())
}

pub(super) fn forward_fill<'m>(_: Value<'m>, _: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    Ok(())
}

pub(super) fn reverse_copy<'m>(i: Value<'m>, _: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    Err(Refusal::at(
        i,
        "a copy of memory of unknown content",
        "copy the values one by one",
    ))
}

pub(super) fn reverse_fill<'m>(i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    let known = s.plan.known_target(i.operand(0));
    if known == Target::Inactive {
        return Ok(());
    }
    let (shadow, bytes) = (s.shadow(i.operand(0))?, s.primal(i.operand(2))?);
    let byte = s.engine.module().context().int(8).zero();
    let b = s.b;
    guarded(b, s.plan, known, shadow, None, || {
        b.memset(shadow, byte, bytes, 1);
        None
    });
    Ok(())
}
