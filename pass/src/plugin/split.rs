//! Forward and reverse sweep as two calls: what the first leaves for the second.
//!
//! The tape is the address of an arena, allocated by the forward sweep, with the address of the outermost frame behind
//! it. The reverse sweep frees it, unless it is told that the tape will be used again. A caller that provides memory for
//! the tape finds that address in it.

use super::signature::Asked;
use crate::kernel::Mode;
use crate::llvm::{Builder, Function, Mod, Type, Value};

/// Bytes that a caller must provide for a tape.
pub(super) const TAPE_BYTES: u64 = 8;
/// Bytes of an arena.
const ARENA_BYTES: u64 = 48;
/// The support function that frees what an arena holds.
pub(super) const RELEASE: &str = "cotangent.release";

/// What an augmented forward sweep gives, field by field.
pub(super) fn augmented<'m>(asked: &Asked<'m>) -> Vec<Type<'m>> {
    let result = asked.function.result();
    let frame = asked.function.module().context().ptr();
    [frame]
        .into_iter()
        .chain(asked.primal_result.then_some(result))
        .collect()
}

/// Type of what is left of a derivative's result for the call's caller.
pub(super) fn given<'m>(module: Mod<'m>, asked: &Asked<'m>, result: Type<'m>) -> Option<Type<'m>> {
    if asked.mode != Mode::Augmented {
        return (!result.is_void()).then_some(result);
    }
    let primal = asked.primal_result.then(|| asked.function.result());
    match (asked.tape_in_memory, primal) {
        (true, primal) => primal,
        (false, None) => Some(module.context().ptr()),
        (false, Some(primal)) => Some(module.context().structure(&[module.context().ptr(), primal])),
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
    let primal = asked.primal_result.then(|| b.extract(value, 1));
    if let Some(tape) = asked.tape {
        b.store_aligned(arena, tape, 1);
        return primal;
    }
    let Some(primal) = primal else { return Some(arena) };
    let pair = context.structure(&[context.ptr(), primal.ty()]).poison();
    Some(b.insert_value(b.insert_value(pair, arena, 0), primal, 1))
}

fn declared<'m>(module: Mod<'m>, name: &str, ty: Type<'m>) -> Function<'m> {
    module.function(name).unwrap_or_else(|| module.add_function(name, ty))
}
