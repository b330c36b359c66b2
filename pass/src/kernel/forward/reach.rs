//! Which blocks and values tangents are computed for: blocks that a return can follow, and values that what is asked
//! for can reach.

use super::bits;
use super::{Given, Signature, can_carry, has_pointers};
use crate::kernel::analysis::activity::Activity;
use crate::kernel::caught::ways_out;
use crate::kernel::globals::Globals;
use crate::kernel::rules::rule_of;
use crate::llvm::{Block, Function, Opcode, Value};
use std::collections::HashSet;

/// Blocks from which the function can return, in an order in which definitions come before uses.
pub(super) fn live_blocks<'m>(f: Function<'m>) -> Vec<Block<'m>> {
    let mut order = vec![];
    let mut seen = HashSet::new();
    let mut stack: Vec<(Block<'m>, Vec<Block<'m>>)> = vec![];
    if let Some(entry) = f.entry() {
        seen.insert(entry);
        stack.push((entry, entry.successors()));
    }
    while let Some((block, successors)) = stack.last_mut() {
        match successors.pop() {
            Some(next) if seen.insert(next) => stack.push((next, next.successors())),
            Some(_) => {}
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    let mut live = HashSet::new();
    let mut open: Vec<_> = order.iter().copied().filter(ways_out(f)).collect();
    while let Some(block) = open.pop() {
        if live.insert(block) {
            open.extend(block.predecessors().into_iter().filter(|p| seen.contains(p)));
        }
    }
    order.reverse();
    order.retain(|b| live.contains(b));
    order
}

/// Values that can have a shadow that is not zero. Values with pointers always have one.
pub(super) fn tangible<'m>(
    signature: &Signature<'m>,
    blocks: &[Block<'m>],
    globals: &Globals<'m>,
    activity: &Activity<'m>,
) -> HashSet<Value<'m>> {
    let mut found = HashSet::new();
    let mut open = vec![];
    for (p, given) in signature.function.params().into_iter().zip(&signature.arguments) {
        let shadow = matches!(given, Given::Shadow(_)) && !signature.frozen;
        if can_carry(p.ty()) && (shadow || has_pointers(p.ty())) {
            open.push(p);
        }
    }
    for i in blocks.iter().flat_map(|b| b.instructions()) {
        let source = match i.opcode() {
            Opcode::LLVMLoad => !signature.frozen && !is_constant_address(i.operand(0), globals),
            Opcode::LLVMCall | Opcode::LLVMInvoke => !signature.frozen && rule_of(i).is_none(),
            _ => false,
        };
        if can_carry(i.ty()) && (source || has_pointers(i.ty())) {
            open.push(i);
        }
    }
    while let Some(v) = open.pop() {
        if found.insert(v) {
            let passes = |u: &Value<'m>| u.is_instruction() && (activity.is_computed(*u) || passes_on(*u, v));
            let users: Vec<_> = v.users().filter(passes).collect();
            open.extend(users);
        }
    }
    found
}

/// Memory of a global variable without shadow.
fn is_constant_address<'m>(p: Value<'m>, globals: &Globals<'m>) -> bool {
    p.is_constant() && !globals.has(p) || p.is(Opcode::LLVMGetElementPtr) && is_constant_address(p.operand(0), globals)
}

/// Does the result of an instruction depend on a shadow of this operand?
fn passes_on<'m>(user: Value<'m>, of: Value<'m>) -> bool {
    if !can_carry(user.ty()) {
        return false;
    }
    match user.opcode() {
        Opcode::LLVMPHI | Opcode::LLVMExtractValue | Opcode::LLVMInsertValue | Opcode::LLVMFreeze => true,
        Opcode::LLVMSelect => user.operand(1) == of || user.operand(2) == of,
        Opcode::LLVMGetElementPtr => user.operand(0) == of,
        _ => match rule_of(user) {
            Some(rule) => rule
                .operands()
                .into_iter()
                .enumerate()
                .any(|(i, x)| x == of && rule.active(i)),
            None => bits::moves(user.opcode()),
        },
    }
}
