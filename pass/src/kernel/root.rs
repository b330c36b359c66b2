//! Functions that a frontend calls: the sweeps tied together, with the arena around them.
//!
//!     combined   arena = {}; frame = stack; y = aug_f(.., frame, arena); x̄.. = rev_f(seed, frame, arena); release(arena)
//!
//! If the primal can unwind, the forward sweep is invoked, and the arena is released on that way out, too.

use super::engine::Engine;
use super::reverse::construct::{Argument, Signature};
use super::reverse::leaves::{Carries, carries};
use super::reverse::plan::Target;
use super::{Activity, DiffRequest, Mode, Refusal};
use crate::llvm::{Builder, Function, Linkage, Type, Value};

/// Bytes of an arena.
pub(super) const ARENA: u64 = 48;

/// Emits the function that a request asks for.
///
/// # Errors
/// Everything in it that has no derivative.
pub fn emit<'m>(engine: &mut Engine<'m>, request: &DiffRequest<'m>) -> Result<(), Vec<Refusal>> {
    match request.mode {
        Mode::Combined => combined(engine, request),
        Mode::Forward => super::forward::emit(engine, request),
        mode => {
            let help = "this build of the pass has no engine for them";
            Err(vec![Refusal::of(
                &request.function.name(),
                format!("{mode:?} derivatives"),
                help,
            )])
        }
    }
}

fn signature<'m>(request: &DiffRequest<'m>) -> Signature<'m> {
    let ty = request.function.ty();
    let argument = |(t, activity): (&Type<'m>, &Activity)| {
        let Carries { pointers, floats } = carries(*t);
        let shadow = pointers && matches!(activity, Activity::Dup | Activity::DupNoNeed);
        Argument {
            shadow,
            cotangent: floats && *activity == Activity::Out,
            target: match (shadow, t.is_pointer()) {
                (true, true) => Target::Active,
                (true, false) => Target::Unknown,
                _ => Target::Inactive,
            },
        }
    };
    let result = carries(ty.result());
    Signature {
        function: request.function,
        arguments: ty.params().iter().zip(&request.arguments).map(argument).collect(),
        result: Carries {
            pointers: false,
            floats: result.floats && request.result_active,
        },
    }
}

/// The function to fill: the one that the module declares by that name, or a new one.
pub(super) fn entry<'m>(engine: &Engine<'m>, request: &DiffRequest<'m>, ty: Type<'m>) -> Result<Function<'m>, Refusal> {
    let module = engine.module();
    let f = module
        .function(&request.entry)
        .unwrap_or_else(|| module.add_function(&request.entry, ty));
    if f.ty() != ty || !f.is_declaration() {
        let what = format!(
            "an entry `{}` of type {:?}, where {ty:?} follows from the request",
            request.entry,
            f.ty()
        );
        return Err(Refusal::of(
            &request.function.name(),
            what,
            "declare the derivative with the arguments it takes",
        ));
    }
    Ok(f)
}

fn one<'m>(ty: Type<'m>) -> Value<'m> {
    if ty.scalar().is_float() {
        return ty.real(1.0);
    }
    if !carries(ty).floats {
        return ty.zero();
    }
    let parts: Vec<_> = ty.parts().into_iter().map(one).collect();
    ty.aggregate(&parts)
}

fn combined<'m>(engine: &mut Engine<'m>, request: &DiffRequest<'m>) -> Result<(), Vec<Refusal>> {
    let signature = signature(request);
    let id = engine.derive(signature.clone())?;
    let context = engine.module().context();
    let (params, result) = (signature.function.ty().params(), signature.function.result());
    let with: Vec<_> = params
        .iter()
        .zip(&request.arguments)
        .zip(&signature.arguments)
        .collect();
    let mut types = vec![];
    for ((ty, activity), _) in &with {
        types.push(**ty);
        if matches!(activity, Activity::Dup | Activity::DupNoNeed) {
            types.push(**ty);
        }
    }
    let seeded = signature.result.floats && request.seed_argument;
    types.extend(seeded.then_some(result));
    let mut given = vec![];
    given.extend((request.primal_result && !result.is_void()).then_some(result));
    given.extend(with.iter().filter(|(_, a)| a.cotangent).map(|((ty, _), _)| **ty));
    let ty = match given.as_slice() {
        [] => context.void(),
        [one] => *one,
        many => context.structure(many),
    };
    let f = entry(engine, request, context.function(ty, &types)).map_err(|r| vec![r])?;
    let d = engine.derivative(id);
    for f in [d.augmented, d.reverse] {
        f.add_attribute("alwaysinline");
        f.set_linkage(Linkage::LLVMInternalLinkage);
    }
    // What the arguments of the entry are to the primal.
    let (mut primals, mut shadows) = (vec![], vec![]);
    let mut own = f.params().into_iter();
    for ((_, activity), argument) in &with {
        primals.extend(own.next());
        if matches!(activity, Activity::Dup | Activity::DupNoNeed) {
            let shadow = own.next();
            shadows.extend(shadow.filter(|_| argument.shadow));
        }
    }
    let b = Builder::new(context);
    b.at_end(f.append_block("entry"));
    let (byte, word) = (context.int(8), context.int(64));
    let frame = b.alloca(byte.array(d.frame_size.unwrap_or(0).max(1)));
    frame.set_alignment(16);
    let arena = b.alloca(byte.array(ARENA));
    arena.set_alignment(16);
    b.memset(arena, byte.zero(), word.int(ARENA), 16);
    let arguments: Vec<_> = primals.into_iter().chain(shadows).chain([frame, arena]).collect();
    let y = forward(engine, f, &b, d.augmented, &arguments, arena);
    let mut back = vec![];
    if signature.result.floats {
        back.push(if seeded {
            own.next().unwrap_or_else(|| one(result))
        } else {
            one(result)
        });
    }
    back.extend([frame, arena]);
    let cotangents = b.call(d.reverse, &back);
    b.call(engine.support("cotangent.release"), &[arena]);
    let mut parts = vec![];
    parts.extend((request.primal_result && !result.is_void()).then_some(y));
    let count = with.iter().filter(|(_, a)| a.cotangent).count();
    match count {
        0 => {}
        1 => parts.push(cotangents),
        n => parts.extend((0..n).map(|k| b.extract(cotangents, k as u32))),
    }
    match parts.as_slice() {
        [] => b.ret(None),
        [one] => b.ret(Some(*one)),
        many => {
            let all = many.iter().enumerate();
            b.ret(Some(
                all.fold(ty.poison(), |all, (k, v)| b.insert_value(all, *v, k as u32)),
            ))
        }
    };
    Ok(())
}

/// Calls the forward sweep; the arena is released if it unwinds.
pub(super) fn forward<'m>(
    engine: &Engine<'m>,
    f: Function<'m>,
    b: &Builder<'m>,
    augmented: Function<'m>,
    arguments: &[Value<'m>],
    arena: Value<'m>,
) -> Value<'m> {
    if augmented.attribute("nounwind").is_some() {
        f.add_attribute("nounwind");
        return b.call(augmented, arguments);
    }
    let context = engine.module().context();
    let personality = engine.personality(augmented);
    f.set_personality(personality);
    let (normal, unwind) = (f.append_block("returned"), f.append_block("unwound"));
    let y = b.invoke(augmented.ty(), augmented.value(), arguments, normal, unwind);
    b.at_end(unwind);
    let pad = b.cleanup_pad(context.structure(&[context.ptr(), context.int(32)]), personality);
    b.call(engine.support("cotangent.release"), &[arena]);
    b.resume(pad);
    b.at_end(normal);
    y
}
