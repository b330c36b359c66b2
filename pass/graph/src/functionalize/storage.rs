//! Storage: which tensors lie in which, what they hold now, and what a write to one does to the others.

use super::rewrite::{Outcome, Rewriter};
use super::views::{Inverse, Step, inverse, permutes};
use crate::ir::{Arg, Type, Value};
use crate::ops::Op;
use crate::specialize::InputInfo;

/// What is known of a tensor value of the graph.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// The value that holds its elements now, if `seen` is the base's generation.
    pub(super) current: Value,
    /// Generation of the base at which `current` was right.
    pub(super) seen: u64,
    /// The base: itself, unless it is a view.
    pub(super) base: Value,
    /// What it is a view of, and how; without a step: another handle to the same tensor.
    pub(super) parent: Option<(Value, Option<Step>)>,
    /// Is `current` in the storage of the base's value (and not only equal to what lies there)?
    pub(super) inside: bool,
}

/// What is known of a base.
#[derive(Clone, Debug, Default)]
pub(super) struct Base {
    /// Number of writes so far.
    pub(super) generation: u64,
    /// The input that it is.
    pub(super) input: Option<usize>,
}

impl Rewriter<'_> {
    /// A base of its own.
    pub(super) fn found(&mut self, v: Value, input: Option<usize>) {
        let member = Member {
            current: v,
            seen: 0,
            base: v,
            parent: None,
            inside: true,
        };
        self.members.insert(v, member);
        self.bases.insert(v, Base { generation: 0, input });
    }

    /// A view of `parent`, defined just now as the value `v`.
    pub(super) fn join(&mut self, v: Value, parent: Value, step: Option<Step>) {
        let (base, inside) = (self.members[&parent].base, self.members[&parent].inside);
        let member = Member {
            current: v,
            seen: self.bases[&base].generation,
            base,
            parent: Some((parent, step)),
            inside,
        };
        self.members.insert(v, member);
    }

    /// The value that holds the elements of `v` now.
    pub(super) fn read(&mut self, v: Value) -> Value {
        let Some(member) = self.members.get(&v) else {
            return v;
        };
        let generation = self.bases[&member.base].generation;
        if member.seen == generation {
            return member.current;
        }
        let Some((parent, step)) = member.parent.clone() else {
            return member.current;
        };
        let from = self.read(parent);
        let inside = self.members[&parent].inside;
        let current = match &step {
            None => from,
            Some(step) => {
                let ty = self.graph.ty(v).clone();
                self.push(step.op, step.args_on(from.into()), vec![ty])[0]
            }
        };
        let member = self.members.get_mut(&v).expect("looked up above");
        (member.current, member.seen, member.inside) = (current, generation, inside);
        current
    }

    /// Gives `v` and all that share its storage a new value.
    pub(super) fn write(&mut self, v: Value, new: Value) -> Outcome<()> {
        let Some((parent, step)) = self.members[&v].parent.clone() else {
            self.check_base(v)?;
            let base = self.bases.get_mut(&v).expect("a member without a parent is a base");
            base.generation += 1;
            let generation = base.generation;
            let member = self.members.get_mut(&v).expect("a base is a member of its own");
            (member.current, member.seen) = (new, generation);
            self.written.retain(|b| *b != v);
            self.written.push(v);
            return Ok(());
        };
        match &step {
            None => self.write(parent, new)?,
            Some(step) => {
                let through = self.write_through(step, parent, v, new)?;
                self.write(parent, through)?;
            }
        }
        let base = self.members[&v].base;
        let (generation, inside) = (self.bases[&base].generation, self.members[&parent].inside);
        let member = self.members.get_mut(&v).expect("looked up above");
        (member.current, member.seen) = (new, generation);
        member.inside = step.is_none() && inside;
        Ok(())
    }

    /// The new value of `parent` where its view `v` through `step` gets the value `new`.
    fn write_through(&mut self, step: &Step, parent: Value, v: Value, new: Value) -> Outcome<Value> {
        let (from, to) = (self.graph.tensor(parent).clone(), self.graph.tensor(v).clone());
        let ty = || vec![Type::Tensor(Some(from.clone()))];
        match inverse(step, &from, &to) {
            Inverse::Scatter(op, rest) => {
                let viewed = self.read(parent);
                let mut args = vec![Arg::Value(viewed), Arg::Value(new)];
                args.extend(rest);
                Ok(self.push(op, args, ty())[0])
            }
            Inverse::Transform(op, rest) => {
                let mut args = vec![Arg::Value(new)];
                args.extend(rest);
                let back = self.push(op, args, ty())[0];
                // Later views of the tensor may need its elements in order, as they lay before.
                Ok(match permutes(op) {
                    true => self.push(Op::named("contiguous"), vec![back.into()], ty())[0],
                    false => back,
                })
            }
            Inverse::Detached => {
                let old = self.read(parent);
                if self.varied.contains(&old) {
                    return Err(self.error(
                        "writes through `detach()`, or under `no_grad`, into a tensor that carries a derivative; \
                         write into a tensor of its own (`copy()`) instead",
                    ));
                }
                match self.varied.contains(&new) {
                    true => Ok(self.push(Op::named("detach"), vec![new.into()], ty())[0]),
                    false => Ok(new),
                }
            }
            Inverse::Refused(why) => Err(self.error(why)),
        }
    }

    /// May this base be written to?
    fn check_base(&self, base: Value) -> Outcome<()> {
        if let Some((_, _, op)) = self.suspects.iter().find(|(a, b, _)| *a == base || *b == base) {
            return Err(self.error(format!(
                "writes in place to a tensor that may or may not share memory with the result of `{op}`; \
                 make a `copy()` of one of them first"
            )));
        }
        if let Some(facts) = self.facts(base) {
            let shares = |i: &&InputInfo| {
                i.facts
                    .as_ref()
                    .is_some_and(|f| f.storage == facts.storage && f.identity != facts.identity)
            };
            if self.inputs.iter().any(|i| shares(&i)) {
                return Err(self.error(
                    "writes in place to an argument that shares memory with another argument; pass a `copy()` of one of them",
                ));
            }
        }
        Ok(())
    }

    /// `result` is another handle to `target`.
    pub(super) fn same(&mut self, result: Value, target: Value) {
        self.join(result, target, None);
        let current = self.read(target);
        let inside = self.members[&target].inside;
        let member = self.members.get_mut(&result).expect("just joined");
        (member.current, member.inside) = (current, inside);
        if let Some(layout) = self.layouts.get(&target).cloned() {
            self.layouts.insert(result, layout);
        }
    }

    /// Is the value the whole of its storage (and not a part, or a view)?
    pub(super) fn is_whole(&self, v: Value) -> bool {
        let mut v = v;
        loop {
            match &self.members[&v].parent {
                None => return true,
                Some((_, Some(_))) => return false,
                Some((parent, None)) => v = *parent,
            }
        }
    }

    /// Does a write to the value leave the rest of its storage as it is, for which the old value is read?
    pub(super) fn is_part(&self, v: Value) -> bool {
        let mut v = v;
        while let Some((parent, step)) = &self.members[&v].parent {
            let (from, to) = (self.graph.tensor(*parent), self.graph.tensor(v));
            if step
                .as_ref()
                .is_some_and(|s| matches!(inverse(s, from, to), Inverse::Scatter(..)))
            {
                return true;
            }
            v = *parent;
        }
        false
    }

    /// Like [`Self::read`], but in the storage of the base's value.
    pub(super) fn read_inside(&mut self, v: Value) -> Value {
        let current = self.read(v);
        let member = &self.members[&v];
        if member.inside {
            return current;
        }
        let Some((parent, step)) = member.parent.clone() else {
            return current;
        };
        let from = self.read_inside(parent);
        let again = match &step {
            None => from,
            Some(step) => {
                let ty = self.graph.ty(v).clone();
                self.push(step.op, step.args_on(from.into()), vec![ty])[0]
            }
        };
        let member = self.members.get_mut(&v).expect("looked up above");
        (member.current, member.inside) = (again, true);
        again
    }
}
