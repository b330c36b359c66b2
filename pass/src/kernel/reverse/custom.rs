//! Calls of functions with a derivative of their own: the body is not entered.
//!
//! A function of the Rust runtime is called with a constant that holds its rule:
//!
//!     forward   custom_vjp(rule, args, out)     kept = rule.augment(args, args', out, out', arena)
//!     reverse                                   rule.reverse(kept)
//!
//! A C program registers two functions:
//!
//!     forward   y = f(x..)                      {tape, y} = forward(x.., each pointer followed by its shadow)
//!     reverse   x̄.. += reverse(x.., ȳ, tape); ȳ = 0         once for each direction, of rules of numbers alone

use super::augment::Augment;
use super::construct::Construct;
use super::directions::Directions;
use super::frame::Slot;
use super::leaves::carries;
use super::plan::{Need, Plan};
use super::sweep::Sweep;
use crate::kernel::Refusal;
use crate::kernel::attributes as a;
use crate::llvm::{Function, Opcode, Type, Value};

/// Where the addresses of the two halves stand, from the end of a rule.
const AUGMENT_FROM_END: u64 = 24;
const REVERSE_FROM_END: u64 = 16;

/// A derivative that a user wrote.
#[derive(Clone, Copy, Debug)]
pub enum Rule<'m> {
    /// The two functions in a rule of the runtime.
    Runtime {
        /// Runs the forward half.
        augment: Value<'m>,
        /// Runs the reverse half.
        reverse: Value<'m>,
    },
    /// Two functions that a program registered.
    Registered {
        /// Gives tape and result.
        forward: Function<'m>,
        /// Gives the cotangents.
        reverse: Function<'m>,
    },
}

/// The rule of the function that is called, if it has one.
pub(super) fn classify<'m>(i: Value<'m>, plan: &mut Plan<'m>) -> Result<Option<Construct<'m>>, Refusal> {
    let Some(callee) = i.callee() else { return Ok(None) };
    let name = callee.name();
    let rule = if a::RUNTIME_RULES.contains(&name.as_str()) {
        of_runtime(i, plan)?
    } else if let (Some(forward), Some(reverse)) = (
        callee.string_attribute(a::FORWARD_RULE),
        callee.string_attribute(a::REVERSE_RULE),
    ) {
        registered(i, plan, &forward, &reverse)?
    } else if callee.string_attribute(a::TANGENT_RULE).is_some() {
        let what = format!("the gradient of `{name}`, which has a rule for tangents only");
        return Err(Refusal::at(i, what, "register a rule for gradients as well"));
    } else {
        return Ok(None);
    };
    if plan.signature.width > 1 && !serves_all(rule, i) {
        let what = format!("`{name}`, whose rule is for one direction, in several at once");
        return Err(Refusal::at(i, what, "ask for one direction per call"));
    }
    for x in i.arguments().into_iter().filter(|x| x.ty().is_pointer()) {
        plan.target(x);
    }
    Ok(Some(Construct::Rule(rule)))
}

/// Does the rule serve several directions? Its forward half runs once, so it must not know shadows; its reverse half runs
/// for each, so what is kept must outlast it.
fn serves_all<'m>(rule: Rule<'m>, i: Value<'m>) -> bool {
    let no_shadows = i.arguments().into_iter().all(|x| !carries(x.ty()).pointers);
    let floats = |t: Type<'m>| t.scalar().is_float();
    no_shadows
        && kept(rule, i).is_none_or(|tape| floats(tape) || tape.is_struct() && tape.parts().into_iter().all(floats))
}

fn of_runtime<'m>(i: Value<'m>, plan: &Plan<'m>) -> Result<Rule<'m>, Refusal> {
    let rule = i.operand(0);
    let size = rule.is_global().then(|| plan.module().size(rule.value_type()));
    let half = |from_end: u64| size.and_then(|size| rule.constant_pointer(size - from_end));
    let (Some(augment), Some(reverse)) = (half(AUGMENT_FROM_END), half(REVERSE_FROM_END)) else {
        let help = "mark the function with `#[custom_vjp(forward = .., backward = ..)]`";
        return Err(Refusal::at(i, "a derivative rule that is not a constant", help));
    };
    if augment.is_null() || reverse.is_null() {
        let help = "give it a gradient as well: `#[custom_vjp(forward = .., backward = .., tangent = ..)]`";
        return Err(Refusal::at(
            i,
            "the gradient of a function whose rule is for tangents only",
            help,
        ));
    }
    Ok(Rule::Runtime { augment, reverse })
}

