//! The rewriting itself: one walk over the instructions, with the state of every tensor's storage.
//!
//! Values that share storage form a tree: a base, and views of it (or of each other), each through one [`Step`] or as
//! another handle to the same tensor. A write to a member gives the base a new value, from the member up through the
//! inverse steps; the other members are made again from it when they are read next.

use super::strides::Layout;
use super::twin::twin;
use super::views::{self, Inverse, Relation, Step, inverse, relation};
use super::{Alias, Effects, FunctionalizeError, Guard, special};
use crate::differentiate::{ShapeOracle, emit};
use crate::ir::{Arg, Graph, Inst, Loc, TensorType, Type, Value};
use crate::ops::{Op, Rule};
use crate::specialize::InputInfo;
use std::collections::{BTreeMap, BTreeSet};

pub(super) type Outcome<T> = Result<T, FunctionalizeError>;

/// What is known of a tensor value of the graph.
#[derive(Clone, Debug)]
struct Member {
    /// The value that holds its elements now, if `seen` is the base's generation.
    current: Value,
    /// Generation of the base at which `current` was right.
    seen: u64,
    /// The base: itself, unless it is a view.
    base: Value,
    /// What it is a view of, and how; without a step: another handle to the same tensor.
    parent: Option<(Value, Option<Step>)>,
    /// Is `current` in the storage of the base's value (and not only equal to what lies there)?
    inside: bool,
}

/// What is known of a base.
#[derive(Clone, Debug, Default)]
struct Base {
    /// Number of writes so far.
    generation: u64,
    /// The input that it is.
    input: Option<usize>,
}

/// The state of the walk.
pub(super) struct Rewriter<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) oracle: &'a dyn ShapeOracle,
    inputs: &'a [InputInfo],
    members: BTreeMap<Value, Member>,
    bases: BTreeMap<Value, Base>,
    /// Bases in the order of their last write.
    written: Vec<Value>,
    /// Pairs of bases that may be one: nothing may be written to either.
    suspects: Vec<(Value, Value, Op)>,
    layouts: BTreeMap<Value, Layout>,
    /// Which values vary with the inputs asked for.
    varied: BTreeSet<Value>,
    strides_used: bool,
    pub(super) loc: Option<Loc>,
}

/// Rewrites a closed graph; see the [module](super).
pub(super) fn rewrite(
    graph: &mut Graph,
    inputs: &[InputInfo],
    wrt: &[Value],
    oracle: &dyn ShapeOracle,
) -> Outcome<(Effects, Vec<Guard>)> {
    let insts = std::mem::take(&mut graph.insts);
    let mut rewriter = Rewriter {
        graph,
        oracle,
        inputs,
        members: BTreeMap::new(),
        bases: BTreeMap::new(),
        written: vec![],
        suspects: vec![],
        layouts: BTreeMap::new(),
        varied: wrt.iter().copied().collect(),
        strides_used: false,
        loc: None,
    };
    rewriter.enter_inputs();
    for inst in insts {
        rewriter.loc.clone_from(&inst.loc);
        rewriter.inst(inst)?;
    }
    rewriter.loc = None;
    rewriter.leave()
}

