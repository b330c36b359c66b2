//! Forward and reverse sweep as two calls: what the first leaves for the second.
//!
//! The tape is the address of an arena, allocated by the forward sweep, with the address of the outermost frame behind
//! it. The reverse sweep frees it, unless it is told that the tape will be used again. A caller that provides memory for
//! the tape finds that address in it.

use super::signature::{Asked, Holds};
use crate::kernel::request::of_all;
use crate::kernel::{Activity, DiffRequest, Mode};
use crate::llvm::{Builder, Function, Mod, Type, Value};

/// Bytes that a caller must provide for a tape.
pub(super) const TAPE_BYTES: u64 = 8;
/// Bytes of an arena.
const ARENA_BYTES: u64 = 56;
/// The support function that frees what an arena holds.
pub(super) const RELEASE: &str = "cotangent.release";

/// Does a reverse sweep read what a forward sweep of the same function leaves?
pub(super) fn belong_together(forward: &DiffRequest<'_>, reverse: &DiffRequest<'_>) -> bool {
    let shadow = |a: &Activity| match a {
        Activity::DupNoNeed => Activity::Dup,
        a => *a,
    };
    let ways = [forward, reverse].map(|r| {
        let arguments: Vec<_> = r.arguments.iter().map(shadow).collect();
        (arguments, r.result_active, r.width)
    });
    ways[0] == ways[1]
}

/// What an augmented forward sweep gives, field by field: the frame, the result if it is wanted, its shadow if it holds
/// pointers.
pub(super) fn augmented<'m>(asked: &Asked<'m>) -> Vec<Type<'m>> {
    let frame = asked.function.module().context().ptr();
    [frame].into_iter().chain(results(asked)).collect()
}

fn results<'m>(asked: &Asked<'m>) -> Vec<Type<'m>> {
    let result = asked.function.result();
    let primal = asked.primal_result.then_some(result);
    let shadow = (!result.is_void() && Holds::of(result).pointers).then(|| of_all(result, asked.width));
    primal.into_iter().chain(shadow).collect()
}

/// Type of what is left of a derivative's result for the call's caller: of a forward sweep, the tape and the results.
pub(super) fn given<'m>(module: Mod<'m>, asked: &Asked<'m>, result: Type<'m>) -> Option<Type<'m>> {
    if asked.mode != Mode::Augmented {
        return (!result.is_void()).then_some(result);
    }
    let tape = (!asked.tape_in_memory).then(|| module.context().ptr());
    match tape.into_iter().chain(results(asked)).collect::<Vec<_>>()[..] {
        [] => None,
        [one] => Some(one),
        ref more => Some(module.context().structure(more)),
    }
}

/// Adds the arguments that only the halves have; gives the arena.
pub(super) fn before<'m>(
    b: &Builder<'m>,
    module: Mod<'m>,
    asked: &Asked<'m>,
    arguments: &mut Vec<Value<'m>>,
) -> Option<Value<'m>> {
    let context = module.context();
    let (pointer, words) = (context.ptr(), context.int(64));
    match asked.mode {
        Mode::Combined | Mode::Forward => None,
        Mode::Augmented => {
            let calloc = declared(module, "calloc", context.function(pointer, &[words, words]));
            let arena = b.call(calloc, &[words.int(1), words.int(ARENA_BYTES + 8)]);
            arguments.push(arena);
            Some(arena)
        }
        Mode::Reverse => {
            let tape = asked.tape?;
            let arena = if asked.tape_in_memory {
                b.load_aligned(pointer, tape, 1)
            } else {
                tape
            };
            let frame = b.load(pointer, b.offset(arena, words.int(ARENA_BYTES)));
            arguments.extend([frame, arena]);
            Some(arena)
        }
    }
}

/// Leaves or frees the tape; gives what is left of the derivative's result.
pub(super) fn after<'m>(
    b: &Builder<'m>,
    module: Mod<'m>,
    asked: &Asked<'m>,
    arena: Option<Value<'m>>,
    value: Value<'m>,
) -> Option<Value<'m>> {
    let context = module.context();
    let (Some(arena), words) = (arena, context.int(64)) else {
        return (!value.ty().is_void()).then_some(value);
    };
    if asked.mode == Mode::Reverse {
        if !asked.keep_tape {
            let take = context.function(context.void(), &[context.ptr()]);
            b.call(declared(module, RELEASE, take), &[arena]);
            b.call(declared(module, "free", take), &[arena]);
        }
        return (!value.ty().is_void()).then_some(value);
    }
    b.store(b.extract(value, 0), b.offset(arena, words.int(ARENA_BYTES)));
    let tape = match asked.tape {
        Some(tape) => {
            b.store_aligned(arena, tape, 1);
            None
        }
        None => Some(arena),
    };
    let results = (1..=results(asked).len()).map(|k| b.extract(value, k as u32));
    let parts: Vec<_> = tape.into_iter().chain(results).collect();
    match given(module, asked, value.ty())? {
        one if parts.len() == 1 => Some(parts[0]).filter(|p| p.ty() == one),
        all => {
            let parts = parts.into_iter().enumerate();
            Some(parts.fold(all.poison(), |all, (k, v)| b.insert_value(all, v, k as u32)))
        }
    }
}

fn declared<'m>(module: Mod<'m>, name: &str, ty: Type<'m>) -> Function<'m> {
    module.function(name).unwrap_or_else(|| module.add_function(name, ty))
}
