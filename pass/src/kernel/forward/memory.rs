//! Memory: every access twice.
//!
//!     y = load p            y' = load p'
//!     store x, p            store x', p'              zeros if x is constant: the tangent that stood there ends
//!     memcpy p, q, n        memmove p', q', n         zeros if q' is none
//!     memset p, c, n        memset p', 0, n
//!     p = alloca T          p' = zeroed alloca T
//!     p = malloc n          p' = zeroed block of the arena
//!
//! Where a shadow address may be none, loads read zeros instead, and stores write where nobody reads. A tangent that is
//! not zero and would be lost that way stops the program, unless the memory was said to be constant.

use super::sweep::Sweep;
use super::{can_carry, has_pointers};
use crate::kernel::Refusal;
use crate::kernel::analysis::words::is_distance;
use crate::kernel::lost::{Lost, any_active, any_bit, message, unless_shadowed};
use crate::kernel::reverse::leaves::{UNKNOWN, inactive_shadow, is_active, is_made};
use crate::kernel::reverse::plan::Target;
use crate::llvm::{IntPredicate, Linkage, RealPredicate, RmwOp, Type, Value};

/// Alignment of an access to shadow memory: the caller's is aligned as its scalars are, no better.
fn alignment(i: Value<'_>) -> u32 {
    i.alignment().min(8)
}

pub(super) fn load<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) {
    if !s.is_tangible(i) {
        return;
    }
    let (ty, address) = (i.ty(), i.operand(0));
    let shadow = s.shadow_or_zero(address);
    let from = match s.target(address) {
        Target::Active => shadow,
        Target::Inactive => {
            if has_pointers(ty) {
                let shadow = match ty.is_pointer() && !s.forward.engine.globals().is_empty() {
                    // Global variables are still found.
                    true => s.found(i, ty.zero()),
                    false => inactive_shadow(ty, UNKNOWN),
                };
                s.set_shadow(i, shadow);
            }
            return;
        }
        Target::Unknown => {
            if s.forward.engine.makes_pointers() && s.forward.engine.activity().is_active(i) {
                let counts = is_made(s.module(), s.b, shadow);
                unless_shadowed(s.forward.engine, s.b, i, Lost::Loaded, shadow, counts);
            }
            let active = is_active(s.module(), s.b, shadow);
            let nothing = nothing(s, ty);
            s.b.select(active, shadow, nothing)
        }
    };
    let loaded = s.b.load_aligned(ty, from, alignment(i));
    let found = if ty.is_pointer() { s.found(i, loaded) } else { loaded };
    s.set_shadow(i, found);
}

/// Memory of zeros, to load from.
fn nothing<'m>(s: &mut Sweep<'_, '_, 'm>, ty: Type<'m>) -> Value<'m> {
    let module = s.module();
    *s.forward.nothing.entry(ty).or_insert_with(|| {
        let global = module.add_global("cotangent.nothing", ty);
        global.set_initializer(inactive_shadow(ty, UNKNOWN));
        global.set_global_constant();
        global.set_global_linkage(Linkage::LLVMInternalLinkage);
        global
    })
}

/// Memory that nobody reads, to store to.
fn aside<'m>(s: &Sweep<'_, '_, 'm>, ty: Type<'m>) -> Value<'m> {
    let b = crate::llvm::Builder::new(s.module().context());
    s.function
        .entry()
        .and_then(|e| e.first())
        .into_iter()
        .for_each(|first| b.before(first));
    let place = b.alloca(ty);
    place.set_alignment(16);
    place
}

pub(super) fn store<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) -> Result<(), Refusal> {
    let (value, address) = (i.operand(0), i.operand(1));
    if !can_carry(value.ty()) {
        return Ok(());
    }
    if s.is_broken(value) && value.ty().scalar().int_width() >= 32 && is_float_memory(address) {
        let help = "compute with floats: arithmetic on the bits of a float has no derivative";
        return Err(Refusal::at(i, "a float made of computed bits", help));
    }
    let laundered = s.forward.engine.words().laundered(i) || s.forward.engine.activity().is_laundered(i);
    if laundered && let Some(counts) = tainted(s, value, 8) {
        let nowhere = inactive_shadow(address.ty(), UNKNOWN);
        unless_shadowed(s.forward.engine, s.b, i, Lost::Changed, nowhere, counts);
    }
    let given = s.shadow(value);
    let shadow = s.shadow_or_zero(address);
    let known = s.target(address);
    if known != Target::Active
        && let Some(given) = given
    {
        stored(s, i, shadow, given);
    }
    let to = match known {
        Target::Active => shadow,
        Target::Inactive => return Ok(()),
        Target::Unknown => {
            let active = is_active(s.module(), s.b, shadow);
            let aside = aside(s, value.ty());
            s.b.select(active, shadow, aside)
        }
    };
    let given = given.unwrap_or_else(|| value.ty().zero());
    s.b.store_aligned(given, to, alignment(i));
    Ok(())
}

