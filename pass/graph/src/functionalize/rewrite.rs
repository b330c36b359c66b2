//! The rewriting itself: one walk over the instructions, with the state of every tensor's storage.
//!
//! Values that share storage form a tree: a base, and views of it (or of each other), each through one [`Step`] or as
//! another handle to the same tensor. A write to a member gives the base a new value, from the member up through the
//! inverse steps; the other members are made again from it when they are read next.

use super::storage::{Base, Member};
use super::strides::Layout;
use super::twin::twin;
use super::views::{self, Relation, relation};
use super::{Alias, Effects, FunctionalizeError, Guard, special};
use crate::differentiate::{ShapeOracle, emit};
use crate::ir::{Arg, Graph, Inst, Loc, TensorType, Type, Value};
use crate::ops::{Op, Rule};
use crate::specialize::InputInfo;
use std::collections::{BTreeMap, BTreeSet};

/// Ops whose in-place form LibTorch differentiates in another way than their functional form, or not at all.
const OTHER_DERIVATIVE: &[&str] = &["acosh_", "asinh_", "atanh_", "selu_"];

pub(super) type Outcome<T> = Result<T, FunctionalizeError>;

/// The state of the walk.
pub(super) struct Rewriter<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) oracle: &'a dyn ShapeOracle,
    pub(super) inputs: &'a [InputInfo],
    pub(super) members: BTreeMap<Value, Member>,
    pub(super) bases: BTreeMap<Value, Base>,
    /// Bases in the order of their last write.
    pub(super) written: Vec<Value>,
    /// Pairs of bases that may be one: nothing may be written to either.
    pub(super) suspects: Vec<(Value, Value, Op)>,
    pub(super) layouts: BTreeMap<Value, Layout>,
    /// Which values vary with the inputs asked for.
    pub(super) varied: BTreeSet<Value>,
    /// Values that the graph uses more than once.
    shared: BTreeSet<Value>,
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
    let shared = used_twice(&insts, &graph.outputs);
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
        shared,
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

    pub(super) fn facts(&self, v: Value) -> Option<&crate::specialize::TensorFacts> {
        self.inputs.iter().find(|i| i.value == v)?.facts.as_ref()
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
        if OTHER_DERIVATIVE.contains(&inst.op.name) && tensor(&inst.args[0]).is_some_and(|v| self.varied.contains(&v)) {
            return Err(self.other_derivative(&inst));
        }
        let news = self.emit(twin.op, twin.args(&inst.args))?;
        // `full_like` has a derivative for the number alone.
        let constant = matches!(twin.op.own.map(|o| o.rule), Some(Rule::Constant));
        let cuts = constant || twin.op.name == "full_like";
        if cuts {
            self.check_cut(&inst)?;
        }
        for (k, target) in targets.iter().enumerate() {
            let mut new = self.fit(news[k], *target)?;
            if cuts {
                new = self.overwrite(*target, new)?;
            }
            self.write(*target, new)?;
            if let Some(result) = inst.results.get(k) {
                self.same(*result, *target);
            }
        }
        Ok(())
    }

    /// Refuses in-place predicates where LibTorch's derivative is not simply zero for the tensor written to.
    fn check_cut(&self, inst: &Inst) -> Outcome<()> {
        let varies = |a: &Arg| tensor(a).is_some_and(|v| self.varied.contains(&v));
        let passes_through = inst.op.name.starts_with("logical_") && varies(&inst.args[0]);
        if passes_through || inst.args[1..].iter().any(varies) {
            return Err(self.other_derivative(inst));
        }
        Ok(())
    }

    fn other_derivative(&self, inst: &Inst) -> FunctionalizeError {
        let twin = inst.op.name.trim_end_matches('_');
        self.error(format!(
            "LibTorch's derivative of `{}` is not that of `{twin}`; use `{twin}`, which returns a new tensor",
            inst.op
        ))
    }

    /// `new` as what overwrites `target`: where the old value varies, its cotangent is zero from here on, as it is in
    /// LibTorch, and not undefined. Subtracting a zero changes no bit of `new`. A write to a part needs none of this:
    /// the rest of the tensor carries the cotangent on.
    pub(super) fn overwrite(&mut self, target: Value, new: Value) -> Outcome<Value> {
        let old = self.read(target);
        if !self.varied.contains(&old) || self.is_part(target) {
            return Ok(new);
        }
        let zero = self.emit(Op::named("fill"), vec![old.into(), Arg::Int(0)])?[0];
        Ok(self.emit(Op::named("sub"), vec![new.into(), zero.into()])?[0])
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
            (Relation::View(_), Some(of)) if op.name == "detach" && self.is_given_up(of) => {
                if let Some(layout) = self.layouts.get(&of).cloned() {
                    self.layouts.insert(r, layout);
                }
                self.found(r, None);
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

    /// Is the tensor one of its own, which nothing but the op at work ever sees? What `no_grad` makes is such a tensor
    /// behind a `detach`.
    fn is_given_up(&self, v: Value) -> bool {
        let suspect = self.suspects.iter().any(|(a, b, _)| *a == v || *b == v);
        self.bases.get(&v).is_some_and(|b| b.input.is_none()) && !self.shared.contains(&v) && !suspect
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

/// The values that are used more than once.
fn used_twice(insts: &[Inst], outputs: &[Value]) -> BTreeSet<Value> {
    let (mut once, mut twice) = (BTreeSet::new(), BTreeSet::new());
    let mut see = |v: Value| {
        if !once.insert(v) {
            twice.insert(v);
        }
    };
    insts
        .iter()
        .flat_map(|i| &i.args)
        .for_each(|a| a.for_each_value(&mut see));
    outputs.iter().for_each(|v| see(*v));
    twice
}
