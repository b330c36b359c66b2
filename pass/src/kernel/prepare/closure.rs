//! What functions reach: bodies and constants, through calls, addresses and tables.
//!
//! A definition that the linker may replace by another one is not followed: its derivative would be that of the wrong
//! function. Where an indirect call is reached, every function of the program that it might call is reached as well:
//! those of the called type whose address is taken somewhere.

use crate::kernel::attributes::RULES;
use crate::llvm::{Function, Mod, Type, Value};
use std::collections::HashSet;

/// What is reached.
pub(super) struct Reached<'m> {
    /// Functions with their bodies, constants with their values, and aliases of these.
    pub(super) definitions: Vec<Value<'m>>,
    /// Those functions that are reached only because an indirect call might call them.
    pub(super) candidates: Vec<Function<'m>>,
}

/// What the functions reach.
pub(super) fn of<'m>(program: Mod<'m>, roots: &[Function<'m>]) -> Reached<'m> {
    let mut walk = Walk::default();
    for root in roots {
        walk.visit(root.value());
    }
    let mut candidates = Vec::new();
    loop {
        while let Some(next) = walk.work.pop() {
            walk.follow(next);
        }
        let might = |f: &Function<'m>| {
            walk.indirect.contains(&f.ty())
                && !walk.seen.contains(&f.value())
                && !f.is_declaration()
                && f.is_address_taken()
        };
        let more: Vec<_> = program.functions().filter(might).collect();
        if more.is_empty() {
            return Reached {
                definitions: walk.definitions,
                candidates,
            };
        }
        for f in more {
            walk.visit(f.value());
            candidates.push(f);
        }
    }
}

#[derive(Default)]
struct Walk<'m> {
    seen: HashSet<Value<'m>>,
    work: Vec<Value<'m>>,
    definitions: Vec<Value<'m>>,
    /// Types of functions that are called through pointers.
    indirect: HashSet<Type<'m>>,
}

impl<'m> Walk<'m> {
    fn visit(&mut self, v: Value<'m>) {
        if v.is_constant() && self.seen.insert(v) {
            self.work.push(v);
        }
    }

    fn follow(&mut self, v: Value<'m>) {
        if let Some(aliasee) = v.aliasee() {
            self.definitions.push(v);
            self.visit(aliasee);
        } else if let Some(f) = v.as_function() {
            if !f.is_declaration() && !v.is_interposable() {
                self.definitions.push(v);
                self.body(f);
            }
        } else if v.is_global() {
            let kept = v.is_global_constant() && !v.is_interposable();
            if let Some(value) = v.initializer().filter(|_| kept) {
                self.definitions.push(v);
                self.visit(value);
            }
        } else {
            v.operands().for_each(|o| self.visit(o));
        }
    }

    fn body(&mut self, f: Function<'m>) {
        for rule in RULES.iter().filter_map(|r| f.string_attribute(r)) {
            if let Some(rule) = f.module().function(&rule) {
                self.visit(rule.value());
            }
        }
        if let Some(p) = f.personality() {
            self.visit(p);
        }
        for i in f.instructions() {
            i.operands().for_each(|o| self.visit(o));
            if i.is_call() && i.callee().is_none() {
                self.indirect.insert(i.called_type());
            }
        }
    }
}
