//! Calls of functions with a derivative of their own: the body is not entered.
//!
//!     y = f(x..)                        y = f(x..), y' = rule(x, x', ..), or {y, y'} = rule(x, x', ..)
//!     custom_jvp(rule, args, out)       rule.tangent(args, args', out, out', arena)        as the Rust runtime has it
//!     y = g(x..), g inactive            pointers keep their shadows, floats are constant

use super::sweep::Sweep;
use super::{call, can_carry, has_pointers};
use crate::kernel::Refusal;
use crate::kernel::attributes as a;
use crate::llvm::{Function, Opcode, Type, Value};

/// Where the address of the tangent function stands, from the end of a rule.
const TANGENT_FROM_END: u64 = 8;

/// Replaces the call if its callee has a derivative of its own, or is inactive.
pub(super) fn replace<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) -> Result<bool, Vec<Refusal>> {
    let Some(callee) = i.callee() else { return Ok(false) };
    if callee.string_attribute(a::INACTIVE).is_some() && !callee.is_declaration() {
        call::direct(s, i, callee, true)?;
        return Ok(true);
    }
    if s.signature.frozen {
        return Ok(false);
    }
    let has_rule = callee.string_attribute(a::TANGENT_RULE).is_some();
    if s.width() > 1 && (has_rule || a::RUNTIME_RULES.contains(&callee.name().as_str())) {
        let what = format!(
            "`{}`, whose rule is for one direction, in several at once",
            callee.name()
        );
        return Err(vec![Refusal::at(i, what, "ask for one direction per call")]);
    }
    if a::RUNTIME_RULES.contains(&callee.name().as_str()) {
        return of_runtime(s, i).map(|()| true).map_err(|r| vec![r]);
    }
    if let Some(rule) = callee.string_attribute(a::TANGENT_RULE) {
        return registered(s, i, &rule).map(|()| true).map_err(|r| vec![r]);
    }
    if callee.string_attribute(a::FORWARD_RULE).is_some() {
        let what = format!(
            "the tangent of `{}`, which has a rule for gradients only",
            callee.name()
        );
        return Err(vec![Refusal::at(i, what, "register a rule for tangents as well")]);
    }
    Ok(false)
}

fn of_runtime<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>) -> Result<(), Refusal> {
    let rule = i.operand(0);
    let size = rule.is_global().then(|| s.module().size(rule.value_type()));
    let tangent = size.and_then(|size| rule.constant_pointer(size - TANGENT_FROM_END));
    let help = "give the rule a tangent: `#[custom_vjp(forward = .., backward = .., tangent = ..)]`";
    let Some(tangent) = tangent else {
        return Err(Refusal::at(
            i,
            "a derivative rule that is not a constant",
            "mark the function with `#[custom_jvp]`",
        ));
    };
    if tangent.is_null() {
        return Err(Refusal::at(
            i,
            "the tangent of a function whose rule is for gradients only",
            help,
        ));
    }
    let context = s.module().context();
    let ty = context.function(context.void(), &[context.ptr(); 5]);
    let copy = s.primal(i);
    let (args, out) = (i.operand(1), i.operand(2));
    let arguments = [
        s.primal(args),
        s.shadow_or_zero(args),
        s.primal(out),
        s.shadow_or_zero(out),
        s.arena,
    ];
    call::put(s, i, ty, tangent, &arguments);
    copy.erase();
    Ok(())
}

/// A rule that a C program registered: each pointer and float is followed by its shadow or tangent.
fn registered<'m>(s: &mut Sweep<'_, '_, 'm>, i: Value<'m>, name: &str) -> Result<(), Refusal> {
    let (module, copy) = (s.module(), s.primal(i));
    let rule = module.function(name);
    let mut arguments = vec![];
    for x in i.arguments() {
        arguments.push(s.primal(x));
        if x.ty().is_pointer() || x.ty().scalar().is_float() {
            arguments.push(s.shadow_or_zero(x));
        }
    }
    let types: Vec<_> = arguments.iter().map(|v| v.ty()).collect();
    let fits = |f: &Function<'m>| f.ty().params() == types && gives(f.result(), i.ty());
    let Some(rule) = rule.filter(fits) else {
        let what = format!("the tangent rule `{name}`, whose signature is not that of a rule for this call");
        let help =
            "it takes each pointer and float followed by its tangent, and gives the tangent, or value and tangent";
        return Err(Refusal::at(i, what, help));
    };
    if i.ty().is_void() {
        call::put(s, i, rule.ty(), rule.value(), &arguments);
        copy.erase();
        return Ok(());
    }
    s.after(i);
    let given = s.b.call(rule, &arguments);
    if rule.result() == i.ty() {
        s.set_shadow(i, given);
        return Ok(());
    }
    let (value, tangent) = (s.b.extract(given, 0), s.b.extract(given, 1));
    s.set_shadow(i, tangent);
    copy.replace_with(value);
    if copy.is(Opcode::LLVMCall) {
        copy.erase();
        s.set_primal(i, value);
    }
    Ok(())
}

/// Does a rule of that result give what the call needs?
fn gives<'m>(rule: Type<'m>, call: Type<'m>) -> bool {
    let pair = rule.is_struct() && rule.parts() == [call, call];
    rule == call && !has_pointers(call) && (call.is_void() || can_carry(call)) || pair
}
