//! Recorded operator cases through the compiled path.
//!
//! One case is one call. Its graph goes the way of every raised function: canonicalize, functionalize, differentiate,
//! partition, plan, lower, JIT; the code runs on real tensors, and outputs and gradients are held against what
//! LibTorch gave.

mod run;
mod torch;

pub use run::{Way, run};

use cotangent_cases::{Case, Outcome, Report};
use serde_json::json;

/// What became of the cases of a folder, and which way they went.
#[derive(Debug, Default)]
pub struct Summary {
    /// Passed, failed, refused.
    pub report: Report,
    /// How many went through rules of Cotangent's own.
    pub own: usize,
    /// How many had an opaque node, which LibTorch differentiates.
    pub opaque: usize,
    /// Names of the cases with an opaque node.
    pub opaque_cases: Vec<String>,
}

impl Summary {
    /// The one JSON object that a machine reads. LibTorch's tape never records a region, so `native` is zero.
    pub fn json(&self) -> serde_json::Value {
        let names: Vec<&String> = self.report.failures.iter().map(|(name, _)| name).collect();
        json!({
            "passed": self.report.passed,
            "failed": self.report.failures.len(),
            "refused": self.report.refusals.len(),
            "failures": names,
            "refusals": self.report.refusals,
            "own": self.own,
            "opaque": self.opaque,
            "native": 0,
        })
    }
}

/// Runs cases.
pub fn run_cases(cases: &[Case]) -> Summary {
    let mut summary = Summary::default();
    for case in cases {
        let (way, outcome) = run(case);
        match way {
            Some(Way::Own) => summary.own += 1,
            Some(Way::Opaque) => {
                summary.opaque += 1;
                summary.opaque_cases.push(case.id.clone());
            }
            None => {}
        }
        let outcome = match (outcome, way) {
            // An op that everything else is built on must not lean on LibTorch's tape.
            (Outcome::Passed, Some(Way::Opaque)) if case.tier == "P0" => {
                Outcome::Failed("a P0 function went through an opaque node".to_owned())
            }
            (outcome, _) => outcome,
        };
        summary.report.add(&case.id, outcome);
    }
    summary
}
