//! What moves parts of values without computing: `phi`, `select`, parts of aggregates, casts, addresses.
//!
//!     forward   y = move(x..)     y' = move(x'..)              shadows move as the values do
//!     reverse   x̄ += move⁻¹(ȳ); ȳ = 0                          every part goes back where it came from
//!
//! A `phi` goes back along the edge that was taken: see `sweep.rs`.

use super::augment::Augment;
use super::plan::{Need, Plan};
use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::llvm::{Opcode, Value};

pub(super) fn needs<'m>(i: Value<'m>, plan: &Plan<'m>) -> Vec<Need<'m>> {
    if i.is(Opcode::LLVMSelect) && plan.active(i) {
        return vec![Need::Primal(i.operand(0))];
    }
    vec![]
}

pub(super) fn forward<'m>(i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    if !a.plan.carries(i).pointers {
        return Ok(());
    }
    if i.is(Opcode::LLVMPHI) {
        // Its sides may not have shadows yet: they are added when all have.
        let shadow = a.b.phi(i.ty());
        a.set_shadow(i, shadow);
        return Ok(());
    }
    let copy = i.duplicate();
    copy.erase_location();
    for (k, x) in i.operands().enumerate() {
        let pointers = a.plan.carries(x).pointers;
        let by = if pointers { a.shadow(x)? } else { a.primal(x) };
        copy.set_operand(k as u32, by);
    }
    a.b.insert(copy);
    a.set_shadow(i, copy);
    Ok(())
}

pub(super) fn reverse<'m>(i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    if i.is(Opcode::LLVMPHI) || !s.plan.active(i) {
        return Ok(());
    }
    let cotangent = s.take(i);
    match i.opcode() {
        Opcode::LLVMSelect => {
            let condition = s.primal(i.operand(0))?;
            let zero = i.ty().zero();
            s.accumulate(i.operand(1), s.b.select(condition, cotangent, zero));
            s.accumulate(i.operand(2), s.b.select(condition, zero, cotangent));
        }
        Opcode::LLVMExtractValue => {
            let whole = i.operand(0);
            let spread = insert(s, whole.ty().zero(), cotangent, &i.indices());
            s.accumulate(whole, spread);
        }
        Opcode::LLVMInsertValue => {
            let (whole, part) = (i.operand(0), i.operand(1));
            let indices = i.indices();
            let own = indices.iter().fold(cotangent, |c, k| s.b.extract(c, *k));
            s.accumulate(part, own);
            let rest = insert(s, cotangent, part.ty().zero(), &indices);
            s.accumulate(whole, rest);
        }
        Opcode::LLVMBitCast => {
            let back = s.b.bitcast(cotangent, i.operand(0).ty());
            s.accumulate(i.operand(0), back);
        }
        _ => s.accumulate(i.operand(0), cotangent),
    }
    Ok(())
}

/// `whole` with a part of a part replaced.
fn insert<'m>(s: &Sweep<'_, 'm>, whole: Value<'m>, part: Value<'m>, indices: &[u32]) -> Value<'m> {
    match indices {
        [] => part,
        [k] => s.b.insert_value(whole, part, *k),
        [k, rest @ ..] => {
            let inner = s.b.extract(whole, *k);
            s.b.insert_value(whole, insert(s, inner, part, rest), *k)
        }
    }
}
