//! What moves parts of values without computing: `phi`, `select`, parts of aggregates, casts, addresses.
//!
//!     forward   y = move(x..)     y' = move(x'..)              shadows move as the values do
//!     reverse   x̄ += move⁻¹(ȳ); ȳ = 0                          every part goes back where it came from
//!
//! A `phi` goes back along the edge that was taken: see `sweep.rs`.

use super::augment::Augment;
use super::leaves::{made, positive};
use super::plan::{Need, Plan};
use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::kernel::callee::is_thread_local;
use crate::llvm::{Opcode, Value};

pub(super) fn needs<'m>(i: Value<'m>, plan: &Plan<'m>) -> Vec<Need<'m>> {
    match i.opcode() {
        _ if !plan.active(i) => vec![],
        Opcode::LLVMSelect => vec![Need::Primal(i.operand(0))],
        Opcode::LLVMExtractElement => vec![Need::Primal(i.operand(1))],
        Opcode::LLVMInsertElement => vec![Need::Primal(i.operand(2))],
        _ => vec![],
    }
}

pub(super) fn forward<'m>(i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    if !a.plan.needs_shadow(i) {
        return Ok(());
    }
    if i.is(Opcode::LLVMPHI) {
        // Its sides may not have shadows yet: they are added when all have.
        let shadow = a.b.phi(i.ty());
        a.set_shadow(i, shadow);
        return Ok(());
    }
    if is_thread_local(i) {
        let shadow = a.shadow(i.operand(0))?;
        a.set_shadow(i, shadow);
        return Ok(());
    }
    let copy = i.duplicate();
    copy.erase_location();
    for (k, x) in i.operands().enumerate() {
        let by = match is_data(i, k) {
            true if a.plan.carries(x).pointers => a.shadow(x)?,
            // The shadow of what carries no pointer is zero.
            true if !is_offset(i, x) => x.ty().zero(),
            _ => a.primal(x),
        };
        copy.set_operand(k as u32, by);
    }
    a.b.insert(copy);
    // A word of zero is a shadow of nothing; a pointer of zero would be an address.
    let shadow = if i.is(Opcode::LLVMIntToPtr) {
        let found = a.found(i, copy);
        made(a.plan.module(), a.b, found)
    } else {
        copy
    };
    a.set_shadow(i, shadow);
    Ok(())
}

/// Is it the constant of a mask, or what is added to an address?
fn is_offset<'m>(i: Value<'m>, x: Value<'m>) -> bool {
    i.is(Opcode::LLVMAdd) || i.is(Opcode::LLVMAnd) && x.is_constant()
}

/// Is the operand moved, and not an index, a condition or a callee?
fn is_data(i: Value<'_>, operand: usize) -> bool {
    use Opcode::*;
    match i.opcode() {
        LLVMSelect => operand > 0,
        LLVMInsertValue | LLVMInsertElement | LLVMShuffleVector => operand < 2,
        LLVMAnd | LLVMOr | LLVMXor | LLVMAdd => true,
        _ => operand == 0,
    }
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
        Opcode::LLVMExtractElement => {
            let (vector, at) = (i.operand(0), s.primal(i.operand(1))?);
            let spread = s.b.insert_element(vector.ty().zero(), cotangent, at);
            s.accumulate(vector, spread);
        }
        Opcode::LLVMInsertElement => {
            let (vector, element, at) = (i.operand(0), i.operand(1), s.primal(i.operand(2))?);
            s.accumulate(element, s.b.extract_element(cotangent, at));
            let rest = s.b.insert_element(cotangent, element.ty().zero(), at);
            s.accumulate(vector, rest);
        }
        Opcode::LLVMShuffleVector => {
            let index = |k: u32| i.ty().context().int(32).int(k.into());
            let length = i.operand(0).ty().length() as u32;
            for (to, from) in i.shuffle_mask().into_iter().enumerate() {
                let Some(from) = from else { continue };
                let vector = i.operand(from / length);
                let lane = s.b.extract_element(cotangent, index(to as u32));
                s.accumulate(
                    vector,
                    s.b.insert_element(vector.ty().zero(), lane, index(from % length)),
                );
            }
        }
        Opcode::LLVMBitCast => {
            // As bits, a negative zero would be something.
            let back = s.b.bitcast(positive(s.b, cotangent), i.operand(0).ty());
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
