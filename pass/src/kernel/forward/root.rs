//! The function that a frontend calls: a tangent function with an arena around it, which is released on every way out.

use super::{Forward, Given, Signature, can_carry};
use crate::kernel::engine::Engine;
use crate::kernel::reverse::leaves::CONSTANT;
use crate::kernel::reverse::plan::Target;
use crate::kernel::root::{ARENA, entry, forward as call_and_release};
use crate::kernel::{Activity, DiffRequest, Refusal};
use crate::llvm::{Builder, Linkage, Type};

/// Emits the function that a request of [`crate::kernel::Mode::Forward`] asks for.
///
/// # Errors
/// Everything in it that has no derivative.
pub fn emit<'m>(engine: &mut Engine<'m>, request: &DiffRequest<'m>) -> Result<(), Vec<Refusal>> {
    let one = |r: Refusal| vec![r];
    let ty = request.function.ty();
    let dup = |a: &Activity| matches!(a, Activity::Dup | Activity::DupNoNeed);
    let given = |(t, a): (&Type<'m>, &Activity)| match dup(a) && can_carry(*t) {
        true if t.is_pointer() => Given::Shadow(Target::Active),
        true => Given::Shadow(Target::Unknown),
        false => Given::Constant(CONSTANT),
    };
    let params = ty.params();
    let signature = Signature {
        function: request.function,
        arguments: params.iter().zip(&request.arguments).map(given).collect(),
        result: request.result_active && !ty.result().is_void() && can_carry(ty.result()),
        frozen: false,
    };
    let tangent = Forward::new(engine, request.width).derive(signature.clone())?;
    tangent.set_linkage(Linkage::LLVMInternalLinkage);

    let module = engine.module();
    let context = module.context();
    let width = request.width as usize;
    let mut types = vec![];
    for (t, activity) in params.iter().zip(&request.arguments) {
        types.push(*t);
        types.extend(vec![*t; if dup(activity) { width } else { 0 }]);
    }
    let primal = request.primal_result && !ty.result().is_void();
    let wanted = request.result_active && !ty.result().is_void();
    let parts = usize::from(primal) + if wanted { width } else { 0 };
    let result = match parts {
        0 => context.void(),
        1 => ty.result(),
        _ => context.structure(&vec![ty.result(); parts]),
    };
    types.extend(request.arena_argument.then_some(context.ptr()));
    let f = entry(engine, request, context.function(result, &types)).map_err(one)?;
    let (mut primals, mut shadows) = (vec![], vec![]);
    let mut own = f.params().into_iter();
    for (activity, given) in request.arguments.iter().zip(&signature.arguments) {
        primals.extend(own.next());
        if dup(activity) {
            let of_argument = own.by_ref().take(width);
            shadows.extend(of_argument.filter(|_| matches!(given, Given::Shadow(_))));
        }
    }
    let b = Builder::new(context);
    b.at_end(f.append_block("entry"));
    let given_arena = own.next().filter(|_| request.arena_argument);
    let arena = given_arena.unwrap_or_else(|| {
        let (byte, word) = (context.int(8), context.int(64));
        let arena = b.alloca(byte.array(ARENA));
        arena.set_alignment(16);
        b.memset(arena, byte.zero(), word.int(ARENA), 16);
        arena
    });
    engine.open_globals(&b, arena, request.width);
    let arguments: Vec<_> = primals.into_iter().chain(shadows).chain([arena]).collect();
    let y = match given_arena {
        Some(_) => b.call(tangent, &arguments),
        None => {
            let y = call_and_release(engine, f, &b, tangent, &arguments, arena);
            b.call(engine.support("cotangent.release"), &[arena]);
            y
        }
    };
    let mut given = vec![];
    match signature.result {
        true => {
            given.extend(primal.then(|| b.extract(y, 0)));
            given.extend((1..=request.width).filter(|_| wanted).map(|k| b.extract(y, k)));
        }
        false => {
            given.extend(primal.then_some(y));
            // A result that cannot depend on anything has the tangent zero.
            given.extend((0..width).filter(|_| wanted).map(|_| ty.result().zero()));
        }
    }
    match given.as_slice() {
        [] => b.ret(None),
        [one] => b.ret(Some(*one)),
        many => {
            let parts = many.iter().zip(0..);
            b.ret(Some(
                parts.fold(result.poison(), |all, (v, k)| b.insert_value(all, *v, k)),
            ))
        }
    };
    Ok(())
}
