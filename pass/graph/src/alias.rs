//! Which values may share storage.
//!
//! Two values are in one class if one may be a view of the other, or both of a third. The answer errs to the safe
//! side: an op that Cotangent does not know itself may return any of its arguments, and a tape keeps all that its op
//! saw.

use crate::ir::{Graph, Inst, Type, Value};
use crate::ops::Op;

/// Ops that the table does not mark as views although they may return their argument.
const MAY_RETURN_ARGUMENT: &[&str] = &[
    "_unsafe_view",
    "alpha_dropout",
    "dropout",
    "feature_dropout",
    "sum_to_size",
];

/// May a result of the op share storage with an argument that it does not write to?
pub fn may_alias(op: Op) -> bool {
    op.facts.view || opaque(op) || MAY_RETURN_ARGUMENT.contains(&op.name)
}

/// Ops that make a tensor out of nothing but the type of another, by the beginning of their names.
const FACTORIES: &[&str] = &["bernoulli", "empty", "full", "ones", "rand", "zeros"];

/// Is nothing known of the op but its row of LibTorch's table?
fn opaque(op: Op) -> bool {
    !FACTORIES.iter().any(|f| op.name.starts_with(f))
        && op.own.is_none()
        && op.is_libtorch()
        && !op.facts.pointwise
        && op.facts.mutates.is_empty()
}

/// The classes of a graph's values.
#[derive(Debug, Clone)]
pub struct Aliases {
    class: Vec<usize>,
}

impl Aliases {
    /// Finds the classes.
    pub fn of(graph: &Graph) -> Self {
        let mut union = Union((0..graph.value_count()).collect());
        for inst in &graph.insts {
            join(graph, inst, &mut union);
        }
        Self {
            class: (0..graph.value_count()).map(|i| union.find(i)).collect(),
        }
    }

    /// The class of a value: the same number for all its members.
    pub fn class(&self, v: Value) -> usize {
        self.class[v.index()]
    }

    /// May the two share storage?
    pub fn may_share(&self, a: Value, b: Value) -> bool {
        self.class(a) == self.class(b)
    }
}

fn join(graph: &Graph, inst: &Inst, union: &mut Union) {
    let tensors = |i: usize| {
        let mut found = vec![];
        inst.args[i].for_each_value(&mut |v| {
            if matches!(graph.ty(v), Type::Tensor(_) | Type::List | Type::Tape) {
                found.push(v);
            }
        });
        found
    };
    let mut shared = vec![];
    let tape = inst.results.iter().any(|r| *graph.ty(*r) == Type::Tape);
    // A derivative of LibTorch's may hand on the cotangent that it was given, or what the tape keeps.
    if tape
        || inst.op.name == "tape.vjp"
        || (opaque(inst.op) && !inst.op.facts.view)
        || MAY_RETURN_ARGUMENT.contains(&inst.op.name)
    {
        (0..inst.args.len()).for_each(|i| shared.extend(tensors(i)));
    } else if inst.op.facts.view || inst.op.name == "list.get" {
        shared.extend(
            (0..inst.args.len())
                .map(tensors)
                .find(|vs| !vs.is_empty())
                .unwrap_or_default(),
        );
    }
    for i in &inst.op.facts.mutates {
        shared.extend(tensors(*i));
    }
    for s in shared {
        for r in &inst.results {
            union.join(s, *r);
        }
    }
}

/// Union-find.
struct Union(Vec<usize>);

impl Union {
    fn find(&mut self, i: usize) -> usize {
        let mut root = i;
        while self.0[root] != root {
            self.0[root] = self.0[self.0[root]];
            root = self.0[root];
        }
        root
    }

    fn join(&mut self, a: Value, b: Value) {
        let (a, b) = (self.find(a.index()), self.find(b.index()));
        self.0[a.max(b)] = a.min(b);
    }
}
