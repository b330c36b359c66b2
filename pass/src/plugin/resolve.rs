//! Which function an operand is, where the compiler did not optimise yet.
//!
//! The address goes through casts, through variables that are written once, through constants with a known value, and
//! through functions that do nothing but return it (a lambda's conversion to a function pointer).

use crate::llvm::{Function, Opcode, Value};

/// How many such steps are followed: recursive functions end here.
const DEPTH: u32 = 32;

/// The function that a value is the address of.
pub(super) fn function(v: Value<'_>) -> Option<Function<'_>> {
    step(v, DEPTH)
}

fn step(v: Value<'_>, depth: u32) -> Option<Function<'_>> {
    let depth = depth.checked_sub(1)?;
    if let Some(f) = v.as_function_or_alias() {
        return Some(f);
    }
    if v.is_const_expression() {
        return step(v.operand(0), depth);
    }
    if !v.is_instruction() {
        return None;
    }
    match v.opcode() {
        Opcode::LLVMBitCast | Opcode::LLVMAddrSpaceCast | Opcode::LLVMFreeze => step(v.operand(0), depth),
        Opcode::LLVMPtrToInt | Opcode::LLVMIntToPtr => step(v.operand(0), depth),
        Opcode::LLVMLoad => step(stored(v.operand(0))?, depth),
        Opcode::LLVMCall | Opcode::LLVMInvoke => step(returned(v.callee()?)?, depth),
        _ => None,
    }
}

/// The one value that a variable ever holds.
fn stored(variable: Value<'_>) -> Option<Value<'_>> {
    if variable.is_global() {
        return variable.initializer().filter(|_| variable.is_global_constant());
    }
    if !variable.is(Opcode::LLVMAlloca) {
        return None;
    }
    let mut value = None;
    for user in variable.users() {
        match user.opcode() {
            Opcode::LLVMLoad => {}
            Opcode::LLVMStore if user.operand(0) != variable && value.is_none() => value = Some(user.operand(0)),
            Opcode::LLVMCall if user.intrinsic().is_some_and(|n| n.starts_with("llvm.lifetime.")) => {}
            _ => return None,
        }
    }
    value
}

/// The one value that a function ever returns.
fn returned(f: Function<'_>) -> Option<Value<'_>> {
    if f.value().is_interposable() {
        return None;
    }
    let mut returns = f.instructions().filter(|i| i.is(Opcode::LLVMRet));
    let value = returns.next().filter(|r| r.operand_count() == 1)?.operand(0);
    returns.next().is_none().then_some(value)
}
