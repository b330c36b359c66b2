//! A thousand calls leave the process as they found it.

use cotangent_graph::differentiate::vjp;
use cotangent_graph::ir::Graph;
use cotangent_graph::plan::{Options, plan};
use cotangent_runtime::exec::{CompiledGraph, Meta};
use cotangent_runtime::jit::materialisations;
use std::sync::Mutex;
use tch::{Device, Kind, Tensor};

/// Both tests read the memory of the whole process: one at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    text.split(' ')
        .nth(1)
        .and_then(|n| n.parse::<usize>().ok())
        .expect("pages")
        * 4096
}

#[test]
fn calls_free_every_temporary_also_when_they_fail() {
    let _alone = ALONE.lock();
    let graph: Graph = r#"graph @f(%0: f32[32,32] "x", %1: f32[32,32] "w") {
  %2: f32[32,32] = special_entr(%0)
  %3: f32[32,32] = mm(%2, %1)
  return %3
}"#
    .parse()
    .expect("a graph");
    let wrt = [graph.inputs[0].value, graph.inputs[1].value];
    let mut joint = vjp(&graph, &wrt, &[true], &Meta).unwrap_or_else(|(e, _)| panic!("{e}"));
    joint.graph.outputs.extend(joint.cotangents.iter().flatten());
    let compiled = CompiledGraph::compile(&plan(&joint.graph, Options::default())).expect("it lowers");
    let float = (Kind::Float, Device::Cpu);
    let (x, w, seed) = (
        Tensor::rand([32, 32], float),
        Tensor::rand([32, 32], float),
        Tensor::ones([32, 32], float),
    );
    let bad = Tensor::rand([31, 32], float);
    let step = |i: usize| {
        compiled
            .run(&[(&x).into(), (&w).into(), (&seed).into()])
            .expect("it runs");
        // LibTorch takes long over a failure: it writes a back trace.
        if i.is_multiple_of(100) {
            compiled
                .run(&[(&x).into(), (&bad).into(), (&seed).into()])
                .expect_err("the shapes do not fit");
        }
    };
    (0..200).for_each(step);
    let before = resident();
    (0..1000).for_each(step);
    // One tensor of this size per step would be 4 MiB.
    assert!(resident() < before + (1 << 20), "{before} bytes grew to {}", resident());
}

#[test]
fn dropping_a_graph_removes_its_code() {
    let _alone = ALONE.lock();
    let graph: Graph = r#"graph @g(%0: f32[4] "x") {
  %1: f32[4] = exp(%0)
  %2: f32[4] = mul_scalar(%1, 2.5)
  return %2
}"#
    .parse()
    .expect("a graph");
    let x = Tensor::ones([4], (Kind::Float, Device::Cpu));
    let once = |_| {
        let compiled = CompiledGraph::compile(&plan(&graph, Options::default())).expect("it lowers");
        compiled.run(&[(&x).into()]).expect("it runs");
    };
    let (before_count, _) = (materialisations(), (0..100).for_each(once));
    assert!(
        materialisations() >= before_count + 100,
        "each graph is materialised on its first call"
    );
    let before = resident();
    (0..400).for_each(once);
    // A page of code, one of tables and one of stubs for each would be more than four megabytes.
    assert!(resident() < before + (4 << 20), "{before} bytes grew to {}", resident());
}