/// Is an integer computed from bits that have a tangent?
fn tainted<'m>(s: &Sweep<'_, '_, 'm>, v: Value<'m>, steps: u32) -> Option<Value<'m>> {
    if !v.ty().scalar().is_int() || v.is_constant() || steps == 0 || is_distance(v) {
        return None;
    }
    if let Some(shadow) = s.shadow(v) {
        return Some(any_bit(s.b, s.module(), shadow));
    }
    let arithmetic = v.is_instruction() && super::bits::moves(v.opcode());
    let operands = v
        .operands()
        .filter(|_| arithmetic)
        .filter_map(|x| tainted(s, x, steps - 1));
    operands.reduce(|a, c| s.b.or(a, c))
}

/// Is a float loaded from the same address?
fn is_float_memory(address: Value<'_>) -> bool {
    address
        .users()
        .any(|u| u.is(crate::llvm::Opcode::LLVMLoad) && u.ty().scalar().is_float())
}

/// Stops the program if a tangent that counts goes to memory without a shadow, and is read there.
fn stored<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>, to: Value<'m>, given: Value<'m>) {
    let (value, activity) = (i.operand(0), s.forward.engine.activity());
    if given.is_constant() || !activity.writes(i) {
        return;
    }
    let float = activity.is_active(value) && activity.writes_active(i);
    let counts = match value.ty() {
        ty if ty.is_float() && float => Some(s.b.fcmp(RealPredicate::LLVMRealUNE, given, ty.zero())),
        ty if !ty.scalar().is_float() && (float || activity.needs_shadow(value)) => any_set(s, given),
        ty if float => any_set(s, given).or_else(|| Some(ty.context().int(1).all_ones())),
        _ => None,
    };
    if let Some(counts) = counts {
        unless_shadowed(s.forward.engine, s.b, i, Lost::Stored, to, counts);
    }
}

/// Holds a shadow tangents that are not zero, or addresses of shadows?
fn any_set<'m>(s: &Sweep<'_, '_, 'm>, given: Value<'m>) -> Option<Value<'m>> {
    let ty = given.ty();
    match ty.scalar() {
        scalar if scalar.is_float() && ty.is_vector() => {
            let bits = s.module().size(ty) as u32 * 8;
            let word = ty.context().int(bits);
            let bits = s.b.bitcast(given, word);
            Some(s.b.icmp(IntPredicate::LLVMIntNE, bits, word.zero()))
        }
        scalar if scalar.is_float() => None,
        _ => any_active(s.module(), s.b, given),
    }
}

/// Sets shadow memory that is there to zero.
pub(super) fn clear<'m>(s: &Sweep<'_, '_, 'm>, shadow: Value<'m>, bytes: Value<'m>) {
    s.b.memset(shadow, s.module().context().int(8).zero(), bytes, 1);
}

/// Copies shadow memory, if it is there.
pub(super) fn copy<'m>(s: &Sweep<'_, '_, 'm>, to: Value<'m>, from: Value<'m>, bytes: Value<'m>) {
    let bytes = s.b.cast_int(bytes, s.module().context().int(64));
    s.b.call(s.forward.engine.support("cotangent.tangent.copy"), &[to, from, bytes]);
}

