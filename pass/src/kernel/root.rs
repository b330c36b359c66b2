//! Functions that a frontend calls: the sweeps tied together, with the arena around them.
//!
//!     augmented  frame = alloc(arena); {frame, y, y'} = aug_f(.., frame, arena)
//!     reverse    x̄.. = rev_f(ȳ, frame, arena)
//!     combined   arena = {}; frame = stack; y = aug_f(.., frame, arena); x̄.. = rev_f(seed, frame, arena); release(arena)
//!
//! A large frame is not on the stack but in the arena, too.
//!
//! If the primal can unwind, the forward sweep is invoked, and the arena is released on that way out, too.

use super::engine::Engine;
use super::request::of_all;
use super::reverse::construct::{Argument, Signature};
use super::reverse::leaves::{Carries, carries, positive};
use super::reverse::plan::Target;
use super::{Activity, DiffRequest, Mode, Refusal};
use crate::llvm::{Builder, Function, Linkage, Type, Value};

/// Bytes of an arena.
pub(super) const ARENA: u64 = 56;
/// Bytes of the largest frame on the stack.
const ON_STACK: u64 = 1 << 16;

/// Emits the function that a request asks for.
///
/// # Errors
/// Everything in it that has no derivative.
pub fn emit<'m>(engine: &mut Engine<'m>, request: &DiffRequest<'m>) -> Result<(), Vec<Refusal>> {
    match request.mode {
        Mode::Combined => combined(engine, request),
        Mode::Forward => super::forward::emit(engine, request),
        Mode::Augmented => augmented(engine, request),
        Mode::Reverse => reverse(engine, request),
    }
}

fn signature<'m>(request: &DiffRequest<'m>) -> Signature<'m> {
    let ty = request.function.ty();
    let combined = request.mode == Mode::Combined;
    let argument = |(k, (t, activity)): (usize, (&Type<'m>, &Activity))| {
        let says = |name| request.function.param_attribute(k as u32, name).is_some();
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
            // Derivatives write to shadows; what else writes is the primal, which does not.
            stable: combined && says("noalias") && (says("readonly") || says("readnone")),
        }
    };
    let result = carries(ty.result());
    Signature {
        function: request.function,
        arguments: ty
            .params()
            .iter()
            .zip(&request.arguments)
            .enumerate()
            .map(argument)
            .collect(),
        result: Carries {
            // A split derivative gives the shadow of its result.
            pointers: result.pointers && matches!(request.mode, Mode::Augmented | Mode::Reverse),
            floats: result.floats && request.result_active,
        },
        frozen: false,
        whole: combined,
        width: request.width,
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

/// What an entry takes and gives.
struct Entry<'m> {
    function: Function<'m>,
    primals: Vec<Value<'m>>,
    shadows: Vec<Value<'m>>,
    /// Arguments after those.
    rest: Vec<Value<'m>>,
}

fn is_dup(activity: Activity) -> bool {
    matches!(activity, Activity::Dup | Activity::DupNoNeed)
}

/// One type: none, one, or a structure of several.
fn bundle<'m>(types: &[Type<'m>], engine: &Engine<'m>) -> Type<'m> {
    match types {
        [] => engine.module().context().void(),
        [one] => *one,
        many => engine.module().context().structure(many),
    }
}

/// Returns values as [`bundle`] types them.
fn give<'m>(b: &Builder<'m>, ty: Type<'m>, parts: &[Value<'m>]) {
    match parts {
        [] => drop(b.ret(None)),
        [one] if !ty.is_struct() || one.ty() == ty => drop(b.ret(Some(*one))),
        many => {
            let all = many.iter().enumerate();
            b.ret(Some(
                all.fold(ty.poison(), |all, (k, v)| b.insert_value(all, *v, k as u32)),
            ));
        }
    }
}

