//! The order of requests: a derivative that is called by differentiated code is made before that code is differentiated.

use super::{DiffRequest, Refusal};
use crate::llvm::{Function, Value};
use std::collections::{HashMap, HashSet};

/// The requests by number, those that others call first; of each, whether it calls one before it.
///
/// # Errors
/// A derivative that needs itself.
pub(super) fn order(requests: &[DiffRequest<'_>]) -> Result<Vec<(usize, bool)>, Refusal> {
    let entries: HashMap<&str, usize> = requests
        .iter()
        .enumerate()
        .map(|(k, r)| (r.entry.as_str(), k))
        .collect();
    let calls: Vec<Vec<usize>> = requests.iter().map(|r| called(r.function, &entries)).collect();
    let (mut done, mut open, mut sorted) = (HashSet::new(), HashSet::new(), vec![]);
    for k in 0..requests.len() {
        place(k, requests, &calls, &mut done, &mut open, &mut sorted)?;
    }
    Ok(sorted.into_iter().map(|k| (k, !calls[k].is_empty())).collect())
}

fn place(
    k: usize,
    requests: &[DiffRequest<'_>],
    calls: &[Vec<usize>],
    done: &mut HashSet<usize>,
    open: &mut HashSet<usize>,
    sorted: &mut Vec<usize>,
) -> Result<(), Refusal> {
    if done.contains(&k) {
        return Ok(());
    }
    if !open.insert(k) {
        let name = requests[k].function.name();
        let help = "a derivative of a function cannot be part of the function itself";
        return Err(Refusal::of(&name, "a function that calls its own derivative", help));
    }
    for before in &calls[k] {
        place(*before, requests, calls, done, open, sorted)?;
    }
    done.insert(k);
    sorted.push(k);
    Ok(())
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
