//! What tests and `explain` count.

use super::function::Param;
use cotangent_graph::ir::{Graph, Type};
use cotangent_graph::specialize::InputInfo;
use std::io::Write;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

static SPECIALIZATIONS: AtomicU64 = AtomicU64::new(0);
static MATERIALIZATIONS: AtomicU64 = AtomicU64::new(0);
static RESIDUAL_BYTES: AtomicI64 = AtomicI64::new(0);

/// Specializations made so far in this process: one per combination of decisions, kinds and shapes of a function.
pub fn specializations() -> u64 {
    SPECIALIZATIONS.load(Ordering::Relaxed)
}

/// Pieces of machine code made so far.
pub fn materializations() -> u64 {
    MATERIALIZATIONS.load(Ordering::Relaxed)
}

/// Bytes of tensors that live pullbacks and nodes hold for their backward and that nothing else made for them.
pub fn residual_bytes() -> i64 {
    RESIDUAL_BYTES.load(Ordering::Relaxed)
}

pub(crate) fn specialized() {
    SPECIALIZATIONS.fetch_add(1, Ordering::Relaxed);
}

pub(crate) fn materialized() {
    MATERIALIZATIONS.fetch_add(1, Ordering::Relaxed);
}

/// The variable that names a file to which each new region and each refusal is reported.
const REPORT_VARIABLE: &str = "COTANGENT_REGIONS";

/// Reports a region: a line with the function's name, how many of its ops run by rules of Cotangent's own, and the
/// names of the opaque ones.
pub(crate) fn region(graph: &Graph) {
    if std::env::var_os(REPORT_VARIABLE).is_none() {
        return;
    }
    let ops = || graph.insts.iter().map(|i| i.op).filter(|op| op.is_libtorch());
    let own = ops().filter(|op| op.own.is_some()).count();
    let opaque: Vec<&str> = ops().filter(|op| op.own.is_none()).map(|op| op.name).collect();
    report(REPORT_VARIABLE, &format!("{}\t{own}\t{}", graph.name, opaque.join(",")));
}

/// Reports a call that is refused: a line with the mark `!` and the reason.
pub(crate) fn refused(reason: &str) {
    report(REPORT_VARIABLE, &format!("!\t{reason}"));
}

/// The variable that names a file in which each specialization tells what it was made for.
const CALLS_VARIABLE: &str = "COTANGENT_CALLS";

/// Tells what a specialization was made for: a line of JSON with the function's name and, for each parameter through
/// which one tensor was read, its name, kind and sizes.
pub(crate) fn call(function: &str, params: &[Param], inputs: &[InputInfo]) {
    if std::env::var_os(CALLS_VARIABLE).is_none() {
        return;
    }
    let tensors = |k: usize| {
        let through = move |i: &&InputInfo| i.place.is_some_and(|p| p.argument == k);
        inputs.iter().filter(through).filter_map(|i| i.facts.as_ref())
    };
    let told: Vec<String> = params
        .iter()
        .enumerate()
        .filter(|(k, _)| tensors(*k).count() == 1)
        .filter_map(|(k, p)| {
            Some(format!(
                "{}={}",
                p.name,
                Type::Tensor(Some(tensors(k).next()?.ty.clone()))
            ))
        })
        .collect();
    let line = serde_json::json!({"function": function, "inputs": told});
    report(CALLS_VARIABLE, &line.to_string());
}

fn report(variable: &str, line: &str) {
    let Some(file) = std::env::var_os(variable) else {
        return;
    };
    let report = std::fs::OpenOptions::new().create(true).append(true).open(file);
    // A report that cannot be written must not fail the program that is watched.
    let _ = report.and_then(|mut f| writeln!(f, "{line}"));
}

/// A count of residual bytes, taken back when it is dropped.
#[derive(Debug)]
pub(crate) struct Bytes(i64);

impl Bytes {
    pub(crate) fn count(bytes: u64) -> Self {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        RESIDUAL_BYTES.fetch_add(bytes, Ordering::Relaxed);
        Self(bytes)
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        RESIDUAL_BYTES.fetch_sub(self.0, Ordering::Relaxed);
    }
}
