//! Tests generated from the op table: each entry gets its own, from its samples.

mod check;
mod edges;
mod forward;
mod samples;

use check::Mutation;
use cotangent_graph::canonicalize::canonicalize;
use cotangent_graph::differentiate::NoOracle;
use cotangent_graph::interp;
use cotangent_graph::ops::{Op, OwnOp, Rule, families};
use libtest_mimic::{Arguments, Failed, Trial};
use samples::Sample;

fn main() {
    let mut trials = vec![];
    // The interpreter is the oracle; an op that it lacks is tested with LibTorch as the oracle, by the recorded cases.
    let testable = |own: &&OwnOp| !own.samples.is_empty() && interp::supports(Op::named(own.name));
    for own in families::all().filter(testable) {
        if matches!(own.rule, Rule::Constant) {
            trials.push(trial(own, "gives_no_cotangent", |_, s| check::none(s)));
            continue;
        }
        trials.push(trial(own, "gradient_agrees_with_differences", |_, s| check::first(s)));
        trials.push(trial(own, "gradient_can_be_differentiated_again", |_, s| {
            check::second(s)
        }));
        trials.push(trial(own, "forward_mode_agrees_with_reverse_mode", |_, s| {
            forward::agrees(s)
        }));
        match own.rule {
            Rule::Linear(_) => trials.push(trial(own, "rule_is_the_transpose", |_, s| check::transpose(s, false))),
            Rule::Bilinear(_) => trials.push(trial(own, "rules_are_the_transposes", |_, s| check::transpose(s, true))),
            _ => {}
        }
        if !matches!(own.rule, Rule::Zero) {
            trials.push(Trial::test(
                format!("{}::a_wrong_rule_is_noticed", own.name),
                move || teeth(own).map_err(Failed::from),
            ));
        }
    }
    trials.extend(edges::trials());
    trials.sort_by(|a, b| a.name().cmp(b.name()));
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn trial(own: &'static OwnOp, guarantee: &str, test: fn(&OwnOp, &Sample) -> check::Outcome) -> Trial {
    Trial::test(format!("{}::{guarantee}", own.name), move || {
        for sample in canonical(own) {
            test(own, &sample)?;
        }
        Ok(())
    })
}

/// The samples of an entry, as a derivative sees them: composites are rewritten.
fn canonical(own: &'static OwnOp) -> Vec<Sample> {
    let mut all = samples::samples(own);
    if !matches!(own.rule, Rule::Composite(_)) {
        return all;
    }
    for sample in &mut all {
        canonicalize(&mut sample.graph, &NoOracle).unwrap_or_else(|(e, _)| panic!("`{}`: {e}", sample.text));
    }
    all
}

/// Some sample notices each mutation.
fn teeth(own: &'static OwnOp) -> check::Outcome {
    for mutation in [Mutation::Zeroed, Mutation::Scaled] {
        let mut noticed = false;
        for sample in canonical(own) {
            noticed |= check::notices(&sample, mutation)?.contains(&true);
        }
        if !noticed {
            return Err(format!("no sample notices {mutation:?} cotangents"));
        }
    }
    Ok(())
}
