//! Atomic operations on integers in memory where floats or pointers may be as well: what a lock guards lies beside the lock,
//! and a call by pointer may lead to either. An integer has neither shadow nor cotangent: where there turns out to be one,
//! the program stops.
//!
//!     forward   y = op p, x       S[p] and x' are zero, and so is y'
//!     reverse                     S[p] and ȳ are zero

use super::augment::Augment;
use super::given::{is_integer, piece_left};
use super::memory::{guarded, or_aside};
use super::plan::{Need, Plan, Target};
use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::llvm::{Type, Value};

/// Is it of an integer, by its type?
pub(super) fn may_be_integer(i: Value<'_>) -> bool {
    i.operand(1).ty().is_int() && i.operand(1).ty().int_width() <= 64
}

pub(super) fn needs<'m>(i: Value<'m>, plan: &Plan<'m>) -> Vec<Need<'m>> {
    match plan.known_target(i.operand(0)) {
        Target::Inactive => vec![],
        _ => vec![Need::Shadow(i.operand(0))],
    }
}

/// The address, and the type of the integer there.
fn place<'m>(i: Value<'m>) -> (Value<'m>, Type<'m>) {
    (i.operand(0), i.operand(1).ty())
}

pub(super) fn forward<'m>(i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    let (address, ty) = place(i);
    let known = a.plan.known_target(address);
    if known != Target::Inactive {
        let shadow = a.shadow(address)?;
        let from = or_aside(a, known, shadow, || a.nothing(ty));
        is_integer(a.engine, a.b, i, a.b.load_aligned(ty, from, 1));
    }
    for x in i.operands().skip(1) {
        if x.ty() == ty && a.plan.carries(x).pointers {
            is_integer(a.engine, a.b, i, a.shadow(x)?);
        }
    }
    if a.plan.needs_shadow(i) {
        a.set_shadow(i, i.ty().zero());
    }
    Ok(())
}

pub(super) fn reverse<'m>(i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    if s.plan.active(i) {
        let cotangent = s.take(i);
        // A comparison gives what it found, and whether that was as expected.
        let found = match cotangent.ty().is_struct() {
            true => s.b.extract(cotangent, 0),
            false => cotangent,
        };
        is_integer(s.engine, s.b, i, found);
    }
    let (address, ty) = place(i);
    let known = s.plan.known_target(address);
    if known == Target::Inactive {
        return Ok(());
    }
    let shadow = s.shadow(address)?;
    let b = s.b;
    guarded(b, s.plan, known, shadow, None, || {
        let left = piece_left(s, shadow, b.load_aligned(ty, shadow, 1));
        is_integer(s.engine, b, i, left);
        None
    });
    Ok(())
}
