//! Memory of the caller that nothing writes to while the code runs: the reverse can read it again.
//!
//! Two arguments may lead to the same memory, and a variable of the program may be it. So either nothing that code outside
//! knows is written at all; or what is written, or what is read, lies behind a parameter through which alone it is reached
//! (`noalias`: a slice borrowed in Rust, `restrict` in C).
//!
//! **Promise.** Where [`Unwritten::has`] says yes, a load through the pointer gives the same at any time from a call of a
//! root to its end, under the promise of [`content`](super::content). Code that is not at hand writes where its attributes
//! allow it to; of a program whose threads write there nothing is promised, nor by LLVM.

use super::allocations::{Allocation, allocation};
use super::constraints::Constraints;
use super::content::Content;
use super::regions::Origin;
use crate::kernel::attributes::has_own_rule;
use crate::kernel::callee::{does_output, is_silent, of_block};
use crate::kernel::caught;
use crate::kernel::rules::rule_of;
use crate::llvm::{Function, Mod, Opcode, Value};
use std::collections::HashSet;
use std::fmt::Write;

/// The memory of a module that nothing writes to.
#[derive(Default)]
pub struct Unwritten {
    nodes: HashSet<u32>,
}

impl Unwritten {
    /// Looks at what the roots reach.
    pub fn new<'m>(module: Mod<'m>, content: &Content<'_, 'm>, roots: &[Function<'m>]) -> Self {
        let c = &mut *content.inner.borrow_mut();
        let mut written = HashSet::new();
        let catches = caught::is_any(module);
        for i in reached(module, roots).iter().flat_map(|f| f.instructions()) {
            match writes(i, catches, c) {
                Some(nodes) => written.extend(nodes),
                None => return Self::default(),
            }
        }
        let all: HashSet<u32> = (0..c.regions.node_count() as u32)
            .map(|n| c.regions.find(n).0)
            .collect();
        let outside = |o: Origin| o.open || o.given || o.global || o.is_none();
        let known: Vec<u32> = all.iter().copied().filter(|n| outside(c.regions.origin(*n))).collect();
        let known = c.regions.reach(known);
        let alone = alone(roots, &known, c);
        let only_alone = written.iter().all(|n| !known.contains(n) || alone.contains(n));
        let mut of_caller = |n: &u32| {
            let Origin {
                given,
                stack,
                heap,
                global,
                ..
            } = c.regions.origin(*n);
            given && !stack && !heap && !global
        };
        let nodes = all
            .into_iter()
            .filter(|n| of_caller(n) && !written.contains(n) && (only_alone || alone.contains(n)));
        Self { nodes: nodes.collect() }
    }

    /// Does nothing write where a pointer leads?
    pub fn has<'m>(&self, content: &Content<'_, 'm>, pointer: Value<'m>) -> bool {
        if self.nodes.is_empty() {
            return false;
        }
        let c = &mut *content.inner.borrow_mut();
        let slot = c.slots_of(pointer);
        c.regions.target(slot).is_some_and(|t| self.nodes.contains(&t.node))
    }

    /// Text form: the loads that give the same again.
    pub fn print<'m>(&self, content: &Content<'_, 'm>, f: Function<'m>) -> String {
        let mut text = format!("@{}\n", f.name());
        for load in f.instructions().filter(|i| i.is(Opcode::LLVMLoad)) {
            if self.has(content, load.operand(0)) {
                let _ = writeln!(text, "  %{}", load.name());
            }
        }
        text
    }
}

/// The functions with bodies that calls from the roots can reach.
fn reached<'m>(module: Mod<'m>, roots: &[Function<'m>]) -> HashSet<Function<'m>> {
    let (mut open, mut seen) = (roots.to_vec(), HashSet::new());
    let mut indirect = false;
    while let Some(f) = open.pop() {
        if f.is_declaration() || !seen.insert(f) {
            continue;
        }
        for call in f.instructions().filter(|i| i.is_call()) {
            match call.callee() {
                Some(callee) => open.push(callee),
                None if indirect => {}
                None => {
                    indirect = true;
                    open.extend(module.functions().filter(|f| f.is_address_taken()));
                }
            }
        }
    }
    seen
}

/// What lies behind parameters through which alone it is reached.
fn alone<'m>(roots: &[Function<'m>], known: &HashSet<u32>, c: &mut Constraints<'_, 'm>) -> HashSet<u32> {
    let (mut alone, mut shared) = (HashSet::new(), HashSet::new());
    for f in roots {
        for (k, p) in f.params().into_iter().enumerate() {
            let targets = c.targets(p);
            match f.param_attribute(k as u32, "noalias") {
                Some(_) if p.ty().is_pointer() => alone.extend(targets),
                _ => shared.extend(targets),
            }
        }
    }
    for n in known {
        for (_, cell) in c.regions.cells(*n).0 {
            shared.extend(c.regions.target(cell).map(|t| t.node));
        }
    }
    alone.retain(|n| !shared.contains(n));
    alone
}

/// The memory that an instruction writes to; `None`: any.
fn writes<'m>(i: Value<'m>, catches: bool, c: &mut Constraints<'_, 'm>) -> Option<Vec<u32>> {
    match i.opcode() {
        Opcode::LLVMStore => target(i.operand(1), c).map(|n| vec![n]),
        Opcode::LLVMAtomicRMW | Opcode::LLVMAtomicCmpXchg => target(i.operand(0), c).map(|n| vec![n]),
        Opcode::LLVMCall | Opcode::LLVMInvoke => call(i, catches, c),
        _ => Some(vec![]),
    }
}

/// Where a pointer leads, if that is an object that is known.
fn target<'m>(pointer: Value<'m>, c: &mut Constraints<'_, 'm>) -> Option<u32> {
    let slot = c.slots_of(pointer);
    let node = c.regions.target(slot)?.node;
    (!c.regions.origin(node).is_none()).then_some(node)
}

fn call<'m>(i: Value<'m>, catches: bool, c: &mut Constraints<'_, 'm>) -> Option<Vec<u32>> {
    let arguments = i.arguments();
    if i.callee().is_some_and(has_own_rule) {
        // What runs in its place is code of the user's.
        return None;
    }
    let block = match allocation(i) {
        Some(Allocation::New { .. }) => return Some(vec![]),
        Some(Allocation::Resize { old: block, .. } | Allocation::Free { block }) => Some(arguments[block as usize]),
        None => None,
    };
    if let Some(block) = block {
        return target(block, c).map(|n| vec![n]);
    }
    let name = i.callee().map(|f| f.name()).unwrap_or_default();
    let computes = i.callee().is_some_and(|f| !f.is_declaration()) || rule_of(i).is_some();
    let leaves = i.call_has("noreturn") && !catches;
    if computes || leaves || name.strip_prefix("llvm.").is_some_and(is_silent) {
        return Some(vec![]);
    }
    let effects = i.effects();
    if of_block(&name).is_some() {
        return target(arguments[0], c).map(|n| vec![n]);
    }
    if effects.other.writes && !does_output(&name) {
        return None;
    }
    let mut nodes = vec![];
    let constant = |a: &Value<'m>| a.ty().is_pointer() && a.underlying_object().is_global_constant();
    for (k, a) in arguments.iter().enumerate().filter(|(_, a)| !constant(a)) {
        let (access, kept) = i.argument_effects(k as u32);
        if (access.writes && effects.arguments.writes) || kept {
            let targets = c.targets(*a);
            nodes.extend(c.regions.reach(targets));
        }
    }
    Some(nodes)
}