impl Rewriter<'_> {
    fn enter_inputs(&mut self) {
        for k in 0..self.graph.inputs.len() {
            let v = self.graph.inputs[k].value;
            if !self.graph.ty(v).is_tensor() {
                continue;
            }
            let facts = self.facts(v).cloned();
            // A second handle to a tensor that is an input already?
            let first = facts.as_ref().and_then(|f| {
                let same = |i: &&InputInfo| i.facts.as_ref().is_some_and(|g| g.identity == f.identity);
                self.inputs.iter().take_while(|i| i.value != v).find(same)
            });
            match first.map(|i| i.value) {
                Some(first) => self.join(v, first, None),
                None => self.found(v, Some(k)),
            }
            if let Some(facts) = facts {
                let strides = facts.strides;
                self.layouts.insert(v, Layout { strides });
            }
        }
    }

    fn facts(&self, v: Value) -> Option<&crate::specialize::TensorFacts> {
        self.inputs.iter().find(|i| i.value == v)?.facts.as_ref()
    }

    /// A base of its own.
    fn found(&mut self, v: Value, input: Option<usize>) {
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
    fn join(&mut self, v: Value, parent: Value, step: Option<Step>) {
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
                Ok(match views::permutes(op) {
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

    fn inst(&mut self, mut inst: Inst) -> Outcome<()> {
        let before = inst.args.clone();
        for arg in &mut inst.args {
            *arg = arg.map_values(&mut |v| Arg::Value(self.read(v)));
        }
        let targets: Vec<Value> = inst
            .op
            .facts
            .mutates
            .iter()
            .filter_map(|i| tensor(&before[*i]))
            .collect();
        if targets.is_empty() {
            self.place(inst, &before);
            return Ok(());
        }
        if let Some(done) = special::run(self, &inst, &before) {
            return done;
        }
        let Some(twin) = twin(inst.op) else {
            return Err(self.error(format!(
                "`{}` writes to its arguments and Cotangent knows no functional form of it; use a form that returns a new tensor",
                inst.op
            )));
        };
        let news = self.emit(twin.op, twin.args(&inst.args))?;
        for (k, target) in targets.iter().enumerate() {
            let new = self.fit(news[k], *target)?;
            self.write(*target, new)?;
            if let Some(result) = inst.results.get(k) {
                self.same(*result, *target);
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

    /// The new value with the kind of what it is written to; the shape must be the same.
    pub(super) fn fit(&mut self, new: Value, target: Value) -> Outcome<Value> {
        let (have, want) = (self.graph.tensor(new).clone(), self.graph.tensor(target).clone());
        if have.shape != want.shape {
            return Err(self.error(format!(
                "a result of shape {:?} is written to a tensor of shape {:?}",
                have.shape, want.shape
            )));
        }
        Ok(match views::cast(have.kind, want.kind) {
            None => new,
            Some((op, rest)) => {
                let mut args = vec![Arg::Value(new)];
                args.extend(rest);
                self.push(op, args, vec![Type::Tensor(Some(want))])[0]
            }
        })
    }

    /// Puts an instruction that writes nothing into the graph. `before` are its arguments by their own names.
    pub(super) fn place(&mut self, inst: Inst, before: &[Arg]) {
        let types: Option<Vec<TensorType>> = inst
            .results
            .iter()
            .map(|r| match self.graph.ty(*r) {
                Type::Tensor(t) => t.clone(),
                _ => None,
            })
            .collect();
        let (op, results) = (inst.op, inst.results.clone());
        self.mark_varied(&inst);
        self.graph.insts.push(inst);
        let Some(types) = types else {
            return; // Floats share nothing.
        };
        let of = before.first().and_then(tensor);
        for (k, r) in results.into_iter().enumerate() {
            let relation = match of {
                Some(of) => relation(op, before, self.graph.tensor(of), self.layouts.get(&of), &types, k),
                None if views::sometimes(op) => Relation::Unknown,
                None => Relation::Fresh,
            };
            self.relate(r, relation, op, before);
        }
    }

    fn relate(&mut self, r: Value, relation: Relation, op: Op, before: &[Arg]) {
        self.strides_used |= views::reads_strides(op);
        let of = before.first().and_then(tensor);
        match (relation, of) {
            (Relation::Same, Some(of)) => {
                if let Some(layout) = self.layouts.get(&of).cloned() {
                    self.layouts.insert(r, layout);
                }
                self.join(r, of, None);
            }
            (Relation::View(step), Some(of)) => {
                let (from, to) = (self.graph.tensor(of).clone(), self.graph.tensor(r).clone());
                let known = self.layouts.get(&of);
                if let Some(layout) = known.and_then(|l| views::layout(&step, &from, l, &to)) {
                    self.layouts.insert(r, layout);
                }
                self.join(r, of, Some(step));
            }
            (Relation::Unknown, _) => {
                self.found(r, None);
                let (members, suspects) = (&self.members, &mut self.suspects);
                before.iter().for_each(|a| {
                    a.for_each_value(&mut |v| suspects.extend(members.get(&v).map(|m| (m.base, r, op))));
                });
            }
            _ => {
                self.found(r, None);
                if views::copies_in_order(op) || (op.own.is_some() || op.facts.pointwise) && self.in_order(before) {
                    let layout = Layout::contiguous(&self.graph.tensor(r).shape);
                    self.layouts.insert(r, layout);
                }
            }
        }
    }

    /// Do all tensors among the arguments lie in memory in order, for all that is known?
    fn in_order(&self, args: &[Arg]) -> bool {
        let mut all = true;
        args.iter().for_each(|a| {
            a.for_each_value(&mut |v| all &= !self.graph.ty(v).is_tensor() || self.is_in_order(v));
        });
        all
    }

    /// Does the tensor lie in memory in order, for all that is known?
    pub(super) fn is_in_order(&self, v: Value) -> bool {
        let layout = self.layouts.get(&v);
        layout.is_some_and(|l| l.is_contiguous(&self.graph.tensor(v).shape))
    }

    /// Appends an op whose result types are known; its results have storage of their own or nobody's concern.
    pub(super) fn push(&mut self, op: Op, args: Vec<Arg>, types: Vec<Type>) -> Vec<Value> {
        let results = self.graph.push(op, args, types, self.loc.clone());
        self.note_last();
        results
    }

    /// Appends an op.
    pub(super) fn emit(&mut self, op: Op, args: Vec<Arg>) -> Outcome<Vec<Value>> {
        let results = emit(self.graph, self.oracle, op, args, self.loc.clone())
            .map_err(|e| self.error(format!("`{op}`, the functional form of an in-place op, refuses: {e}")))?;
        self.note_last();
        Ok(results)
    }

    fn note_last(&mut self) {
        if let Some(inst) = self.graph.insts.last().cloned() {
            self.mark_varied(&inst);
        }
    }

    fn mark_varied(&mut self, inst: &Inst) {
        if matches!(inst.op.own.map(|o| o.rule), Some(Rule::Constant)) || inst.op.name == "detach" {
            return;
        }
        let mut varies = false;
        inst.args
            .iter()
            .for_each(|a| a.for_each_value(&mut |v| varies |= self.varied.contains(&v)));
        if varies {
            self.varied.extend(inst.results.iter().copied());
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

    /// Outputs, final writes, and what the prologue has to check.
    fn leave(mut self) -> Outcome<(Effects, Vec<Guard>)> {
        let mut effects = Effects::default();
        let outputs = self.graph.outputs.clone();
        let is_member = |s: &Self, v: &Value| s.members.contains_key(v);
        let shared = |s: &Self, v: Value| {
            let base = s.members[&v].base;
            let others = outputs.iter().filter(|o| is_member(s, o) && s.members[o].base == base);
            others.count() > 1 || s.bases[&base].input.is_some()
        };
        for (k, v) in outputs.iter().enumerate() {
            if !is_member(&self, v) {
                continue; // A float.
            }
            let base = self.members[v].base;
            let wants_inside = self.bases[&base].generation > 0 && shared(&self, *v);
            self.graph.outputs[k] = match wants_inside {
                true => self.read_inside(*v),
                false => self.read(*v),
            };
            if let (Some(input), true) = (self.bases[&base].input, self.bases[&base].generation > 0) {
                let mut steps = vec![];
                let mut at = *v;
                while let Some((parent, step)) = &self.members[&at].parent {
                    steps.extend(step.clone());
                    at = *parent;
                }
                steps.reverse();
                effects.aliases.push(Alias {
                    output: k,
                    input,
                    steps,
                });
            }
        }
        let mut guards = vec![];
        for base in self.written.clone() {
            if let Some(input) = self.bases[&base].input {
                let value = self.read(base);
                self.graph.outputs.push(value);
                let output = self.graph.outputs.len() - 1;
                effects.writes.push(super::Write { input, output });
                self.guard_sharing(base, &mut guards);
            }
        }
        // Where strides decided what shares memory, and something was written, they are part of the key.
        if self.strides_used && !self.written.is_empty() {
            let tensors = self.inputs.iter().filter(|i| i.facts.is_some());
            guards.extend(tensors.map(|i| Guard::Strides(i.value)));
        }
        Ok((effects, guards))
    }

    /// Like [`Self::read`], but in the storage of the base's value.
    fn read_inside(&mut self, v: Value) -> Value {
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

    fn guard_sharing(&self, written: Value, guards: &mut Vec<Guard>) {
        let Some(facts) = self.facts(written) else {
            return;
        };
        for other in self.inputs.iter().filter(|i| i.value != written) {
            if let Some(f) = &other.facts {
                guards.push(Guard::Sharing {
                    a: written,
                    b: other.value,
                    same_tensor: f.identity == facts.identity,
                    same_storage: f.storage == facts.storage,
                });
            }
        }
    }

    /// A refusal at the instruction at work.
    pub(super) fn error(&self, message: impl Into<String>) -> FunctionalizeError {
        FunctionalizeError {
            message: message.into(),
            at: self.loc.clone(),
        }
    }
}

/// The tensor that an argument is.
pub(super) fn tensor(arg: &Arg) -> Option<Value> {
    match arg {
        Arg::Value(v) => Some(*v),
        _ => None,
    }
}
