//! The order of requests: a derivative that is called by differentiated code is made before that code is differentiated.

use super::{DiffRequest, Mode, Refusal};
use crate::llvm::{Function, Value};
use std::collections::{HashMap, HashSet};

/// The requests by number, those that others call first; of each, which ones it calls.
///
/// # Errors
/// A derivative that needs itself.
pub(super) fn order(requests: &[DiffRequest<'_>]) -> Result<Vec<(usize, Vec<usize>)>, Refusal> {
    let entries: HashMap<&str, usize> = requests
        .iter()
        .enumerate()
        .map(|(k, r)| (r.entry.as_str(), k))
        .collect();
    let mut order = Order {
        requests,
        calls: requests.iter().map(|r| called(r.function, &entries)).collect(),
        done: HashSet::new(),
        open: HashSet::new(),
        sorted: vec![],
    };
    for k in 0..requests.len() {
        order.place(k)?;
    }
    let Order { mut calls, sorted, .. } = order;
    Ok(sorted.into_iter().map(|k| (k, std::mem::take(&mut calls[k]))).collect())
}

struct Order<'r, 'm> {
    requests: &'r [DiffRequest<'m>],
    calls: Vec<Vec<usize>>,
    done: HashSet<usize>,
    open: HashSet<usize>,
    sorted: Vec<usize>,
}

impl Order<'_, '_> {
    fn place(&mut self, k: usize) -> Result<(), Refusal> {
        if self.done.contains(&k) {
            return Ok(());
        }
        let function = self.requests[k].function;
        if !self.open.insert(k) {
            let help = "a derivative of a function cannot be part of the function itself";
            let what = "a function that calls its own derivative";
            return Err(Refusal::of(&function.name(), what, help));
        }
        for before in self.calls[k].clone() {
            self.place(before)?;
        }
        // The two halves of a split derivative follow each other: they need one plan.
        let half = |r: &DiffRequest<'_>| r.function == function && matches!(r.mode, Mode::Augmented | Mode::Reverse);
        let halves: Vec<_> = (0..self.requests.len()).filter(|j| half(&self.requests[*j])).collect();
        let placed = if halves.contains(&k) { halves } else { vec![k] };
        for j in placed {
            if self.done.insert(j) {
                self.sorted.push(j);
            }
        }
        Ok(())
    }
}

/// The entries that code reached from a function mentions.
fn called(root: Function<'_>, entries: &HashMap<&str, usize>) -> Vec<usize> {
    let (mut seen, mut open, mut found) = (HashSet::from([root]), vec![root], vec![]);
    while let Some(f) = open.pop() {
        found.extend(entries.get(f.name().as_str()).filter(|_| f.is_declaration()));
        for v in f.instructions().flat_map(|i| i.operands().collect::<Vec<_>>()) {
            mentioned(v, &mut |g| {
                if seen.insert(g) {
                    open.push(g);
                }
            });
        }
    }
    found
}

/// The functions that an operand is or, as a constant, is made of.
fn mentioned<'m>(v: Value<'m>, found: &mut impl FnMut(Function<'m>)) {
    if let Some(f) = v.as_function_or_alias() {
        found(f);
    } else if v.is_const_expression() || v.is_constant() && (v.ty().is_struct() || v.ty().is_array()) {
        v.operands().for_each(|x| mentioned(x, found));
    }
}
