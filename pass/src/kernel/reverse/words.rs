//! Arithmetic on words: shifts and masks that pack and unpack lanes, and signs of floats.
//!
//!     forward   y = op(x..)        y' = op(x'..): shadow pointers are packed as pointers are
//!     reverse   x̄ += op⁻¹(ȳ)       lanes go back where they came from
//!               x ^ sign           -x, so x̄ += -ȳ
//!               x & ~sign          |x|, so x̄ += ȳ, negated where x is negative
//!
//! Every lane of a cotangent that carries no float is zero, and adding to a word looks at its float lanes only: so what a
//! shift brings from elsewhere does no harm.

use super::construct::Construct;
use super::plan::{Need, Plan};
use super::sweep::Sweep;
use crate::kernel::Refusal;
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
        LLVMTrunc | LLVMZExt | LLVMOr => true,
        LLVMShl | LLVMLShr => i.operand(1).is_constant(),
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
    match (plan.active(i) && sign(i) == Some(Sign::Clear), mask(i)) {
        (true, Some((x, _))) => vec![Need::Primal(x)],
        _ => vec![],
    }
}

pub(super) fn reverse<'m>(i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    if !s.plan.active(i) {
        return Ok(());
    }
    let cotangent = s.take(i);
    let x = i.operand(0);
    let b = s.b;
    match i.opcode() {
        Opcode::LLVMTrunc => s.accumulate(x, b.zext(cotangent, x.ty())),
        Opcode::LLVMZExt => s.accumulate(x, b.trunc(cotangent, x.ty())),
        Opcode::LLVMShl => s.accumulate(x, b.lshr(cotangent, i.operand(1))),
        Opcode::LLVMLShr => s.accumulate(x, b.shl(cotangent, i.operand(1))),
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
            s.accumulate(x, back);
        }
    }
    Ok(())
}
