//! The recorded cases that the repository keeps, through the interpreter; and the harness itself.

use cotangent_cases::{Case, Outcome, Selection, excerpt, interpret, load};
use cotangent_graph::interp::Tensor;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ops")
}

fn cases() -> Vec<Case> {
    load(&folder()).expect("the kept cases load")
}

fn case(id: &str) -> Case {
    cases().into_iter().find(|c| c.id == id).expect("a kept case")
}

#[test]
fn every_p0_case_gives_the_recorded_outputs_and_gradients() {
    let bad: Vec<_> = cases()
        .iter()
        .filter(|c| c.tier == "P0")
        .map(|c| (c.id.clone(), interpret(c)))
        .filter(|(_, outcome)| *outcome != Outcome::Passed)
        .collect();
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn no_case_gives_a_wrong_number() {
    let failed: Vec<_> = cases()
        .iter()
        .map(|c| (c.id.clone(), interpret(c)))
        .filter(|(_, outcome)| matches!(outcome, Outcome::Failed(_)))
        .collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn every_p0_function_is_kept_at_least_twice() {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for c in cases().into_iter().filter(|c| c.tier == "P0") {
        *counts.entry(c.name).or_default() += 1;
    }
    assert_eq!(counts.len(), 55);
    assert!(counts.values().all(|n| *n >= 2), "{counts:?}");
}

fn fails(c: &Case) -> bool {
    matches!(interpret(c), Outcome::Failed(_))
}

/// The first case with a defined gradient of at least one element.
fn differentiable() -> Case {
    let with_gradient = |c: &Case| {
        let gradient = c.grads.first().and_then(Option::as_ref);
        interpret(c) == Outcome::Passed && gradient.is_some_and(|g| g.numel() > 0)
    };
    cases()
        .into_iter()
        .find(with_gradient)
        .expect("most cases have gradients")
}

fn scaled(t: &Tensor, by: f64) -> Tensor {
    Tensor::from_f64(
        t.kind(),
        t.shape(),
        t.to_f64().into_iter().map(|x| x * by + 1e-9).collect(),
    )
}

#[test]
fn a_gradient_that_is_off_by_a_thousandth_fails() {
    let mut c = differentiable();
    c.grads[0] = c.grads[0].as_ref().map(|g| scaled(g, 1.001));
    assert!(fails(&c));
}

#[test]
fn an_output_that_is_off_by_a_thousandth_fails() {
    let mut c = differentiable();
    c.outputs[0] = c.outputs[0].as_ref().map(|t| scaled(t, 1.001));
    assert!(fails(&c));
}

#[test]
fn a_gradient_where_none_is_recorded_fails_and_so_does_a_missing_one() {
    let mut c = differentiable();
    let wanted = c.grads[0].take();
    assert!(fails(&c));
    c.grads[0] = wanted;
    c.cotangents.fill(None);
    assert!(fails(&c));
}

#[test]
fn a_detached_output_does_not_require_grad() {
    let mut c = case("edge/detach");
    assert_eq!(interpret(&c), Outcome::Passed);
    c.out_requires_grad = vec![true];
    assert!(fails(&c));
}

#[test]
fn an_excerpt_of_everything_is_the_same_folder() {
    let to = std::env::temp_dir().join(format!("cotangent-cases-{}", std::process::id()));
    let ids: HashSet<String> = cases().into_iter().map(|c| c.id).collect();
    excerpt(&folder(), &to, &ids).expect("an excerpt");
    for file in ["cases.jsonl", "ops.jsonl", "tensors.safetensors"] {
        let (kept, copied) = (fs::read(folder().join(file)), fs::read(to.join(file)));
        assert!(kept.expect("kept") == copied.expect("copied"), "{file} differs");
    }
    fs::remove_dir_all(to).expect("the temporary folder");
}

#[test]
fn a_folder_without_cases_is_refused_with_the_file_that_is_missing() {
    let e = load(Path::new("no-such-folder")).expect_err("there is no such folder");
    assert!(format!("{e:#}").contains("ops.jsonl"), "{e:#}");
}

#[test]
fn a_selection_of_nothing_is_an_error_and_a_tier_selects_its_cases() {
    let of = |tier: &str| Selection {
        folder: folder(),
        tier: Some(tier.to_owned()),
        only: None,
    };
    let p0 = of("P0").cases().expect("the kept cases load");
    assert!(p0.len() > 50 && p0.iter().all(|c| c.tier == "P0"));
    let e = of("--tier").cases().expect_err("there is no such tier");
    assert!(e.to_string().contains("no case in"), "{e}");
}
