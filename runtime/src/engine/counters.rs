//! What tests and `explain` count.

use cotangent_graph::ir::Graph;
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
    report(&format!("{}\t{own}\t{}", graph.name, opaque.join(",")));
}

/// Reports a call that is refused: a line with the mark `!` and the reason.
pub(crate) fn refused(reason: &str) {
    report(&format!("!\t{reason}"));
}

fn report(line: &str) {
    let Some(file) = std::env::var_os(REPORT_VARIABLE) else {
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
