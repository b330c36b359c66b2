//! Which values of a function can depend on what is differentiated, for one signature of it.
//!
//! Activity is one answer for all calls of a function. Here the arguments without shadow and cotangent are known: what is
//! loaded from them, and computed from that, is constant in this derivative.

use super::plan::{Plan, Target};
use crate::llvm::{Block, Opcode, Value};
use std::collections::HashSet;

/// Does the value bring in a dependence by itself?
fn is_source<'m>(i: Value<'m>, plan: &mut Plan<'m>) -> bool {
    match i.opcode() {
        _ if !plan.activity.is_active(i) => false,
        Opcode::LLVMLoad | Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg => {
            plan.target(i.operand(0)) != Target::Inactive
        }
        // What a call gives may come from memory that it reaches.
        Opcode::LLVMCall | Opcode::LLVMInvoke => crate::kernel::rules::rule_of(i).is_none(),
        _ => false,
    }
}

/// The values that vary.
pub(super) fn varied<'m>(plan: &mut Plan<'m>, live: &[Block<'m>]) -> HashSet<Value<'m>> {
    let arguments = plan.function.params().into_iter().zip(plan.signature.arguments.clone());
    let mut open: Vec<_> = arguments.filter(|(_, a)| a.cotangent).map(|(p, _)| p).collect();
    for i in live.iter().flat_map(|b| b.instructions()) {
        if is_source(i, plan) {
            open.push(i);
        }
    }
    let mut found = HashSet::new();
    while let Some(v) = open.pop() {
        if found.insert(v) {
            let users = v.users().filter(|u| u.is_instruction() && plan.activity.is_active(*u));
            open.extend(users);
        }
    }
    found
}
