//! Simplification of closed, functional graphs: folding, common subexpressions, dead code.
//!
//! *Promises* the same outputs, bit for bit, and the same storage relations between them: a rewrite never makes two
//! outputs share memory that did not, nor an output and an input. Random ops and writes are effects; they stay, in
//! order. Values keep their numbers.

mod cse;
mod dce;
mod filled;
mod fold;

pub use cse::cse;
pub use dce::dce;
pub(crate) use dce::has_effect;
pub use fold::fold;

use crate::alias::Aliases;
use crate::differentiate::Joint;
use crate::ir::{Arg, Graph, Type, Value};
use std::collections::{HashMap, HashSet};

/// Inputs with a known value: floats, and tensors of which every element is that number.
pub type Known = [(Value, f64)];

/// Simplifies a graph as far as it goes.
pub fn graph(graph: &mut Graph) {
    run(graph, &[], &mut 0, &[]);
}

/// Simplifies a graph that is only run with the `known` inputs. They stay inputs, read or not.
pub fn graph_knowing(graph: &mut Graph, known: &Known) {
    let floats: HashMap<Value, Arg> = known
        .iter()
        .filter(|(v, _)| matches!(graph.ty(*v), Type::Float(_)))
        .map(|(v, number)| (*v, Arg::Float(*number)))
        .collect();
    let floats = Replaced(floats);
    for inst in &mut graph.insts {
        inst.args.iter_mut().for_each(|a| *a = floats.arg(a));
    }
    run(graph, &[], &mut 0, known);
}

/// Simplifies a joint graph as far as it goes.
pub fn joint(joint: &mut Joint) {
    let asked: Vec<Value> = joint.cotangents.iter().flatten().copied().collect();
    let mut now = run(&mut joint.graph, &asked, &mut joint.forward, &[]).into_iter();
    for v in joint.cotangents.iter_mut().flatten() {
        *v = now.next().expect("one value for each");
    }
}

/// Folds, merges and cleans `graph`, for which `also` are outputs too; of its instructions the first `forward` stay
/// together. Gives what stands for `also` now.
fn run(graph: &mut Graph, also: &[Value], forward: &mut usize, known: &Known) -> Vec<Value> {
    let mut also = also.to_vec();
    loop {
        let folded = fold(graph, &also, known);
        also.iter_mut().for_each(|v| *v = folded.value(*v));
        let merged = cse(graph, &also);
        also.iter_mut().for_each(|v| *v = merged.value(*v));
        let changed = !folded.0.is_empty() || !merged.0.is_empty();
        // What was replaced must not be found again.
        let kept = dce(graph, &also);
        *forward = kept[..*forward].iter().filter(|k| **k).count();
        if !changed {
            return also;
        }
    }
}

/// What a pass put in place of which value.
#[derive(Debug, Default)]
pub struct Replaced(HashMap<Value, Arg>);

impl Replaced {
    fn insert(&mut self, v: Value, by: Arg) {
        self.0.insert(v, by);
    }

    /// What stands for `arg` now.
    fn arg(&self, arg: &Arg) -> Arg {
        arg.map_values(&mut |v| self.0.get(&v).cloned().unwrap_or(Arg::Value(v)))
    }

    /// The value that stands for `v` now.
    ///
    /// # Panics
    /// If it is a constant now: passes do not replace outputs by constants.
    pub fn value(&self, v: Value) -> Value {
        match self.0.get(&v) {
            None => v,
            Some(Arg::Value(w)) => *w,
            Some(other) => unreachable!("the output {v} was replaced by {other}"),
        }
    }
}

/// Which values may be put in place of which without a user being able to tell by writing to outputs.
struct Storage {
    aliases: Aliases,
    observable: HashSet<usize>,
}

impl Storage {
    fn of(graph: &Graph, also: &[Value]) -> Self {
        let aliases = Aliases::of(graph);
        let observable = graph.outputs.iter().chain(also).map(|v| aliases.class(*v)).collect();
        Self { aliases, observable }
    }

    /// Can the value be seen from outside, through itself or a view?
    fn is_observable(&self, v: Value) -> bool {
        self.observable.contains(&self.aliases.class(v))
    }

    fn may_replace(&self, old: Value, new: Value) -> bool {
        self.aliases.may_share(old, new) || !(self.is_observable(old) || self.is_observable(new))
    }
}
