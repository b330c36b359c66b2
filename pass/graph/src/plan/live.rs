//! Who shares storage with whom, and until when, while in-place steps are chosen.

use crate::alias::{Aliases, may_alias};
use crate::ir::{Arg, Graph, Value};

/// Views of an owned tensor that write through to all of it, each element once. `expand` is not among them: its
/// elements overlap.
const WRITABLE_VIEWS: &[&str] = &[
    "_unsafe_view",
    "alias",
    "contiguous",
    "detach",
    "flatten",
    "mt",
    "permute",
    "reshape",
    "squeeze",
    "squeeze_dim",
    "squeeze_dims",
    "t",
    "totype",
    "transpose",
    "unsqueeze",
    "view",
];

/// Liveness of storage.
pub(super) struct Live {
    /// Class of each value; values of one class may share storage.
    class: Vec<usize>,
    members: Vec<Vec<Value>>,
    /// Of each class, the members whose memory does not hold another value yet.
    intact: Vec<Vec<Value>>,
    /// Position of the last instruction that uses the value.
    last_use: Vec<usize>,
    /// Position of the last instruction that uses a member of the class.
    class_last_use: Vec<usize>,
    /// How often instructions take the value.
    uses: Vec<usize>,
    /// The value's memory belongs to this graph's execution, and no two elements of it overlap.
    owned: Vec<bool>,
    /// The value's memory now holds another value.
    overwritten: Vec<bool>,
}

/// Later than every instruction.
const FOREVER: usize = usize::MAX;

impl Live {
    /// Of a graph whose inputs but those `consumed` are the caller's.
    pub(super) fn of(graph: &Graph, consumed: &[Value]) -> Self {
        let count = graph.value_count();
        let aliases = Aliases::of(graph);
        let class: Vec<usize> = (0..count).map(|i| aliases.class(Value(i as u32))).collect();
        let mut members = vec![vec![]; count];
        for (i, c) in class.iter().enumerate() {
            members[*c].push(Value(i as u32));
        }
        let mut live = Self {
            class,
            intact: members.clone(),
            members,
            last_use: vec![0; count],
            class_last_use: vec![0; count],
            uses: vec![0; count],
            owned: vec![false; count],
            overwritten: vec![false; count],
        };
        for (i, inst) in graph.insts.iter().enumerate() {
            for arg in &inst.args {
                arg.for_each_value(&mut |v| {
                    live.last_use[v.index()] = i;
                    live.uses[v.index()] += 1;
                });
            }
            // Made here: by an op that gives fresh memory, or as a view of such memory.
            let owned = match inst.args.first() {
                Some(Arg::Value(x)) if WRITABLE_VIEWS.contains(&inst.op.name) => live.owned[x.index()],
                Some(Arg::Value(x)) if !inst.op.facts.mutates.is_empty() => live.owned[x.index()],
                _ => !may_alias(inst.op) && inst.op.is_libtorch(),
            };
            inst.results.iter().for_each(|r| live.owned[r.index()] = owned);
        }
        let inputs = graph.inputs.iter().map(|i| i.value).filter(|v| !consumed.contains(v));
        for v in inputs.chain(graph.outputs.iter().copied()) {
            live.last_use[v.index()] = FOREVER;
        }
        for (last, class) in live.last_use.iter().zip(&live.class) {
            live.class_last_use[*class] = live.class_last_use[*class].max(*last);
        }
        live
    }

    /// The input is the run's alone.
    pub(super) fn give_away(&mut self, input: Value) {
        self.owned[input.index()] = true;
    }

    /// May instruction `at` write to `v`: is it the last to need that memory?
    pub(super) fn dies_at(&self, v: Value, at: usize) -> bool {
        let all = self.class_last_use[self.class[v.index()]];
        self.owned[v.index()] && self.last_use[v.index()] == at && all <= at
    }

    /// Does one instruction take the value, once? (Rewriting does not change how often.)
    pub(super) fn is_used_once(&self, v: Value) -> bool {
        self.uses[v.index()] == 1
    }

    pub(super) fn may_share(&self, a: Value, b: Value) -> bool {
        self.class[a.index()] == self.class[b.index()]
    }

    /// Does the memory of `v` hold another value by now?
    pub(super) fn is_overwritten(&self, v: Value) -> bool {
        self.overwritten[v.index()]
    }

    /// From now on the memory of `old` holds `new`.
    pub(super) fn take_over(&mut self, old: Value, new: Value) {
        let (from, to) = (self.class[new.index()], self.class[old.index()]);
        let intact = std::mem::take(&mut self.intact[from]);
        for m in std::mem::replace(&mut self.intact[to], intact) {
            self.overwritten[m.index()] = true;
        }
        let moved = std::mem::take(&mut self.members[from]);
        moved.iter().for_each(|m| self.class[m.index()] = to);
        self.members[to].extend(moved);
        self.class_last_use[to] = self.class_last_use[to].max(self.class_last_use[from]);
    }

    /// The instruction at `at` uses `v`, too.
    pub(super) fn extend(&mut self, v: Value, at: usize) {
        let class = self.class[v.index()];
        self.last_use[v.index()] = self.last_use[v.index()].max(at);
        self.class_last_use[class] = self.class_last_use[class].max(at);
    }
}