/// The entry with the primal's arguments, their shadows, and more arguments.
fn open<'m>(
    engine: &Engine<'m>,
    request: &DiffRequest<'m>,
    signature: &Signature<'m>,
    more: &[Type<'m>],
    result: Type<'m>,
) -> Result<Entry<'m>, Refusal> {
    let mut types = vec![];
    let (params, width) = (signature.function.ty().params(), request.width as usize);
    for (ty, activity) in params.iter().zip(&request.arguments) {
        types.extend(vec![*ty; if is_dup(*activity) { 1 + width } else { 1 }]);
    }
    types.extend(more);
    let function = entry(engine, request, engine.module().context().function(result, &types))?;
    let (mut primals, mut shadows) = (vec![], vec![]);
    let mut own = function.params().into_iter();
    for (activity, argument) in request.arguments.iter().zip(&signature.arguments) {
        let primal = own.next();
        // The shadow of memory that is reached through one argument is reached through its shadow.
        let alone = request
            .function
            .param_attribute(primals.len() as u32, "noalias")
            .is_some();
        let mut unaliased: Vec<_> = primal.filter(|_| alone).into_iter().collect();
        primals.extend(primal);
        if is_dup(*activity) {
            let own: Vec<_> = own.by_ref().take(width).collect();
            unaliased.extend(own.iter().filter(|_| alone));
            shadows.extend(own.into_iter().filter(|_| argument.shadow));
        }
        for p in unaliased {
            let at = function.params().iter().position(|q| *q == p).unwrap_or(0);
            function.add_param_attribute(at as u32, "noalias");
        }
    }
    Ok(Entry {
        function,
        primals,
        shadows,
        rest: own.collect(),
    })
}

/// Types of the cotangents that a request gives.
fn cotangents<'m>(signature: &Signature<'m>) -> Vec<Type<'m>> {
    let params = signature.function.ty().params();
    let wanted = params.iter().zip(&signature.arguments).filter(|(_, a)| a.cotangent);
    wanted.map(|(ty, _)| of_all(*ty, signature.width)).collect()
}

/// What there is of every direction, as one value of the type that [`of_all`] tells.
fn together<'m>(b: &Builder<'m>, each: &[Value<'m>]) -> Value<'m> {
    let ty = of_all(each[0].ty(), each.len() as u32);
    match each {
        [one] => *one,
        many => {
            let many = many.iter().zip(0..);
            many.fold(ty.poison(), |all, (v, k)| b.insert_value(all, *v, k))
        }
    }
}

/// The cotangents that a request gives, from what the reverse sweep does.
fn outputs<'m>(b: &Builder<'m>, signature: &Signature<'m>, back: Value<'m>) -> Vec<Value<'m>> {
    let width = signature.width as usize;
    let outputs: Vec<_> = match cotangents(signature).len() * width {
        1 => vec![positive(b, back)],
        n => (0..n).map(|k| positive(b, b.extract(back, k as u32))).collect(),
    };
    outputs.chunks(width).map(|each| together(b, each)).collect()
}