pub(super) fn copied<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) {
    let [to, from] = [0, 1].map(|k| i.operand(k));
    if s.target(to) == Target::Inactive && s.target(from) == Target::Inactive {
        return;
    }
    if s.signature.frozen {
        filled(s, i);
        return;
    }
    let bytes = s.primal(i.operand(2));
    if s.target(to) != Target::Active && s.forward.engine.activity().writes(i) {
        let says = message(s.module(), i, Lost::Copied);
        let size = s.b.cast_int(bytes, s.module().context().int(64));
        let check = s.forward.engine.support("cotangent.lost.copied");
        s.b.call(check, &[s.shadow_or_zero(to), s.shadow_or_zero(from), size, says]);
    }
    if s.target(to) == Target::Inactive {
        return;
    }
    let apart = i.intrinsic().is_some_and(|name| name.starts_with("llvm.memcpy"));
    if apart && s.target(to) == Target::Active && s.target(from) == Target::Active {
        s.b.memcpy(s.shadow_or_zero(to), s.shadow_or_zero(from), bytes, 1);
        return;
    }
    copy(s, s.shadow_or_zero(to), s.shadow_or_zero(from), bytes);
}

pub(super) fn filled<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) {
    let to = i.operand(0);
    let (shadow, bytes) = (s.shadow_or_zero(to), s.primal(i.operand(2)));
    match s.target(to) {
        Target::Active => clear(s, shadow, bytes),
        Target::Inactive => {}
        Target::Unknown => {
            let bytes = s.b.cast_int(bytes, s.module().context().int(64));
            s.b.call(s.forward.engine.support("cotangent.tangent.fill"), &[shadow, bytes]);
        }
    }
}

pub(super) fn alloca<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) {
    let (ty, count) = (i.allocated_type(), s.primal(i.operand(0)));
    let shadow = s.b.alloca_array(ty, count);
    shadow.set_alignment(i.alignment().max(16));
    let word = s.module().context().int(64);
    let bytes = s.b.mul(word.int(s.module().size(ty)), s.b.cast_int(count, word));
    clear(s, shadow, bytes);
    s.set_shadow(i, shadow);
}

/// Fresh memory, with what an old block held.
pub(super) fn allocated<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>, old: Option<u32>, bytes: u32, count: Option<u32>) {
    let word = s.module().context().int(64);
    let of = |k: u32| s.b.cast_int(s.primal(i.operand(k)), word);
    let size = of(bytes);
    let size = count.map_or(size, |count| s.b.mul(size, of(count)));
    let shadow = match old {
        Some(old) => {
            let old = s.shadow_or_zero(i.operand(old));
            let says = message(s.module(), i, Lost::Resized);
            s.b.call(
                s.forward.engine.support("cotangent.shadow.realloc"),
                &[s.arena, old, size, says],
            )
        }
        None => {
            s.b.call(s.forward.engine.support("cotangent.shadow.alloc"), &[s.arena, size])
        }
    };
    s.set_shadow(i, shadow);
}

/// Sums and exchanges of floats are done twice; others on what may carry a derivative are refused.
pub(super) fn atomic<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) -> Result<(), Refusal> {
    let value = i.operand(1);
    let float = value.ty().scalar().is_float();
    let linear = i.is(crate::llvm::Opcode::LLVMAtomicRMW)
        && matches!(
            i.rmw_op(),
            RmwOp::LLVMAtomicRMWBinOpFAdd | RmwOp::LLVMAtomicRMWBinOpFSub | RmwOp::LLVMAtomicRMWBinOpXchg
        );
    if float && linear {
        let address = i.operand(0);
        let shadow = s.shadow_or_zero(address);
        let active = is_active(s.module(), s.b, shadow);
        let aside = aside(s, value.ty());
        let to = s.b.select(active, shadow, aside);
        let twin = s.primal(i).duplicate();
        twin.set_operand(0, to);
        twin.set_operand(1, s.shadow_or_zero(value));
        s.b.insert(twin);
        let old = s.b.select(active, twin, value.ty().zero());
        s.set_shadow(i, old);
        return Ok(());
    }
    let shadows = [1, 2].into_iter().take(i.operand_count() as usize - 1);
    let carries = shadows
        .clone()
        .any(|k| i.operand(k).ty().scalar().is_pointer() || i.operand(k).ty().scalar().is_float());
    if carries
        || shadows
            .into_iter()
            .any(|k| i.operand(k).ty().scalar().is_int() && s.is_broken(i.operand(k)))
    {
        let help = "move the atomic operation out of the differentiated function";
        return Err(Refusal::at(i, "an atomic operation on floats or pointers", help));
    }
    Ok(())
}
