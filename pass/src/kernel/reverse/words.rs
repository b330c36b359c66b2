//! Arithmetic on words: shifts and masks that pack and unpack lanes, and signs of floats.
//!
//!     forward   y = op(x..)        y' = op(x'..): shadow pointers are packed as pointers are
//!     reverse   x̄ += op⁻¹(ȳ)       lanes go back where they came from
//!               x ^ sign           -x, so x̄ += -ȳ
//!               x & ~sign          |x|, so x̄ += ȳ, negated where x is negative
//!
//! Every lane of a cotangent that carries no float is zero, and adding to a word looks at its float lanes only: so what a
//! shift brings from elsewhere does no harm. What comes back of a float that was taken apart are pieces: they are put
//! together on their own, and what they make is added as the float that it is.

use super::construct::Construct;
use super::plan::{Need, Plan};
use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::kernel::analysis::Kinds;
use crate::llvm::{Opcode, Value};

/// What a mask does to the float in a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Flip,
    Clear,
    Keep,
}

/// The constant operand, and the other.
fn mask<'m>(i: Value<'m>) -> Option<(Value<'m>, Value<'m>)> {
    if i.operand_count() != 2 {
        return None;
    }
    let (a, b) = (i.operand(0), i.operand(1));
    match (a.is_constant(), b.is_constant()) {
        (false, true) => Some((a, b)),
        (true, false) => Some((b, a)),
        _ => None,
    }
}

/// Does the operation with a constant work on the sign of the one float that the word is?
fn sign(i: Value<'_>) -> Option<Sign> {
    let (_, mask) = mask(i)?;
    let element = if mask.ty().is_vector() { mask.element(0)? } else { mask };
    if !element.is_const_int() || element.ty().int_width() > 64 {
        return None;
    }
    let bits = element.ty().int_width();
    let (value, top) = (element.zext_value(), 1u64 << (bits - 1));
    match i.opcode() {
        Opcode::LLVMXor | Opcode::LLVMAdd if value == top => Some(Sign::Flip),
        Opcode::LLVMAnd if value == top - 1 => Some(Sign::Clear),
        Opcode::LLVMAnd => Some(Sign::Keep),
        _ => None,
    }
}

pub(super) fn classify<'m>(i: Value<'m>, plan: &Plan<'m>) -> Result<Construct<'m>, Vec<Refusal>> {
    use Opcode::*;
    let carries = plan.carries(i);
    if !plan.active(i) && !plan.needs_shadow(i) {
        return Ok(Construct::Passive);
    }
    // The sum of two pointers, and the like, has no shadow that could be told.
    let two = i.operand_count() == 2 && i.operands().all(|x| !x.is_constant() && plan.carries(x).pointers);
    let moves = match i.opcode() {
        LLVMAnd | LLVMXor | LLVMAdd | LLVMSub if two => false,
        LLVMTrunc | LLVMZExt | LLVMOr | LLVMShl | LLVMLShr => true,
        LLVMAnd | LLVMXor | LLVMAdd => !carries.floats || sign(i).is_some(),
        LLVMSub => !carries.floats,
        _ => false,
    };
    if moves {
        return Ok(Construct::Word);
    }
    let help = "compute on the float or pointer, not on its bits";
    Err(vec![Refusal::at(
        i,
        "arithmetic on the bits of a float or pointer",
        help,
    )])
}

pub(super) fn needs<'m>(i: Value<'m>, plan: &Plan<'m>) -> Vec<Need<'m>> {
    if !plan.active(i) {
        return vec![];
    }
    match (i.opcode(), mask(i)) {
        (Opcode::LLVMShl | Opcode::LLVMLShr, _) => vec![Need::Primal(i.operand(1))],
        (_, Some((x, _))) if sign(i) == Some(Sign::Clear) => vec![Need::Primal(x)],
        _ => vec![],
    }
}

/// Does the operation move parts of the floats in its operand, and not only floats that are whole?
fn takes_apart<'m>(i: Value<'m>, plan: &Plan<'m>) -> bool {
    let wide = plan
        .leaves(i.operand(0))
        .lanes
        .iter()
        .any(|(_, k)| k.meets(Kinds::FLOATS.without(Kinds::F32)));
    let float = if wide { 64 } else { 32 };
    let whole = |bits: u64| bits.is_multiple_of(float);
    match i.opcode() {
        Opcode::LLVMTrunc => !whole(i.ty().int_width().into()),
        Opcode::LLVMShl | Opcode::LLVMLShr => {
            let by = i.operand(1);
            !by.is_const_int() || by.ty().int_width() > 64 || !whole(by.zext_value())
        }
        Opcode::LLVMAnd => sign(i) == Some(Sign::Keep),
        _ => false,
    }
}

pub(super) fn reverse<'m>(i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    if !s.plan.active(i) {
        return Ok(());
    }
    let cotangent = s.take(i);
    let x = i.operand(0);
    let b = s.b;
    let apart = !i.ty().is_vector() && takes_apart(i, s.plan);
    let give = |s: &mut Sweep<'_, 'm>, x: Value<'m>, back: Value<'m>| match apart {
        true => s.accumulate_piece(x, back),
        false => s.accumulate(x, back),
    };
    match i.opcode() {
        Opcode::LLVMTrunc => give(s, x, b.zext(cotangent, x.ty())),
        Opcode::LLVMZExt => s.accumulate(x, b.trunc(cotangent, x.ty())),
        Opcode::LLVMShl => {
            let by = s.primal(i.operand(1))?;
            give(s, x, b.lshr(cotangent, by));
        }
        Opcode::LLVMLShr => {
            let by = s.primal(i.operand(1))?;
            give(s, x, b.shl(cotangent, by));
        }
        Opcode::LLVMOr => {
            s.accumulate(i.operand(0), cotangent);
            s.accumulate(i.operand(1), cotangent);
        }
        _ => {
            let Some((x, mask)) = mask(i) else { return Ok(()) };
            let back = match sign(i) {
                Some(Sign::Flip) => b.xor(cotangent, mask),
                Some(Sign::Clear) => {
                    let negative = b.xor(s.primal(x)?, b.and(s.primal(x)?, mask));
                    b.xor(cotangent, negative)
                }
                _ => b.and(cotangent, mask),
            };
            give(s, x, back);
        }
    }
    Ok(())
}