fn combined<'m>(engine: &mut Engine<'m>, request: &DiffRequest<'m>) -> Result<(), Vec<Refusal>> {
    let signature = signature(request);
    let id = engine.derive(signature.clone())?;
    let context = engine.module().context();
    let result = signature.function.result();
    let seeded = signature.result.floats && request.seed_argument;
    let width = signature.width as usize;
    let mut more = vec![result; if seeded { width } else { 0 }];
    more.extend(request.arena_argument.then_some(context.ptr()));
    let primal = (request.primal_result && !result.is_void()).then_some(result);
    let given: Vec<_> = primal.into_iter().chain(cotangents(&signature)).collect();
    let ty = bundle(&given, engine);
    let own = open(engine, request, &signature, &more, ty).map_err(|r| vec![r])?;
    let d = engine.derivative(id);
    for f in [d.augmented, d.reverse] {
        f.add_attribute("alwaysinline");
        f.set_linkage(Linkage::LLVMInternalLinkage);
    }
    let b = Builder::new(context);
    b.at_end(own.function.append_block("entry"));
    let (byte, word) = (context.int(8), context.int(64));
    let arena = match own.rest.last() {
        Some(arena) if request.arena_argument => *arena,
        _ => {
            let arena = b.alloca(byte.array(ARENA));
            arena.set_alignment(16);
            b.memset(arena, byte.zero(), word.int(ARENA), 16);
            arena
        }
    };
    let frame = match d.frame_size.unwrap_or(0).max(1) {
        size if size > ON_STACK => b.call(engine.support("cotangent.alloc"), &[arena, word.int(size)]),
        size => {
            let frame = b.alloca(byte.array(size));
            frame.set_alignment(16);
            frame
        }
    };
    engine.open_globals(&b, arena, signature.width);
    let arguments: Vec<_> = own
        .primals
        .iter()
        .chain(&own.shadows)
        .copied()
        .chain([frame, arena])
        .collect();
    let y = match request.arena_argument {
        // Whoever gave the arena releases it.
        true => b.call(d.augmented, &arguments),
        false => forward(engine, own.function, &b, d.augmented, &arguments, arena),
    };
    let mut back = vec![];
    if signature.result.floats {
        back.extend(match seeded {
            true => own.rest[..width].to_vec(),
            false => vec![one(result); width],
        });
    }
    back.extend([frame, arena]);
    let cotangent = b.call(d.reverse, &back);
    if !request.arena_argument {
        b.call(engine.support("cotangent.release"), &[arena]);
    }
    let mut parts: Vec<_> = primal.map(|_| y).into_iter().collect();
    parts.extend(outputs(&b, &signature, cotangent));
    give(&b, ty, &parts);
    Ok(())
}

fn augmented<'m>(engine: &mut Engine<'m>, request: &DiffRequest<'m>) -> Result<(), Vec<Refusal>> {
    let signature = signature(request);
    let id = engine.derive(signature.clone())?;
    let context = engine.module().context();
    let result = signature.function.result();
    let primal = (request.primal_result && !result.is_void()).then_some(result);
    let shadow = signature.result.pointers.then(|| of_all(result, signature.width));
    let given: Vec<_> = [context.ptr()].into_iter().chain(primal).chain(shadow).collect();
    let ty = context.structure(&given);
    let own = open(engine, request, &signature, &[context.ptr()], ty).map_err(|r| vec![r])?;
    let d = engine.derivative(id);
    let b = Builder::new(context);
    b.at_end(own.function.append_block("entry"));
    let arena = own.rest[0];
    let size = context.int(64).int(d.frame_size.unwrap_or(0));
    let frame = b.call(engine.support("cotangent.alloc"), &[arena, size]);
    engine.open_globals(&b, arena, signature.width);
    let arguments: Vec<_> = own
        .primals
        .iter()
        .chain(&own.shadows)
        .copied()
        .chain([frame, arena])
        .collect();
    let y = b.call(d.augmented, &arguments);
    let mut parts = vec![frame];
    match signature.result.pointers {
        true => {
            parts.extend(primal.map(|_| b.extract(y, 0)));
            let shadows: Vec<_> = (1..=signature.width).map(|k| b.extract(y, k)).collect();
            parts.push(together(&b, &shadows));
        }
        false => parts.extend(primal.map(|_| y)),
    }
    let all = parts.iter().enumerate();
    b.ret(Some(
        all.fold(ty.poison(), |all, (k, v)| b.insert_value(all, *v, k as u32)),
    ));
    Ok(())
}

fn reverse<'m>(engine: &mut Engine<'m>, request: &DiffRequest<'m>) -> Result<(), Vec<Refusal>> {
    let signature = signature(request);
    let id = engine.derive(signature.clone())?;
    let d = engine.derivative(id);
    let context = engine.module().context();
    let given = bundle(&cotangents(&signature), engine);
    let ty = context.function(given, &d.reverse.ty().params());
    let f = entry(engine, request, ty).map_err(|r| vec![r])?;
    let b = Builder::new(context);
    b.at_end(f.append_block("entry"));
    let params = f.params();
    let back = b.call(d.reverse, &params);
    if !engine.globals().is_empty() {
        // The next reverse finds zeros again.
        b.call(engine.support("cotangent.globals.clear"), &[params[params.len() - 1]]);
    }
    give(&b, given, &outputs(&b, &signature, back));
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
