//! What functions reach: bodies and constants, through calls, addresses and tables.
//!
//! A definition that the linker may replace by another one is not followed: its derivative would be that of the wrong
//! function. Where an indirect call is reached, every function of the program that it might call is reached as well
//! ([`of`]): those of the called type whose address is taken somewhere.

use crate::kernel::attributes::RULES;
use crate::llvm::{Function, Mod, Type, Value};
use std::collections::HashSet;

/// What is reached.
pub(crate) struct Reached<'m> {
    /// Functions with their bodies, constants with their values, and aliases of these.
    pub(crate) definitions: Vec<Value<'m>>,
    /// What is known by name only: what the module declares, and what is not to be followed.
    pub(crate) names: Vec<Value<'m>>,
    /// The functions, with and without bodies, that an indirect call might call: what holds their addresses may be a
    /// variable, of which only the name is reached.
    pub(crate) candidates: Vec<Function<'m>>,
    /// Types of the functions that are called through pointers.
    pub(crate) indirect: HashSet<Type<'m>>,
}

/// What the functions reach, of that which is to be followed, without what indirect calls might reach.
pub(crate) fn direct<'m>(roots: &[Value<'m>], follow: &dyn Fn(Value<'m>) -> bool) -> Reached<'m> {
    let mut walk = Walk::new(roots, follow);
    walk.finish();
    Reached {
        definitions: walk.definitions,
        names: walk.names,
        candidates: vec![],
        indirect: walk.indirect,
    }
}

/// What the functions reach, of that which is to be followed.
pub(crate) fn of<'m>(program: Mod<'m>, roots: &[Value<'m>], follow: &dyn Fn(Value<'m>) -> bool) -> Reached<'m> {
    let mut walk = Walk::new(roots, follow);
    loop {
        while let Some(next) = walk.work.pop() {
            walk.step(next);
        }
        let might = |f: &Function<'m>| {
            let called = walk.indirect.contains(&f.ty()) && f.is_address_taken();
            called && !f.name().starts_with("llvm.") && (f.is_declaration() || follow(f.value()))
        };
        let candidates: Vec<_> = program.functions().filter(might).collect();
        let fresh = |f: &&Function<'m>| !f.is_declaration() && !walk.seen.contains(&f.value());
        let more: Vec<_> = candidates.iter().filter(fresh).copied().collect();
        if more.is_empty() {
            return Reached {
                definitions: walk.definitions,
                names: walk.names,
                candidates,
                indirect: walk.indirect,
            };
        }
        for f in more {
            walk.visit(f.value());
        }
    }
}

/// The functions that are derivatives of a function because the user says so.
pub(super) fn rules_of<'m>(f: Function<'m>) -> Vec<Function<'m>> {
    let names = RULES.iter().filter_map(|rule| f.string_attribute(rule));
    names.filter_map(|name| f.module().function(&name)).collect()
}

struct Walk<'m, 'f> {
    follow: &'f dyn Fn(Value<'m>) -> bool,
    seen: HashSet<Value<'m>>,
    work: Vec<Value<'m>>,
    definitions: Vec<Value<'m>>,
    names: Vec<Value<'m>>,
    /// Types of functions that are called through pointers.
    indirect: HashSet<Type<'m>>,
}

impl<'m, 'f> Walk<'m, 'f> {
    fn new(roots: &[Value<'m>], follow: &'f dyn Fn(Value<'m>) -> bool) -> Self {
        let mut walk = Walk {
            follow,
            seen: HashSet::new(),
            work: Vec::new(),
            definitions: Vec::new(),
            names: Vec::new(),
            indirect: HashSet::new(),
        };
        for root in roots {
            walk.visit(*root);
        }
        walk
    }

    fn finish(&mut self) {
        while let Some(next) = self.work.pop() {
            self.step(next);
        }
    }

    fn visit(&mut self, v: Value<'m>) {
        if v.is_constant() && self.seen.insert(v) {
            self.work.push(v);
        }
    }

    fn step(&mut self, v: Value<'m>) {
        if let Some(aliasee) = v.aliasee() {
            self.definitions.push(v);
            self.visit(aliasee);
        } else if let Some(f) = v.as_function() {
            for rule in rules_of(f) {
                self.visit(rule.value());
            }
            if !f.is_declaration() && !v.is_interposable() && (self.follow)(v) {
                self.definitions.push(v);
                self.body(f);
            } else {
                self.names.push(v);
            }
        } else if v.is_global() {
            let kept = v.is_global_constant() && !v.is_interposable() && (self.follow)(v);
            if let Some(value) = v.initializer().filter(|_| kept) {
                self.definitions.push(v);
                self.visit(value);
            } else {
                self.names.push(v);
            }
        } else {
            v.operands().for_each(|o| self.visit(o));
        }
    }

    fn body(&mut self, f: Function<'m>) {
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