fn registered<'m>(i: Value<'m>, plan: &Plan<'m>, forward: &str, reverse: &str) -> Result<Rule<'m>, Refusal> {
    let module = plan.module();
    let mut types = vec![];
    for x in i.arguments() {
        types.push(x.ty());
        types.extend(x.ty().is_pointer().then_some(x.ty()));
    }
    let help = "it takes the arguments, a shadow after each pointer, and gives the tape and the result";
    let first = module
        .function(forward)
        .filter(|f| f.ty().params() == types && parts(f.result(), i.ty()).is_some());
    let Some(first) = first else {
        return Err(Refusal::at(
            i,
            format!("the rule `{forward}`, whose signature is not that of a forward sweep"),
            help,
        ));
    };
    let result = i.ty();
    types.extend(result.scalar().is_float().then_some(result));
    types.extend(parts(first.result(), result).and_then(|p| p.tape));
    let floats: Vec<_> = i
        .arguments()
        .into_iter()
        .map(|x| x.ty())
        .filter(|t| t.scalar().is_float())
        .collect();
    let fits = |f: &Function<'m>| {
        let given = f.result();
        f.ty().params() == types
            && match floats.as_slice() {
                [] => given.is_void(),
                [one] => given == *one,
                many => given.is_struct() && given.parts() == many,
            }
    };
    let Some(second) = module.function(reverse).filter(fits) else {
        let what = format!("the rule `{reverse}`, whose signature is not that of a reverse sweep");
        let help = "it takes what the forward one takes, the cotangent of the result, and the tape, and gives the cotangents \
                    of the floats among the arguments";
        return Err(Refusal::at(i, what, help));
    };
    Ok(Rule::Registered {
        forward: first,
        reverse: second,
    })
}

/// What a registered forward sweep gives.
struct Parts<'m> {
    tape: Option<Type<'m>>,
    /// Is the result there, beside the tape or alone?
    result: bool,
}

fn parts<'m>(given: Type<'m>, result: Type<'m>) -> Option<Parts<'m>> {
    if result.is_void() {
        return Some(Parts {
            tape: Some(given).filter(|t| !t.is_void()),
            result: false,
        });
    }
    if given == result {
        return Some(Parts {
            tape: None,
            result: true,
        });
    }
    let both = given.is_struct().then(|| given.parts())?;
    (both.len() == 2 && both[1] == result).then(|| Parts {
        tape: Some(both[0]),
        result: true,
    })
}

/// What has to be kept between the sweeps.
fn kept<'m>(rule: Rule<'m>, i: Value<'m>) -> Option<Type<'m>> {
    match rule {
        Rule::Runtime { .. } => Some(i.ty().context().ptr()),
        Rule::Registered { forward, .. } => parts(forward.result(), i.ty())?.tape,
    }
}

pub(super) fn reserve<'m>(rule: Rule<'m>, i: Value<'m>, plan: &mut Plan<'m>) {
    if let Some(ty) = kept(rule, i) {
        let region = plan.shape.region_of_value(i);
        let (size, alignment) = (plan.module().size(ty), plan.module().alignment(ty));
        plan.frames.reserve(region, Slot::Callee(i), size, alignment.into());
    }
}

pub(super) fn needs<'m>(rule: Rule<'m>, i: Value<'m>) -> Vec<Need<'m>> {
    let Rule::Registered { .. } = rule else { return vec![] };
    let arguments = i.arguments().into_iter();
    arguments
        .flat_map(|x| [Some(Need::Primal(x)), x.ty().is_pointer().then_some(Need::Shadow(x))])
        .flatten()
        .collect()
}

