//! Properties of the stages on random graphs: each keeps what the graph computes, bit for bit.

mod generate;
mod machine;

use cotangent_graph::differentiate::{Joint, NoOracle, vjp};
use cotangent_graph::interp::{self, Value};
use cotangent_graph::ir::{Graph, Type};
use cotangent_graph::partition::{Origin, Policy, Split, partition};
use cotangent_graph::plan::{Options, Plan, plan, plan_once};
use cotangent_graph::simplify;
use cotangent_graph::verify::{Stage, verify};
use generate::{Recipe, build, inputs, recipe};
use machine::{Reshapes, execute, execute_once};
use proptest::prelude::*;

fn well_formed(graph: &Graph) {
    verify(graph, Stage::Functional).unwrap_or_else(|e| panic!("{e}\n{graph}"));
}

fn run(graph: &Graph, inputs: &[Value]) -> Vec<Value> {
    interp::run(graph, inputs).unwrap_or_else(|e| panic!("{e}\n{graph}"))
}

/// Values by their bits: a NaN equals itself, `0` is not `-0`.
fn bits(values: &[Value]) -> Vec<Vec<u64>> {
    let of = |v: &Value| match v {
        Value::Tensor(t) => t.to_f64().iter().map(|x| x.to_bits()).collect(),
        Value::Float(x) => vec![x.to_bits()],
        other => panic!("{other:?} in a graph of tensors"),
    };
    values.iter().map(of).collect()
}

/// Values by their bits, but that a NaN is a NaN: which of two NaNs a sum takes depends on the order of operands.
fn numbers(values: &[Value]) -> Vec<Vec<u64>> {
    let canonical = |b: u64| {
        if f64::from_bits(b).is_nan() {
            f64::NAN.to_bits()
        } else {
            b
        }
    };
    bits(values)
        .into_iter()
        .map(|v| v.into_iter().map(canonical).collect())
        .collect()
}

fn close(a: &[Value], b: &[Value]) -> bool {
    let flat = |vs: &[Value]| -> Vec<f64> { numbers(vs).concat().into_iter().map(f64::from_bits).collect() };
    let (a, b) = (flat(a), flat(b));
    let near = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a - b).abs() <= 1e-4 * (1.0 + a.abs());
    a.len() == b.len() && a.iter().zip(&b).all(near)
}

/// The joint graph of a random graph, as it comes from the sweep, and what it takes: inputs and seeds.
fn joint(recipe: &Recipe) -> (Graph, Joint, Vec<Value>, Vec<Value>) {
    let graph = build(recipe);
    let wrt: Vec<_> = graph.inputs.iter().map(|i| i.value).collect();
    let joint = vjp(&graph, &wrt, &vec![true; graph.outputs.len()], &NoOracle);
    let joint = joint.unwrap_or_else(|(e, _)| panic!("{e}\n{graph}"));
    let all = inputs(&joint.graph, recipe.seed);
    let seeds = all[graph.inputs.len()..].to_vec();
    (graph, joint, all, seeds)
}

/// A joint graph that gives the cotangents, too.
fn with_cotangents(joint: &Joint) -> Graph {
    let mut graph = joint.graph.clone();
    graph.outputs.extend(joint.cotangents.iter().flatten());
    graph
}

fn every_option() -> impl Iterator<Item = Options> {
    (0..8).map(|i| Options {
        in_place: i & 1 != 0,
        accumulate: i & 2 != 0,
        early_release: i & 4 != 0,
    })
}

/// Runs a plan of `graph` on memory that is really shared and really freed, however LibTorch decides on copies.
fn check_plan(graph: &Graph, given: &[Value], want: &[Value]) {
    for options in every_option() {
        let plan = plan(graph, options);
        for reshapes in [Reshapes::Alias, Reshapes::Copy] {
            let got = execute(&plan, given, reshapes).unwrap_or_else(|e| panic!("{e}\n{plan}\n{graph}"));
            let same = match accumulates(&plan) {
                true => close(&got, want),
                false => numbers(&got) == numbers(want),
            };
            assert!(same, "{options:?}\n{plan}\n{graph}\n{got:?}\n{want:?}");
        }
    }
}

