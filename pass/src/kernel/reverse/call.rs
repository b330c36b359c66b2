//! Calls of functions that have derivatives of their own.
//!
//!     forward   y = f(x..)      {y, y'} = aug_f(x.., x'.., frame of the call, arena)
//!     reverse   x̄.. += rev_f(ȳ, frame of the call, arena); ȳ = 0
//!
//! All directions at once. The frame of the call is part of the frame around it. Where its size is not known (recursion, a pointer to a function)
//! it comes from the arena, and the frame around it holds its address. So does a large one: of many calls few may run, and
//! what is part of what is part of another would grow as the product of their numbers.

use super::augment::Augment;
use super::construct::{Argument, Construct, Signature};
use super::directions::Directions;
use super::frame::Slot;
use super::leaves::{Carries, carries};
use super::plan::{Need, Plan, Target};
use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::kernel::attributes::INACTIVE;
use crate::kernel::callee::{Callee, classify as kind_of, refuse_second_return};
use crate::kernel::engine::Engine;
use crate::kernel::rules::rule_of;
use crate::llvm::{Opcode, Value};

pub(super) fn classify<'m>(
    i: Value<'m>,
    plan: &mut Plan<'m>,
    engine: &mut Engine<'m>,
) -> Result<Construct<'m>, Vec<Refusal>> {
    let mut frozen = plan.signature.frozen;
    refuse_second_return(i).map_err(|r| vec![r])?;
    if !frozen && let Some(construct) = super::custom::classify(i, plan).map_err(|r| vec![r])? {
        return Ok(construct);
    }
    if let Some(rule) = rule_of(i) {
        return super::arithmetic::classify(i, rule, plan);
    }
    let mut kind = kind_of(i, engine);
    if let Some(function) = i
        .callee()
        .filter(|f| f.string_attribute(INACTIVE).is_some() && !f.is_declaration())
    {
        (frozen, kind) = (true, Ok(Callee::Defined(function)));
    }
    if !frozen && plan.activity.is_inactive_call(i) {
        return Ok(Construct::Passive);
    }
    if frozen && kind.is_err() {
        // What nobody knows is constant where everything is.
        return Ok(Construct::Passive);
    }
    let carried = |plan: &Plan<'m>| Carries {
        pointers: plan.needs_shadow(i),
        floats: plan.active(i) && !frozen,
    };
    let construct = match kind.map_err(|r| vec![r])? {
        Callee::Inactive => Construct::Passive,
        Callee::Move if plan.needs_shadow(i) => Construct::Move,
        Callee::Move => Construct::Passive,
        Callee::Copy | Callee::Fill if !plan.activity.writes(i) => Construct::Passive,
        Callee::Copy | Callee::Fill => {
            super::copy::classify(i, plan).map_err(|r| vec![r])?;
            if i.operand(1).ty().is_pointer() {
                Construct::Copy
            } else {
                Construct::Fill
            }
        }
        Callee::Allocate(..) | Callee::Reallocate(..) if !plan.needs_shadow(i) => Construct::Passive,
        Callee::Allocate(bytes, count) => Construct::Allocate(bytes, count),
        Callee::Reallocate(block, bytes, count) => Construct::Reallocate(block, bytes, count),
        Callee::Defined(function) => {
            let arguments = i.arguments().into_iter().map(|x| argument(x, plan).frozen_if(frozen));
            let arguments: Vec<_> = arguments.collect();
            let result = carried(plan);
            if !result.any() && arguments.iter().all(|a| !a.shadow && !a.cotangent) {
                return Ok(Construct::Passive);
            }
            Construct::Call(engine.derive(Signature {
                function,
                arguments,
                result,
                frozen,
                whole: plan.signature.whole,
                width: plan.signature.width,
            })?)
        }
        Callee::Pointer => {
            let arguments = i
                .arguments()
                .into_iter()
                .map(|x| plain_argument(x, plan).frozen_if(frozen));
            let arguments: Vec<_> = arguments.collect();
            let all = plan.carries(i);
            let result = Carries {
                floats: all.floats && !frozen,
                ..all
            };
            if !result.any() && arguments.iter().all(|a| !a.shadow && !a.cotangent) {
                return Ok(Construct::Passive);
            }
            let call = Signature {
                arguments,
                result,
                frozen,
                ..plan.signature.clone()
            };
            Construct::Indirect(engine.dispatcher(i.called_type(), &call)?)
        }
    };
    Ok(construct)
}

/// What an argument brings.
fn argument<'m>(x: Value<'m>, plan: &mut Plan<'m>) -> Argument {
    let Carries { pointers, .. } = plan.carries(x);
    let target = match (pointers, x.ty().is_pointer()) {
        (true, true) => plan.target(x),
        (true, false) if plan.needs_shadow(x) => Target::Unknown,
        _ => Target::Inactive,
    };
    Argument {
        shadow: pointers && target != Target::Inactive,
        cotangent: plan.active(x),
        target,
        stable: x.ty().is_pointer() && plan.is_stable_memory(x),
    }
}

/// What an argument of an indirect call brings: by its type alone, so that one dispatcher serves all.
fn plain_argument<'m>(x: Value<'m>, plan: &Plan<'m>) -> Argument {
    let Carries { pointers, floats } = carries(x.ty()).or(plan.carries(x));
    Argument {
        shadow: pointers,
        cotangent: floats,
        target: Target::Unknown,
        stable: false,
    }
}

/// Bytes of the largest frame that is part of another.
const LARGE: u64 = 4096;

/// The call's derivative: its signature, and the frame's size if it is part of the frame around.
struct Called<'m> {
    signature: Signature<'m>,
    size: Option<u64>,
}

