//! What is saved: the policies, and the facts about a joint graph that they decide on.

use crate::differentiate::Joint;
use crate::ir::{Arg, Graph, Inst, Type, Value};
use crate::simplify::has_effect;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// What the backward takes from the forward. A policy only chooses values; whatever it leaves out, the backward
/// computes again from what it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash, Serialize, Deserialize)]
pub enum Policy {
    /// Exactly what the backward reads: what LibTorch would have saved. Of a tensor and its views one is saved.
    #[default]
    SaveReads,
    /// Only inputs, random draws and tapes; the backward computes the forward again.
    RecomputeAll,
}

impl Policy {
    /// The values to save.
    pub(super) fn choose(self, joint: &Joint) -> HashSet<Value> {
        match self {
            Self::SaveReads => without_views(joint),
            Self::RecomputeAll => HashSet::new(),
        }
    }
}

/// Views that cost nothing, always share storage, and need nothing but their argument to be made again.
const FREE_VIEWS: &[&str] = &[
    "alias",
    "expand",
    "mt",
    "permute",
    "select",
    "slice",
    "squeeze",
    "squeeze_dim",
    "squeeze_dims",
    "t",
    "transpose",
    "unsqueeze",
    "view",
];

/// What the backward reads, but for views that it can make itself of something it has anyway.
fn without_views(joint: &Joint) -> HashSet<Value> {
    let makers = forward_makers(joint);
    let root = |v: Value| {
        let mut at = v;
        while let Some(i) = makers[at.index()] {
            match (&joint.graph.insts[i], joint.graph.insts[i].args.first()) {
                (inst, Some(Arg::Value(base))) if FREE_VIEWS.contains(&inst.op.name) => at = *base,
                _ => break,
            }
        }
        at
    };
    let mut families: HashMap<Value, Vec<Value>> = HashMap::new();
    for v in reads(joint) {
        families.entry(root(v)).or_default().push(v);
    }
    families
        .into_iter()
        .map(|(root, members)| match members[..] {
            // The only one of its family, and not of an input that the caller keeps anyway.
            [only] if makers[root.index()].is_some() => only,
            _ => root,
        })
        .collect()
}

/// Values of the forward, inputs included, that an instruction of the backward reads or that are cotangents.
pub(super) fn reads(joint: &Joint) -> HashSet<Value> {
    let makers = forward_makers(joint);
    let seeds: HashSet<Value> = joint.seeds.iter().flatten().copied().collect();
    let inputs = joint.graph.inputs.iter().map(|i| i.value);
    let inputs: HashSet<Value> = inputs.filter(|v| !seeds.contains(v)).collect();
    let mut reads = HashSet::new();
    let mut read = |v: Value| {
        if makers[v.index()].is_some() || inputs.contains(&v) {
            reads.insert(v);
        }
    };
    for inst in &joint.graph.insts[joint.forward..] {
        inst.args.iter().for_each(|a| a.for_each_value(&mut read));
    }
    joint.cotangents.iter().flatten().for_each(|v| read(*v));
    reads
}

/// For each value the instruction of the forward that makes it; `None` for inputs and values of the backward.
pub(super) fn forward_makers(joint: &Joint) -> Vec<Option<usize>> {
    let makers = joint.graph.definitions();
    makers.into_iter().map(|m| m.filter(|i| *i < joint.forward)).collect()
}

/// May the backward execute the instruction again? Effects happen once.
pub(super) fn can_repeat(graph: &Graph, inst: &Inst) -> bool {
    !has_effect(inst) && !inst.results.iter().any(|r| *graph.ty(*r) == Type::Tape)
}

/// Ops that read nothing of their argument but its type.
const LIKES: &[&str] = &["empty_like", "full_like", "ones_like", "zeros_like"];

/// Lets the backward take types from tensors that it has: a tensor must not be saved for its shape alone.
pub(super) fn share_likes(joint: &mut Joint) {
    let makers = forward_makers(joint);
    let mut seen: HashMap<Type, Value> = HashMap::new();
    // Seeds first: they are there whatever is saved.
    for v in joint.seeds.iter().flatten() {
        seen.entry(joint.graph.ty(*v).clone()).or_insert(*v);
    }
    for i in joint.forward..joint.graph.insts.len() {
        let inst = &joint.graph.insts[i];
        let mut by = None;
        if LIKES.contains(&inst.op.name)
            && let Some(Arg::Value(like)) = inst.args.first()
            && makers[like.index()].is_some()
        {
            by = seen.get(joint.graph.ty(*like)).copied();
        } else {
            for arg in &inst.args {
                arg.for_each_value(&mut |v| {
                    seen.entry(joint.graph.ty(v).clone()).or_insert(v);
                });
            }
        }
        for r in &inst.results {
            seen.entry(joint.graph.ty(*r).clone()).or_insert(*r);
        }
        if let Some(v) = by {
            joint.graph.insts[i].args[0] = v.into();
        }
    }
}