/// Runs both halves on one memory, with a backward that uses the residuals up.
fn check_once(split: &Split, given: &[Value], seeds: &[Value], want: (&[Value], &[Value])) {
    for options in every_option() {
        let plans = (
            &plan(&split.forward, options),
            &plan_once(&split.backward, options, &split.owners()),
        );
        for reshapes in [Reshapes::Alias, Reshapes::Copy] {
            let show = || format!("{options:?}\n{}\n{}", plans.0, plans.1);
            let got = execute_once(split, plans, given, seeds, reshapes).unwrap_or_else(|e| panic!("{e}\n{}", show()));
            assert!(close(&got.0, want.0), "{}", show());
            assert!(close(&got.1, want.1), "{}", show());
        }
    }
}

fn accumulates(plan: &Plan) -> bool {
    plan.steps.iter().any(|s| s.op.name == "addmm_")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printed_graphs_parse_to_themselves(r in recipe()) {
        let (graph, joint, ..) = joint(&r);
        for g in [&graph, &joint.graph] {
            let again: Graph = g.to_string().parse().unwrap();
            prop_assert_eq!(&again, g);
        }
    }

    #[test]
    fn simplification_keeps_every_bit(r in recipe()) {
        let (graph, joint, all, _) = joint(&r);
        let mut simple = graph.clone();
        simplify::graph(&mut simple);
        well_formed(&simple);
        let given = &all[..graph.inputs.len()];
        prop_assert_eq!(bits(&run(&graph, given)), bits(&run(&simple, given)));

        let mut simple = joint.clone();
        simplify::joint(&mut simple);
        well_formed(&simple.graph);
        let (before, after) = (with_cotangents(&joint), with_cotangents(&simple));
        prop_assert!(after.insts.len() <= before.insts.len());
        prop_assert_eq!(bits(&run(&before, &all)), bits(&run(&after, &all)));
    }

    #[test]
    fn what_is_known_of_seeds_changes_no_bit(r in recipe(), number in prop_oneof![Just(1.0), -3.0..3.0f64]) {
        let (graph, joint, mut all, _) = joint(&r);
        let whole = with_cotangents(&joint);
        let seeds = graph.inputs.len()..whole.inputs.len();
        let mut known = vec![];
        for (value, input) in all[seeds.clone()].iter_mut().zip(&whole.inputs[seeds]) {
            let Type::Tensor(Some(ty)) = whole.ty(input.value) else { continue };
            let filled = vec![number; ty.numel() as usize];
            let filled = interp::Tensor::from_f64(ty.kind, &ty.shape, filled);
            known.push((input.value, filled.to_f64().first().copied().unwrap_or(number)));
            *value = Value::Tensor(filled);
        }
        let mut simple = whole.clone();
        simplify::graph_knowing(&mut simple, &known);
        well_formed(&simple);
        prop_assert_eq!(numbers(&run(&whole, &all)), numbers(&run(&simple, &all)));
    }

    #[test]
    fn the_halves_compute_what_the_joint_graph_computes(r in recipe()) {
        let (graph, mut joint, all, seeds) = joint(&r);
        simplify::joint(&mut joint);
        let want = run(&with_cotangents(&joint), &all);
        let (outputs, cotangents) = want.split_at(graph.outputs.len());
        for policy in [Policy::SaveReads, Policy::RecomputeAll] {
            let split = partition(&joint, policy);
            well_formed(&split.forward);
            well_formed(&split.backward);
            let given = &all[..graph.inputs.len()];
            check_once(&split, given, &seeds, (outputs, cotangents));
            let mut forward = run(&split.forward, given);
            check_plan(&split.forward, given, &forward);
            let mut residuals = forward.split_off(split.primals);
            prop_assert_eq!(bits(&forward), bits(outputs));

            residuals.extend(seeds.iter().cloned());
            let backward = run(&split.backward, &residuals);
            prop_assert_eq!(bits(&backward), bits(cotangents));
            check_plan(&split.backward, &residuals, &backward);
        }
    }

    #[test]
    fn early_release_and_reuse_never_need_more_memory(r in recipe()) {
        let graph = build(&r);
        let plain = plan(&graph, Options::NONE).cost;
        for options in every_option() {
            let cost = plan(&graph, options).cost;
            prop_assert!(cost.peak_bytes <= plain.peak_bytes);
            prop_assert!(cost.bytes_allocated <= plain.bytes_allocated);
        }
    }

    #[test]
    fn recomputing_saves_nothing_but_inputs(r in recipe()) {
        let (_, mut joint, ..) = joint(&r);
        simplify::joint(&mut joint);
        let split = partition(&joint, Policy::RecomputeAll);
        for residual in &split.residuals {
            let is_input = matches!(residual.origin, Origin::Input(_));
            prop_assert!(is_input || *split.forward.ty(residual.forward) == Type::Tape);
        }
    }
}