fn called<'m>(construct: Construct<'m>, engine: &Engine<'m>) -> Option<Called<'m>> {
    match construct {
        Construct::Call(id) => {
            let d = engine.derivative(id);
            Some(Called {
                signature: d.signature.clone(),
                size: d.frame_size.filter(|size| *size <= LARGE),
            })
        }
        Construct::Indirect(id) => Some(Called {
            signature: engine.dispatch(id).signature.clone(),
            size: None,
        }),
        _ => None,
    }
}

pub(super) fn reserve<'m>(construct: Construct<'m>, i: Value<'m>, plan: &mut Plan<'m>, engine: &Engine<'m>) {
    let Some(called) = called(construct, engine) else {
        return;
    };
    let region = plan.shape.region_of_value(i);
    match called.size {
        Some(size) => plan.frames.reserve(region, Slot::Callee(i), size, 16),
        None => plan.frames.reserve(region, Slot::Callee(i), 8, 8),
    }
    plan.set_boxed(i, called.size.is_none());
}

pub(super) fn needs<'m>(construct: Construct<'m>, i: Value<'m>, _: &Plan<'m>) -> Vec<Need<'m>> {
    match construct {
        Construct::Indirect(_) => vec![Need::Primal(i.called())],
        _ => vec![],
    }
}

pub(super) fn forward<'m>(construct: Construct<'m>, i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    let Some(called) = called(construct, a.engine) else {
        return Ok(());
    };
    let copy = a.primal(i);
    // The call's own place: everything for it comes before.
    a.b.before(copy);
    let region = a.plan.shape.region_of_value(i);
    let field = a.field(region, Slot::Callee(i)).unwrap_or(a.arena);
    let mut arguments: Vec<_> = i.arguments().into_iter().map(|x| a.primal(x)).collect();
    for (x, argument) in i.arguments().into_iter().zip(&called.signature.arguments) {
        if argument.shadow {
            arguments.extend(a.all_shadows(x)?);
        }
    }
    let (ty, pointer) = match construct {
        Construct::Indirect(id) => {
            arguments.insert(0, a.primal(i.called()));
            let f = a.engine.dispatch(id).augmented;
            (f.ty(), f.value())
        }
        Construct::Call(id) => {
            let d = a.engine.derivative(id);
            (d.augmented.ty(), d.augmented.value())
        }
        _ => return Ok(()),
    };
    let frame = match construct {
        Construct::Call(id) if a.plan.is_boxed(i) => {
            let size =
                a.b.load(a.engine.module().context().int(64), a.engine.derivative(id).size_global);
            let frame = a.b.call(a.engine.support("cotangent.alloc"), &[a.arena, size]);
            a.engine.frames().own(a.b.store(frame, field));
            frame
        }
        // A dispatcher allocates the frame and leaves its address here.
        _ => field,
    };
    arguments.extend([frame, a.arena]);
    let new = if copy.is(Opcode::LLVMInvoke) {
        a.b.invoke(
            ty,
            pointer,
            &arguments,
            copy.normal_destination(),
            copy.unwind_destination(),
        )
    } else {
        a.b.call_value(ty, pointer, &arguments)
    };
    let offset = u32::from(matches!(construct, Construct::Indirect(_)));
    // Derivatives have C's convention.
    new.set_call_convention(0);
    for k in 0..i.argument_count() {
        copy.copy_passing(k, new, k + offset);
    }
    // The results of the old call are those of the new one. They are taken apart where the call goes on.
    // An invoke still has the old one behind it.
    a.after(i);
    let primal = if called.signature.result.pointers {
        let primal = a.b.extract(new, 0);
        a.each_direction(|a| {
            let shadow = a.b.extract(new, 1 + a.direction);
            a.set_shadow(i, shadow);
        });
        primal
    } else {
        new
    };
    if !i.ty().is_void() {
        copy.replace_with(primal);
    }
    copy.erase();
    a.replace_primal(i, primal);
    Ok(())
}

pub(super) fn reverse<'m>(construct: Construct<'m>, i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    let Some(called) = called(construct, s.engine) else {
        return Ok(());
    };
    let mut arguments = vec![];
    if called.signature.result.floats {
        arguments.extend(s.each_direction(|s| s.take(i)));
    }
    let region = s.plan.shape.region_of_value(i);
    let arena = s.arena;
    let field = s.field(region, Slot::Callee(i)).unwrap_or(arena);
    let frame = if s.plan.is_boxed(i) {
        let frame = s.engine.frames().own(s.b.load(arena.ty(), field));
        s.b.call(s.engine.support("cotangent.ahead"), &[frame]);
        frame
    } else {
        field
    };
    arguments.extend([frame, arena]);
    let back = match construct {
        Construct::Call(id) => s.b.call(s.engine.derivative(id).reverse, &arguments),
        Construct::Indirect(id) => {
            let pointer = s.primal(i.called())?;
            arguments.insert(0, pointer);
            s.b.call(s.engine.dispatch(id).reverse, &arguments)
        }
        _ => return Ok(()),
    };
    let with = i
        .arguments()
        .into_iter()
        .zip(&called.signature.arguments)
        .filter(|(_, a)| a.cotangent);
    let with: Vec<_> = with.map(|(x, _)| x).collect();
    let width = s.plan.signature.width;
    let one = with.len() as u32 * width == 1;
    for (k, x) in (0..).zip(with) {
        s.each_direction(|s| {
            let at = k * width + s.direction;
            let part = if one { back } else { s.b.extract(back, at) };
            s.accumulate(x, part);
        });
    }
    Ok(())
}
