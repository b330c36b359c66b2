//! Partition: from the joint graph to a forward and a backward with residuals between them.
//!
//! *Takes* a [`Joint`]. *Gives* a [`Split`]: the forward's outputs are the function's, then the residuals; the
//! backward's inputs are the residuals, then the seeds; its outputs are the cotangents that exist. *Promises* that the
//! two together compute what the joint graph computes; that an effect (a random draw, a write, a tape) happens in the
//! forward, once. A [`Policy`] says what is saved and what the backward computes again; everything else is common.

mod extract;
mod policy;

pub use policy::Policy;

use crate::alias::{Aliases, may_alias};
use crate::differentiate::Joint;
use crate::ir::{Graph, Value};
use extract::extract;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap, HashSet};

/// Forward and backward, apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Split {
    /// Computes the function's outputs, then the residuals.
    pub forward: Graph,
    /// Computes the cotangents from the residuals, then the seeds.
    pub backward: Graph,
    /// How many of the forward's outputs are the function's.
    pub primals: usize,
    /// What goes from the forward to the backward, in order.
    pub residuals: Vec<Residual>,
    /// For each output of the function, the position of its cotangent among the backward's inputs.
    pub seeds: Vec<Option<usize>>,
    /// For each input asked for, the position of its cotangent among the backward's outputs; `None` where no path
    /// leads from it to a seeded output.
    pub cotangents: Vec<Option<usize>>,
}

/// A value that goes from the forward to the backward.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Residual {
    /// The value in the forward.
    pub forward: Value,
    /// The value in the backward.
    pub backward: Value,
    /// What it is to the function.
    pub origin: Origin,
}

/// What a residual is to the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// An input, by position: it belongs to the caller, who may write to it before the backward runs.
    Input(usize),
    /// An output, by position: it belongs to the caller, too.
    Output(usize),
    /// A value of the forward's own.
    Intermediate,
}

/// Whose an input is while the backward runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Ownership {
    /// The caller's: it outlives the run as it is.
    #[default]
    Caller,
    /// The run's: it is released after its last use. Others may share its storage.
    Run,
    /// The run's, storage included: it may be written over.
    RunAlone,
}

impl Split {
    /// Whose the backward's inputs are if it runs only once: what the forward made for it alone is the run's.
    pub fn owners(&self) -> Vec<Ownership> {
        let aliases = Aliases::of(&self.forward);
        let mut sharers: HashMap<usize, usize> = HashMap::new();
        let inputs = self.forward.inputs.iter().map(|i| i.value);
        for v in inputs.chain(self.forward.outputs.iter().copied()) {
            *sharers.entry(aliases.class(v)).or_default() += 1;
        }
        // A view has elements that overlap, or is part of more; only what was made as a whole may be written over.
        let whole = |v: Value| {
            let maker = self.forward.insts.iter().find(|i| i.results.contains(&v));
            maker.is_some_and(|m| !may_alias(m.op) && m.op.is_libtorch() && m.op.facts.mutates.is_empty())
        };
        let owner = |r: &Residual| match r.origin {
            Origin::Intermediate if sharers[&aliases.class(r.forward)] == 1 && whole(r.forward) => Ownership::RunAlone,
            Origin::Intermediate => Ownership::Run,
            Origin::Input(_) | Origin::Output(_) => Ownership::Caller,
        };
        self.residuals.iter().map(owner).collect()
    }
}

/// Splits a joint graph.
pub fn partition(joint: &Joint, policy: Policy) -> Split {
    let mut joint = joint.clone();
    policy::share_likes(&mut joint);
    let saved = policy.choose(&joint);
    let (residuals, again) = boundary(&joint, &saved);
    split(&joint, &residuals, &again)
}

/// What the backward of a joint graph takes from its forward. Lets the backward take types from what it has first, so
/// that no tensor is saved for its shape.
pub fn residuals(joint: &mut Joint, policy: Policy) -> Vec<Value> {
    policy::share_likes(joint);
    let saved = policy.choose(joint);
    boundary(joint, &saved).0
}

/// What the backward takes from the forward, and which of the forward's instructions it executes again, if it may
/// take the values `saved`. Inputs, and results of effects, are taken whether they are named or not.
fn boundary(joint: &Joint, saved: &HashSet<Value>) -> (Vec<Value>, Vec<usize>) {
    let makers = policy::forward_makers(joint);
    let mut taken = BTreeSet::new();
    let mut again = BTreeSet::new();
    let mut seen = policy::reads(joint);
    let mut open: Vec<Value> = seen.iter().copied().collect();
    while let Some(v) = open.pop() {
        match makers[v.index()] {
            Some(i) if !saved.contains(&v) && policy::can_repeat(&joint.graph, &joint.graph.insts[i]) => {
                again.insert(i);
                for arg in &joint.graph.insts[i].args {
                    arg.for_each_value(&mut |w| {
                        if seen.insert(w) {
                            open.push(w);
                        }
                    });
                }
            }
            _ => {
                taken.insert(v);
            }
        }
    }
    (taken.into_iter().collect(), again.into_iter().collect())
}

fn split(joint: &Joint, residuals: &[Value], again: &[usize]) -> Split {
    let graph = &joint.graph;
    let makers = policy::forward_makers(joint);
    let primals = graph.outputs.len();
    let is_seed = |v: Value| joint.seeds.contains(&Some(v));

    let own: Vec<_> = graph.inputs.iter().filter(|i| !is_seed(i.value)).cloned().collect();
    let outputs: Vec<Value> = graph.outputs.iter().chain(residuals).copied().collect();
    let forward = extract(graph, &own, 0..joint.forward, &outputs);

    let mut inputs = vec![];
    for (&value, number) in residuals.iter().zip(&forward.outputs[primals..]) {
        let name = match makers[value.index()] {
            Some(i) => format!("{} {number}", graph.insts[i].op),
            None => own[position(&own, value)].name.clone(),
        };
        inputs.push(crate::ir::Input { value, name });
    }
    inputs.extend(graph.inputs.iter().filter(|i| is_seed(i.value)).cloned());
    let insts = again.iter().copied().chain(joint.forward..graph.insts.len());
    let present: Vec<Value> = joint.cotangents.iter().flatten().copied().collect();
    let backward = extract(graph, &inputs, insts, &present);

    let origin = |v: Value| match (makers[v.index()], graph.outputs.iter().position(|o| *o == v)) {
        (None, _) => Origin::Input(position(&own, v)),
        (Some(_), Some(k)) => Origin::Output(k),
        (Some(_), None) => Origin::Intermediate,
    };
    Split {
        residuals: (residuals.iter().enumerate())
            .map(|(k, v)| Residual {
                forward: forward.outputs[primals + k],
                backward: backward.inputs[k].value,
                origin: origin(*v),
            })
            .collect(),
        seeds: numbered(&joint.seeds, residuals.len()),
        cotangents: numbered(&joint.cotangents, 0),
        forward,
        backward,
        primals,
    }
}

fn position(inputs: &[crate::ir::Input], v: Value) -> usize {
    let found = inputs.iter().position(|i| i.value == v);
    found.unwrap_or_else(|| unreachable!("{v} is neither an input nor made by the forward"))
}

/// The values that are present, numbered in order from `first`.
fn numbered(values: &[Option<Value>], first: usize) -> Vec<Option<usize>> {
    let mut next = first..;
    values.iter().map(|v| v.and_then(|_| next.next())).collect()
}
