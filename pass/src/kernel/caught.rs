//! Exceptions that are caught within what is differentiated: for the reverse, leaving a function by an exception is one
//! more way out of it.
//!
//!     forward   v = invoke f(..) to on, unwind to pad        f: .. frame.exit = k; resume
//!     reverse   pad: .. on to the reverse of the invoke      f: from the exit that was taken, as after a return
//!
//! So in every function that an exception may pass on its way to a handler, calls that may throw become invokes, whose
//! pad resumes: then all ways out are there to be numbered. Handlers from which no return is reached catch nothing that
//! counts. An allocation that fails is not followed into handlers: the derivative ends with the exception.

use crate::kernel::analysis::allocation;
use crate::kernel::attributes::CAUGHT;
use crate::llvm::{Block, Function, Mod, Opcode, Value};
use std::collections::HashSet;

/// Finds what exceptions pass on their way to handlers, and prepares it.
pub fn prepare(module: Mod<'_>) {
    let bodies: Vec<_> = module.functions().filter(|f| !f.is_declaration()).collect();
    let mut work = vec![];
    for f in &bodies {
        if !is_cpp(*f) || handlers(*f).is_empty() {
            continue;
        }
        let invokes = calls(*f).filter(|i| i.is(Opcode::LLVMInvoke));
        let allocating: Vec<_> = invokes.filter(|i| allocation(*i).is_some()).collect();
        allocating.into_iter().for_each(Value::invoke_to_call);
        let handlers = handlers(*f);
        let personality = f.personality();
        let caught = calls(*f).filter(|i| i.is(Opcode::LLVMInvoke) && handlers.contains(&i.unwind_destination()));
        work.extend(caught.flat_map(|i| callees(i, &bodies)).map(|g| (g, personality)));
    }
    while let Some((f, personality)) = work.pop() {
        if f.is_declaration() || f.attribute("nounwind").is_some() || f.string_attribute(CAUGHT).is_some() {
            continue;
        }
        f.add_string_attribute(CAUGHT, "");
        let personality = f.personality().or(personality);
        if let (None, Some(p)) = (f.personality(), personality) {
            f.set_personality(p);
        }
        work.extend(calls(f).flat_map(|i| callees(i, &bodies)).map(|g| (g, personality)));
        let plain: Vec<_> = calls(f).filter(|i| i.is(Opcode::LLVMCall) && may_throw(*i)).collect();
        if !plain.is_empty() {
            f.unwind_by_resume(&plain);
        }
    }
}

/// Blocks at whose end the function is left, as far as derivatives care: by a return, or by an exception that is caught.
pub fn ways_out<'m>(f: Function<'m>) -> impl Fn(&Block<'m>) -> bool {
    let caught = f.string_attribute(CAUGHT).is_some();
    let is_way_out = move |t: Value<'m>| t.is(Opcode::LLVMRet) || caught && t.is(Opcode::LLVMResume);
    move |b| b.terminator().is_some_and(is_way_out)
}

/// Are the function's exceptions those of C++? Panics carry their payload by ways of their own, and are not followed.
pub fn is_cpp(f: Function<'_>) -> bool {
    f.personality().is_some_and(|p| p.name() == "__gxx_personality_v0")
}

/// Does any function of the module catch exceptions?
pub fn is_any(module: Mod<'_>) -> bool {
    module.functions().any(|f| is_cpp(f) && !handlers(f).is_empty())
}

/// Landing pads from which the function comes back to its caller by a return.
fn handlers(f: Function<'_>) -> HashSet<Block<'_>> {
    let ends = |b: &Block<'_>| b.terminator().is_some_and(|t| t.is(Opcode::LLVMRet));
    let mut live = HashSet::new();
    let mut stack: Vec<_> = f.blocks().filter(ends).collect();
    while let Some(block) = stack.pop() {
        if live.insert(block) {
            stack.extend(block.predecessors());
        }
    }
    live.retain(|b: &Block<'_>| b.predecessors().iter().any(|p| unwinds_to(*p, *b)));
    live
}

fn unwinds_to<'m>(from: Block<'m>, to: Block<'m>) -> bool {
    let end = from.terminator();
    end.is_some_and(|t| t.is(Opcode::LLVMInvoke) && t.unwind_destination() == to)
}

fn calls<'m>(f: Function<'m>) -> impl Iterator<Item = Value<'m>> {
    f.instructions().filter(|i| i.is_call())
}

/// May the call be left by an exception that is to be followed?
fn may_throw(call: Value<'_>) -> bool {
    !call.call_has("nounwind") && call.intrinsic().is_none() && !call.is_inline_assembly() && allocation(call).is_none()
}

/// The functions that a call may call.
fn callees<'m>(call: Value<'m>, bodies: &[Function<'m>]) -> Vec<Function<'m>> {
    match call.callee() {
        Some(f) => vec![f],
        None if call.is_inline_assembly() => vec![],
        None => {
            let fits = |f: &&Function<'m>| f.ty() == call.called_type() && f.is_address_taken();
            bodies.iter().filter(fits).copied().collect()
        }
    }
}
