//! Calls of functions that have derivatives of their own: `{y, y'} = fwd_g(x.., x'.., arena)`, for all directions at once.

use super::sweep::Sweep;
use super::{Given, Signature, can_carry, has_pointers};
use crate::kernel::Refusal;
use crate::kernel::reverse::leaves::UNKNOWN;
use crate::kernel::reverse::plan::Target;
use crate::llvm::{Function, Opcode, Type, Value};

/// `frozen`: the callee is inactive, or part of what is.
pub(super) fn direct<'m>(
    s: &mut Sweep<'_, '_, 'm>,
    i: Value<'m>,
    callee: Function<'m>,
    frozen: bool,
) -> Result<(), Vec<Refusal>> {
    let arguments: Vec<_> = i.arguments().into_iter().map(|x| given(s, x)).collect();
    let result = !i.ty().is_void() && can_carry(i.ty());
    let constant = arguments.iter().all(|g| matches!(g, Given::Constant(_)));
    if constant && !has_pointers(i.ty()) {
        return Ok(());
    }
    let signature = Signature {
        function: callee,
        arguments,
        result,
        frozen,
    };
    let tangent = s.forward.derive(signature.clone())?;
    emit(s, i, &signature, tangent.ty(), tangent.value(), None);
    Ok(())
}

/// What an argument brings.
fn given<'m>(s: &mut Sweep<'_, '_, 'm>, x: Value<'m>) -> Given {
    if !can_carry(x.ty()) || s.shadow(x).is_none() {
        return Given::Constant(UNKNOWN);
    }
    if !x.ty().is_pointer() {
        return Given::Shadow(Target::Unknown);
    }
    match s.target(x) {
        Target::Inactive => Given::Constant(tag(s, x)),
        target => Given::Shadow(target),
    }
}

/// Which constant the shadow of an address is that is known to have none.
fn tag<'m>(s: &Sweep<'_, '_, 'm>, x: Value<'m>) -> u64 {
    if x.is_argument() {
        let at = s.signature.function.params().iter().position(|p| *p == x);
        if let Some(Given::Constant(tag)) = at.map(|at| s.signature.arguments[at]) {
            return tag;
        }
    }
    match x.is_instruction() {
        true if x.is(Opcode::LLVMSelect) => match (tag(s, x.operand(1)), tag(s, x.operand(2))) {
            (a, b) if a == b => a,
            _ => UNKNOWN,
        },
        true => tag(s, x.operand(0)),
        false => UNKNOWN,
    }
}

/// What arguments of a pointer's type bring: everything, so that one dispatcher serves all calls.
pub(super) fn of_type(ty: Type<'_>) -> (Vec<Given>, bool) {
    let argument = |t: Type<'_>| {
        if can_carry(t) {
            Given::Shadow(Target::Unknown)
        } else {
            Given::Constant(UNKNOWN)
        }
    };
    (
        ty.params().into_iter().map(argument).collect(),
        !ty.result().is_void() && can_carry(ty.result()),
    )
}

pub(super) fn indirect<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) -> Result<(), Vec<Refusal>> {
    let ty = i.called_type();
    if ty.is_variadic() {
        return Err(vec![Refusal::at(
            i,
            "an indirect call with variable arguments",
            "call the function by its name",
        )]);
    }
    let dispatch = s.forward.dispatcher(ty, s.signature.frozen)?;
    let pointer = s.primal(i.called());
    let d = s.forward.dispatch(dispatch);
    let (signature, f) = (d.signature.clone(), d.function);
    emit(s, i, &signature, f.ty(), f.value(), Some(pointer));
    Ok(())
}

/// Puts the call of a tangent function in the place of the call; a dispatcher takes the pointer first.
fn emit<'m>(
    s: &mut Sweep<'_, '_, 'm>,
    i: Value<'m>,
    signature: &Signature<'m>,
    ty: Type<'m>,
    f: Value<'m>,
    pointer: Option<Value<'m>>,
) {
    let copy = s.primal(i);
    let mut arguments: Vec<_> = pointer.into_iter().collect();
    arguments.extend(i.arguments().into_iter().map(|x| s.primal(x)));
    for (x, given) in i.arguments().into_iter().zip(&signature.arguments) {
        if matches!(given, Given::Shadow(_)) {
            arguments.extend(s.all_shadows(x));
        }
    }
    arguments.push(s.arena);
    let new = put(s, i, ty, f, &arguments);
    // Tangent functions have C's convention.
    new.set_call_convention(0);
    for k in 0..i.argument_count() {
        copy.copy_passing(k, new, k + u32::from(pointer.is_some()));
    }
    let primal = if signature.result {
        let shadows: Vec<_> = (1..=s.width()).map(|k| s.b.extract(new, k)).collect();
        s.set_shadows(i, shadows);
        s.b.extract(new, 0)
    } else {
        new
    };
    if !i.ty().is_void() {
        copy.replace_with(primal);
    }
    copy.erase();
    s.set_primal(i, primal);
}

/// Puts another call before the copy of a call, an invoke where that is one; stands where it goes on. The copy is then to
/// be erased.
pub(super) fn put<'m>(
    s: &mut Sweep<'_, '_, 'm>,
    i: Value<'m>,
    ty: Type<'m>,
    f: Value<'m>,
    arguments: &[Value<'m>],
) -> Value<'m> {
    let copy = s.primal(i);
    s.b.before(copy);
    let new = if copy.is(Opcode::LLVMInvoke) {
        s.b.invoke(ty, f, arguments, copy.normal_destination(), copy.unwind_destination())
    } else {
        s.b.call_value(ty, f, arguments)
    };
    s.set_primal(i, new);
    s.after(i);
    new
}
