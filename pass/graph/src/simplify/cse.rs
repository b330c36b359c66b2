//! Common subexpressions: an instruction that repeats an earlier one gives way to it.

use super::{Replaced, Storage};
use crate::ir::{Graph, Inst, Type, Value};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Replaces repeated instructions of a graph, for which `also` are outputs too. The repeated instructions stay, unused.
pub fn cse(graph: &mut Graph, also: &[Value]) -> Replaced {
    let storage = Storage::of(graph, also);
    let written = written(graph, &storage);
    let mut first: HashMap<String, Vec<Value>> = HashMap::new();
    let mut replaced = Replaced::default();
    for i in 0..graph.insts.len() {
        let inst = &mut graph.insts[i];
        inst.args.iter_mut().for_each(|a| *a = replaced.arg(a));
        let inst = &graph.insts[i];
        if !is_pure(graph, inst, &storage, &written) {
            continue;
        }
        let key = key(graph, inst);
        match first.get(&key) {
            None => {
                first.insert(key, inst.results.clone());
            }
            Some(earlier) => {
                let pairs = || inst.results.iter().zip(earlier);
                if pairs().all(|(r, e)| storage.may_replace(*r, *e)) {
                    pairs().for_each(|(r, e)| replaced.insert(*r, (*e).into()));
                }
            }
        }
    }
    for v in &mut graph.outputs {
        *v = replaced.value(*v);
    }
    replaced
}

/// Classes of storage that some instruction writes to: what is read from them depends on when.
fn written(graph: &Graph, storage: &Storage) -> HashSet<usize> {
    let mut written = HashSet::new();
    for inst in &graph.insts {
        for i in &inst.op.facts.mutates {
            inst.args[*i].for_each_value(&mut |v| {
                written.insert(storage.aliases.class(v));
            });
        }
    }
    written
}

/// Does the instruction give the same whenever it is executed?
fn is_pure(graph: &Graph, inst: &Inst, storage: &Storage, written: &HashSet<usize>) -> bool {
    let mut touched = inst.results.clone();
    inst.args
        .iter()
        .for_each(|a| a.for_each_value(&mut |v| touched.push(v)));
    let op = inst.op;
    // Host memory and fresh, unset memory are never "the same".
    let stable = !op.name.starts_with("host.") && !op.name.starts_with("empty") && !op.name.starts_with("tape.");
    stable
        && !op.facts.random
        && op.facts.mutates.is_empty()
        && !inst.results.iter().any(|r| *graph.ty(*r) == Type::Tape)
        && !touched.iter().any(|v| written.contains(&storage.aliases.class(*v)))
}

/// Equal for instructions that compute the same.
fn key(graph: &Graph, inst: &Inst) -> String {
    let mut key = format!("{}", inst.op);
    for arg in &inst.args {
        write!(key, ",{arg}").expect("writing to a string");
    }
    // The width of a scalar op's result is told by its type only.
    for r in &inst.results {
        write!(key, ":{}", graph.ty(*r)).expect("writing to a string");
    }
    key
}
