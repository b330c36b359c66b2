//! Opaque ops: LibTorch's own derivative inside a region.

use cotangent_graph::differentiate::vjp;
use cotangent_graph::ir::{Graph, Value};
use cotangent_graph::plan::{Options, plan};
use cotangent_runtime::exec::{CompiledGraph, Input, Meta, Output};
use tch::{Device, Kind, Tensor};

const F64: (Kind, Device) = (Kind::Double, Device::Cpu);

/// The joint graph of `text` for all inputs, with the cotangents after the outputs, and which inputs have one.
fn joint(text: &str) -> (CompiledGraph, Vec<bool>) {
    let graph: Graph = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let wrt: Vec<Value> = graph.inputs.iter().map(|i| i.value).collect();
    let seeded = vec![true; graph.outputs.len()];
    let mut joint = vjp(&graph, &wrt, &seeded, &Meta).unwrap_or_else(|(e, _)| panic!("{e}"));
    joint.graph.outputs.extend(joint.cotangents.iter().flatten());
    let compiled = CompiledGraph::compile(&plan(&joint.graph, Options::default())).unwrap_or_else(|e| panic!("{e}"));
    (compiled, joint.cotangents.iter().map(Option::is_some).collect())
}

fn tensors(outputs: Vec<Output>) -> Vec<Tensor> {
    outputs.into_iter().filter_map(Output::into_tensor).collect()
}

const LINALG: &str = r#"graph @solve(%0: f64[3,3] "a", %1: f64[3,2] "b") {
  %2: f64[3,3] = linalg_matrix_exp(%0)
  %3: f64[3,2] = linalg_solve(%2, %1, true)
  return %3
}"#;

#[test]
fn the_derivative_of_opaque_ops_is_libtorchs_own() {
    let (graph, found) = joint(LINALG);
    assert_eq!(found, [true, true]);
    let (a, b, seed) = (
        Tensor::rand([3, 3], F64),
        Tensor::rand([3, 2], F64),
        Tensor::rand([3, 2], F64),
    );
    let (a, b) = (a.set_requires_grad(true), b.set_requires_grad(true));
    let y = Tensor::linalg_solve(&a.linalg_matrix_exp(), &b, true);
    let want = Tensor::run_backward(&[(&y * &seed).sum(Kind::Double)], &[&a, &b], false, false);
    let got = tensors(graph.run(&[(&a).into(), (&b).into(), (&seed).into()]).expect("it runs"));
    assert!(got.iter().all(|x| !x.requires_grad()));
    assert_eq!(got[0], y);
    assert!(got[1].allclose(&want[0], 1e-12, 1e-12, false));
    assert!(got[2].allclose(&want[1], 1e-12, 1e-12, false));
}

#[test]
fn a_tape_serves_many_calls_from_many_threads() {
    let graph: Graph = r#"graph @forward(%0: f64[4,4] "a") {
  %1: f64[4,4], %2: tape = linalg_matrix_exp(%0, [0, 0])
  return %1, %2
}"#
    .parse()
    .expect("a graph");
    let backward: Graph = r#"graph @backward(%0: tape "t", %1: f64[4,4] "seed") {
  %2: f64[4,4] = tape.vjp(%0, {%1})
  return %2
}"#
    .parse()
    .expect("a graph");
    let forward = CompiledGraph::compile(&plan(&graph, Options::default())).expect("it lowers");
    let backward = CompiledGraph::compile(&plan(&backward, Options::default())).expect("it lowers");
    let a = Tensor::rand([4, 4], F64);
    let out = forward.run(&[(&a).into()]).expect("it runs");
    let Output::Tape(tape) = &out[1] else { panic!("a tape") };
    let pull = || {
        let seed = Tensor::ones([4, 4], F64);
        tensors(backward.run(&[Input::Tape(tape), (&seed).into()]).expect("it runs")).remove(0)
    };
    let first = pull();
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..4)
            .map(|_| s.spawn(|| (0..20).map(|_| pull()).collect::<Vec<_>>()))
            .collect();
        for thread in threads {
            for again in thread.join().expect("no panic") {
                assert!(again.allclose(&first, 0.0, 0.0, false));
            }
        }
    });
}

#[test]
fn a_tape_notices_that_its_input_was_written_to() {
    let forward: Graph = r#"graph @forward(%0: f64[3] "a") {
  %1: f64[3], %2: tape = special_entr(%0, [0, 0])
  return %2
}"#
    .parse()
    .expect("a graph");
    let backward: Graph = r#"graph @backward(%0: tape "t", %1: f64[3] "seed") {
  %2: f64[3] = tape.vjp(%0, {%1})
  return %2
}"#
    .parse()
    .expect("a graph");
    let mut a = Tensor::rand([3], F64);
    let out = CompiledGraph::compile(&plan(&forward, Options::default()))
        .expect("it lowers")
        .run(&[(&a).into()])
        .expect("it runs");
    _ = a.fill_(1.0);
    let seed = Tensor::ones([3], F64);
    let failed = CompiledGraph::compile(&plan(&backward, Options::default()))
        .expect("it lowers")
        .run(&[out[0].as_input(), (&seed).into()])
        .expect_err("native autograd refuses as well");
    assert!(
        failed.to_string().contains("modified by an inplace operation"),
        "{failed}"
    );
}

#[test]
fn an_opaque_op_without_a_derivative_is_an_error_that_names_it() {
    let (graph, _) = joint(
        r#"graph @f(%0: f64[3] "a", %1: f64[3] "x") {
  %2: f64[3] = igamma(%0, %1)
  return %2
}"#,
    );
    let x = Tensor::rand([3], F64);
    let failed = graph
        .run(&[(&x).into(), (&x).into(), (&x).into()])
        .expect_err("it has no derivative");
    assert!(failed.to_string().contains("igamma"), "{failed}");
}
