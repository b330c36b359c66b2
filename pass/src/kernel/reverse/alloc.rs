//! Memory that the function allocates. Its shadow begins as zeros.
//!
//!     forward   p = alloca T        S[p] = zeroed memory in the frame, or in the arena if its size is not constant
//!               p = malloc(n)       S[p] = zeroed block of the arena
//!               q = realloc(p, n)   S[q] = block of the arena with what S[p] holds
//!               free(p)             as it stands: the reverse does not touch primal memory, and shadows stay
//!     reverse   alloca, malloc      S[p] = 0: the next reverse of the same frame finds it as the first did
//!               realloc             S[p] = S[q]; S[q] = 0: the old block is dead afterwards, so nothing is added

use super::augment::Augment;
use super::construct::Construct;
use super::frame::Slot;
use super::memory::held;
use super::plan::{Need, Plan};
use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::kernel::lost::{Lost, message};
use crate::llvm::{Opcode, Value};

/// Bytes of an `alloca` if they are constant.
fn static_size<'m>(i: Value<'m>, plan: &Plan<'m>) -> Option<u64> {
    if !i.is(Opcode::LLVMAlloca) {
        return None;
    }
    let count = i.operand(0);
    let size = plan.module().size(i.allocated_type());
    (count.is_const_int() && count.zext_value() < 1 << 32).then(|| size * count.zext_value())
}

pub(super) fn reserve<'m>(i: Value<'m>, plan: &mut Plan<'m>) {
    if let Some(size) = static_size(i, plan) {
        let region = plan.shape.region_of_value(i);
        for direction in 0..plan.signature.width {
            plan.frames.reserve(region, Slot::Memory(i, direction), size, 16);
        }
    }
}

pub(super) fn forward_alloca<'m>(i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    let context = a.engine.module().context();
    let shadow = match static_size(i, a.plan) {
        Some(size) => {
            let region = a.plan.shape.region_of_value(i);
            let memory = a.field(region, Slot::Memory(i, a.direction));
            let memory = memory.unwrap_or_else(|| i.ty().poison());
            a.b.memset(memory, context.int(8).zero(), context.int(64).int(size), 16);
            memory
        }
        None => {
            let size = context.int(64).int(a.plan.module().size(i.allocated_type()));
            let count = a.b.cast_int(a.primal(i.operand(0)), context.int(64));
            let size = a.b.mul(size, count);
            a.b.call(a.engine.support("cotangent.shadow.alloc"), &[a.arena, size])
        }
    };
    a.set_shadow(i, shadow);
    Ok(())
}

/// May the memory hold cotangents when the reverse is done with it?
fn holds_floats<'m>(i: Value<'m>, plan: &Plan<'m>) -> bool {
    held(&plan.content.region(i, None)).floats
}

pub(super) fn needs<'m>(construct: Construct<'m>, i: Value<'m>, plan: &Plan<'m>) -> Vec<Need<'m>> {
    match construct {
        Construct::Alloca | Construct::Allocate(..) if holds_floats(i, plan) => vec![Need::Shadow(i)],
        Construct::Reallocate(block, ..) => vec![Need::Shadow(i.operand(block)), Need::Shadow(i)],
        _ => vec![],
    }
}

/// The size that a call asks for.
fn size<'m>(i: Value<'m>, bytes: u32, count: Option<u32>, a: &Augment<'_, 'm>) -> Value<'m> {
    let word = a.engine.module().context().int(64);
    let of = |k: u32| a.b.cast_int(a.primal(i.operand(k)), word);
    let bytes = of(bytes);
    count.map_or(bytes, |count| a.b.mul(bytes, of(count)))
}

pub(super) fn forward_call<'m>(construct: Construct<'m>, i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    let shadow = match construct {
        Construct::Reallocate(block, bytes, count) => {
            let old = a.shadow(i.operand(block))?;
            let size = size(i, bytes, count, a);
            let says = message(a.engine.module(), i, Lost::Resized);
            a.b.call(
                a.engine.support("cotangent.shadow.realloc"),
                &[a.arena, old, size, says],
            )
        }
        Construct::Allocate(bytes, count) => {
            let size = size(i, bytes, count, a);
            a.b.call(a.engine.support("cotangent.shadow.alloc"), &[a.arena, size])
        }
        _ => return Ok(()),
    };
    a.set_shadow(i, shadow);
    Ok(())
}

/// What the reverse leaves in the shadow is cleared.
pub(super) fn reverse<'m>(i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    if !holds_floats(i, s.plan) {
        return Ok(());
    }
    let shadow = s.shadow(i)?;
    let context = s.engine.module().context();
    match static_size(i, s.plan) {
        Some(size) => s.b.memset(shadow, context.int(8).zero(), context.int(64).int(size), 16),
        None => s.b.call(s.engine.support("cotangent.shadow.clear"), &[shadow]),
    };
    Ok(())
}

pub(super) fn reverse_reallocate<'m>(
    construct: Construct<'m>,
    i: Value<'m>,
    s: &mut Sweep<'_, 'm>,
) -> Result<(), Refusal> {
    if let Construct::Reallocate(block, ..) = construct {
        let (old, new) = (s.shadow(i.operand(block))?, s.shadow(i)?);
        s.b.call(s.engine.support("cotangent.shadow.realloc.reverse"), &[old, new]);
    }
    Ok(())
}
