//! What moves values and parts of them without computing: aggregates, addresses, casts, and integers that hold the bits
//! of floats and pointers.
//!
//!     y = move(x..)        y' = move(x'..)
//!     y = x & sign bit cleared (|x| on the bits of a float)      y' = x' with its sign flipped where x is negative
//!     y = x ^ sign bit (-x)                                      y' = x' ^ sign bit
//!
//! Other arithmetic on the bits of a float is constant, and an error where it becomes a float again.

use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::kernel::callee::is_thread_local;
use crate::kernel::lost::any_bit;
use crate::kernel::reverse::leaves::made;
use crate::kernel::reverse::plan::Target;
use crate::llvm::{Opcode, Value};

/// Does the opcode move bits?
pub(super) fn moves(op: Opcode) -> bool {
    use Opcode::*;
    let parts = matches!(
        op,
        LLVMExtractElement | LLVMInsertElement | LLVMShuffleVector | LLVMAddrSpaceCast
    );
    let casts = matches!(op, LLVMBitCast | LLVMTrunc | LLVMZExt | LLVMPtrToInt | LLVMIntToPtr);
    parts || casts || matches!(op, LLVMShl | LLVMLShr | LLVMAnd | LLVMOr | LLVMXor | LLVMAdd | LLVMSub)
}

/// Operands that are moved; the others say where to.
fn moved(op: Opcode, k: usize) -> bool {
    use Opcode::*;
    match op {
        LLVMSelect => k > 0,
        LLVMGetElementPtr | LLVMExtractElement | LLVMShl | LLVMLShr => k == 0,
        LLVMInsertElement => k < 2,
        _ => true,
    }
}

/// The move once more, with shadows for what it moves.
pub(super) fn duplicate<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) {
    if is_thread_local(i) {
        let shadow = s.shadow_or_zero(i.operand(0));
        return s.set_shadow(i, shadow);
    }
    let copy = s.primal(i).duplicate();
    for (k, x) in i.operands().enumerate() {
        // The callee of an intrinsic that gives its argument is an operand, too.
        if moved(i.opcode(), k) && x.as_function().is_none() {
            copy.set_operand(k as u32, s.shadow_or_zero(x));
        }
    }
    s.b.insert(copy);
    s.set_shadow(i, copy);
}

pub(super) fn tangent<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) -> Result<(), Refusal> {
    let op = i.opcode();
    let broken = i.operands().any(|x| s.is_broken(x));
    let computed = broken || s.forward.engine.activity().is_laundered(i);
    if op == Opcode::LLVMBitCast && computed && i.ty().scalar().is_float() {
        let help = "compute with floats: arithmetic on the bits of a float has no derivative";
        return Err(Refusal::at(i, "a float made of computed bits", help));
    }
    let has_shadow = i
        .operands()
        .enumerate()
        .any(|(k, x)| moved(op, k) && s.shadow(x).is_some());
    if i.ty().scalar().is_int() && !i.ty().is_struct() {
        if broken {
            s.set_broken(i);
        }
        return integer(s, i, has_shadow);
    }
    if op == Opcode::LLVMGetElementPtr && !i.ty().is_vector() {
        if s.target(i.operand(0)) == Target::Active {
            duplicate(s, i);
            return Ok(());
        }
        // Offsets of an address that may be none promise nothing.
        let indices: Vec<_> = i.operands().skip(1).map(|x| s.primal(x)).collect();
        let at = s.b.gep(i.gep_type(), s.shadow_or_zero(i.operand(0)), &indices);
        s.set_shadow(i, at);
        return Ok(());
    }
    if op == Opcode::LLVMIntToPtr && i.ty().is_pointer() {
        let bits = s.shadow_or_zero(i.operand(0));
        let word = s.b.cast(Opcode::LLVMIntToPtr, bits, i.ty());
        let found = s.found(i, word);
        let shadow = made(s.module(), s.b, found);
        s.set_shadow(i, shadow);
        return Ok(());
    }
    let copies = matches!(
        op,
        Opcode::LLVMSelect
            | Opcode::LLVMExtractValue
            | Opcode::LLVMInsertValue
            | Opcode::LLVMFreeze
            | Opcode::LLVMGetElementPtr
    );
    if !copies && !moves(op) {
        if s.is_tangible(i) {
            let what = format!("the instruction `{}`", i.text().trim());
            return Err(Refusal::at(
                i,
                what,
                "the engine has no rule for it; write the computation in another way",
            ));
        }
        return Ok(());
    }
    if has_shadow {
        duplicate(s, i);
    }
    Ok(())
}