pub(super) fn forward<'m>(rule: Rule<'m>, i: Value<'m>, a: &mut Augment<'_, 'm>) -> Result<(), Refusal> {
    let copy = a.primal(i);
    a.b.before(copy);
    let mut arguments = vec![];
    for x in i
        .arguments()
        .into_iter()
        .skip(usize::from(matches!(rule, Rule::Runtime { .. })))
    {
        arguments.push(a.primal(x));
        if x.ty().is_pointer() {
            arguments.push(a.shadow(x)?);
        }
    }
    let (ty, f) = match rule {
        Rule::Runtime { augment, .. } => {
            arguments.push(a.arena);
            let pointer = a.arena.ty();
            (pointer.context().function(pointer, &[pointer; 5]), augment)
        }
        Rule::Registered { forward, .. } => (forward.ty(), forward.value()),
    };
    let new = if copy.is(Opcode::LLVMInvoke) {
        a.b.invoke(ty, f, &arguments, copy.normal_destination(), copy.unwind_destination())
    } else {
        a.b.call_value(ty, f, &arguments)
    };
    match copy.next() {
        Some(next) => a.b.before(next),
        None => {
            a.replace_primal(i, new);
            a.after(i);
        }
    }
    let given = match rule {
        Rule::Runtime { .. } => Some(Parts {
            tape: Some(new.ty()),
            result: false,
        }),
        Rule::Registered { .. } => parts(new.ty(), i.ty()),
    };
    let Some(given) = given else { return Ok(()) };
    let (tape, value) = match (given.tape, given.result) {
        (Some(_), true) => (Some(a.b.extract(new, 0)), a.b.extract(new, 1)),
        (Some(_), false) => (Some(new), new),
        (None, _) => (None, new),
    };
    if let (Some(tape), Some(field)) = (tape, a.field(a.plan.shape.region_of_value(i), Slot::Callee(i))) {
        a.b.store_aligned(tape, field, a.engine.module().alignment(tape.ty()).min(16));
    }
    if !i.ty().is_void() {
        copy.replace_with(value);
    }
    copy.erase();
    a.replace_primal(i, value);
    Ok(())
}

pub(super) fn reverse<'m>(rule: Rule<'m>, i: Value<'m>, s: &mut Sweep<'_, 'm>) -> Result<(), Refusal> {
    let region = s.plan.shape.region_of_value(i);
    let tape = match (kept(rule, i), s.field(region, Slot::Callee(i))) {
        (Some(ty), Some(field)) => Some(s.b.load_aligned(ty, field, s.engine.module().alignment(ty).min(16))),
        _ => None,
    };
    match rule {
        Rule::Runtime { reverse, .. } => {
            let pointer = s.arena.ty();
            let ty = pointer.context().function(pointer.context().void(), &[pointer]);
            s.b.call_value(ty, reverse, &tape.into_iter().collect::<Vec<_>>());
            Ok(())
        }
        Rule::Registered { reverse, .. } => {
            let each = s.each_direction(|s| reverse_registered(reverse, i, tape, s));
            each.into_iter().collect()
        }
    }
}

fn reverse_registered<'m>(
    function: Function<'m>,
    i: Value<'m>,
    tape: Option<Value<'m>>,
    s: &mut Sweep<'_, 'm>,
) -> Result<(), Refusal> {
    let mut arguments = vec![];
    for x in i.arguments() {
        arguments.push(s.primal(x)?);
        if x.ty().is_pointer() {
            arguments.push(s.shadow(x)?);
        }
    }
    arguments.extend(i.ty().scalar().is_float().then(|| s.take(i)));
    arguments.extend(tape);
    let back = s.b.call(function, &arguments);
    let floats: Vec<_> = i
        .arguments()
        .into_iter()
        .filter(|x| x.ty().scalar().is_float())
        .collect();
    for (k, x) in floats.iter().enumerate() {
        let part = if floats.len() == 1 {
            back
        } else {
            s.b.extract(back, k as u32)
        };
        s.accumulate(*x, part);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