fn integer<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>, has_shadow: bool) -> Result<(), Refusal> {
    use Opcode::*;
    let op = i.opcode();
    if !has_shadow {
        return Ok(());
    }
    let shadows: Vec<_> = i.operands().map(|x| s.shadow(x)).collect();
    match op {
        LLVMAnd | LLVMXor | LLVMOr if i.operand(1).is_const_int() && is_sign_mask(op, i.operand(1)) => {
            let Some(shadow) = shadows[0] else { return Ok(()) };
            let (ty, x) = (i.ty(), s.primal(i.operand(0)));
            let sign = ty.int(1 << (ty.int_width() - 1));
            let flip = match op {
                LLVMAnd => s.b.and(x, sign),
                LLVMXor => sign,
                _ => s.b.xor(s.b.and(x, sign), sign),
            };
            let flipped = s.b.xor(shadow, flip);
            s.set_shadow(i, flipped);
        }
        // Parts of bits: a mask of whole bytes, halves put together.
        LLVMAnd if shadows[1].is_none() && i.operand(1).is_const_int() && is_byte_mask(i.operand(1)) => {
            let masked = s.b.and(shadows[0].unwrap_or_else(|| i.ty().zero()), i.operand(1));
            s.set_shadow(i, masked);
        }
        LLVMOr => {
            let [a, b] = [0, 1].map(|k| shadows[k].unwrap_or_else(|| i.ty().zero()));
            let both = s.b.or(a, b);
            s.set_shadow(i, both);
        }
        // Addresses as numbers.
        LLVMAdd | LLVMSub | LLVMAnd if is_address(i.operand(0), 8) => {
            let a = shadows[0].unwrap_or_else(|| i.ty().zero());
            let b = s.primal(i.operand(1));
            let moved = s.b.binary(op, a, b);
            if !is_address(i.operand(1), 8) {
                s.set_shadow(i, moved);
            }
        }
        LLVMSelect | LLVMExtractValue | LLVMInsertValue | LLVMFreeze => duplicate(s, i),
        LLVMShl | LLVMLShr if i.operand(1).is_const_int() && !i.operand(1).zext_value().is_multiple_of(8) => {
            broken(s, i)
        }
        op if moves(op) && !matches!(op, LLVMAnd | LLVMXor | LLVMAdd | LLVMSub) => duplicate(s, i),
        _ => broken(s, i),
    }
    Ok(())
}

/// An integer that may become a float, and has no shadow: all of it is set if any bit that it is computed from has one.
pub(super) fn taint<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) {
    if !i.ty().scalar().is_int() || s.shadow(i).is_some() || !s.forward.engine.activity().is_computed(i) {
        return;
    }
    let shadows: Vec<_> = i
        .operands()
        .filter(|x| !x.ty().is_pointer())
        .filter_map(|x| s.shadow(x))
        .collect();
    let set = |shadow: Value<'m>| {
        let bits = i.ty().context().int(8 * s.module().size(shadow.ty()) as u32);
        let shadow = if shadow.ty().scalar().is_float() {
            s.b.bitcast(shadow, bits)
        } else {
            shadow
        };
        any_bit(s.b, s.module(), shadow)
    };
    if let Some(any) = shadows.into_iter().map(set).reduce(|a, c| s.b.or(a, c)) {
        let shadow = s.b.select(any, i.ty().all_ones(), i.ty().zero());
        s.set_shadow(i, shadow);
    }
}

/// Arithmetic on what may be the bits of a float.
fn broken<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) {
    if i.operands().any(|x| is_float_bits(x, 8)) {
        s.set_broken(i);
    }
}

fn is_sign_mask(op: Opcode, mask: Value<'_>) -> bool {
    let bits = mask.ty().int_width();
    if bits != 32 && bits != 64 {
        return false;
    }
    let sign = 1u64 << (bits - 1);
    let rest = sign - 1;
    mask.zext_value() == if op == Opcode::LLVMAnd { rest } else { sign }
}

fn is_byte_mask(mask: Value<'_>) -> bool {
    mask.ty().int_width() <= 64 && (0..8).all(|k| matches!(mask.zext_value() >> (8 * k) & 0xff, 0 | 0xff))
}

/// Does the integer come from a pointer?
fn is_address(v: Value<'_>, steps: u32) -> bool {
    v.is(Opcode::LLVMPtrToInt)
        || steps > 0
            && v.is_instruction()
            && matches!(
                v.opcode(),
                Opcode::LLVMAdd | Opcode::LLVMSub | Opcode::LLVMAnd | Opcode::LLVMFreeze
            )
            && is_address(v.operand(0), steps - 1)
}

/// Does the integer come from a float?
fn is_float_bits(v: Value<'_>, steps: u32) -> bool {
    if v.is(Opcode::LLVMBitCast) {
        return v.operand(0).ty().scalar().is_float();
    }
    steps > 0 && v.is_instruction() && moves(v.opcode()) && v.operands().any(|x| is_float_bits(x, steps - 1))
}
