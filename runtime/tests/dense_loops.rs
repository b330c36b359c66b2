//! Loops of the compiled code against LibTorch's kernels, bit by bit.

use cotangent_graph::ir::Graph;
use cotangent_graph::plan::{Options, plan};
use cotangent_runtime::exec::{CompiledGraph, Input, Output};
use tch::{Device, Kind, Tensor};

/// The graph with steps in place, and without.
fn both(text: &str) -> [CompiledGraph; 2] {
    let graph: Graph = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    [Options::default(), Options::NONE]
        .map(|o| CompiledGraph::compile(&plan(&graph, o)).unwrap_or_else(|e| panic!("{e}\n{text}")))
}

/// Every bit, but that a NaN is a NaN.
fn bits(x: &Tensor) -> Vec<u64> {
    let x = x.to_kind(Kind::Double).contiguous().reshape([-1]);
    let values: Vec<f64> = Vec::try_from(x).expect("numbers");
    values
        .iter()
        .map(|v| if v.is_nan() { u64::MAX } else { v.to_bits() })
        .collect()
}

fn run(graph: &CompiledGraph, inputs: &[&Tensor]) -> Vec<Tensor> {
    let inputs: Vec<Input<'_>> = inputs.iter().map(|x| (*x).into()).collect();
    let outputs = graph
        .run(&inputs)
        .unwrap_or_else(|e| panic!("{e}\n{}", graph.lowered().text));
    outputs.into_iter().filter_map(Output::into_tensor).collect()
}

/// Numbers with every corner among them.
fn sample(shape: &[i64], kind: Kind) -> Tensor {
    let x = Tensor::randn(shape, (Kind::Double, Device::Cpu));
    let corners = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-42, -1e-310];
    let n = x.numel();
    for (k, corner) in corners.iter().enumerate().take(n) {
        _ = x.view([-1]).get((k * n / corners.len()) as i64).fill_(*corner);
    }
    x.to_kind(kind)
}

fn sizes(shape: &[i64]) -> String {
    let sizes: Vec<String> = shape.iter().map(i64::to_string).collect();
    sizes.join(",")
}

/// `body` over `%2`, which the graph owns, and the inputs `%0` (of the same sizes) and `%1` (of `part`).
fn graph(kind: &str, shape: &[i64], part: &[i64], body: &[&str]) -> String {
    let ty = format!("{kind}[{}]", sizes(shape));
    let mut text = format!("graph @dense(%0: {ty} \"x\", %1: {kind}[{}] \"b\") {{\n", sizes(part));
    text += &format!("  %2: {ty} = abs(%0)\n");
    for (k, op) in body.iter().enumerate() {
        text += &format!("  %{}: {ty} = {op}\n", k + 3);
    }
    text + &format!("  return %{}\n}}", body.len() + 2)
}

#[test]
fn a_loop_gives_every_bit_that_the_kernels_give() {
    tch::manual_seed(1);
    let bodies: [&[&str]; 9] = [
        &["add(%2, %1)"],
        &["add(%2, %1)", "relu(%3)"],
        &["sub(%2, %1)", "neg(%3)", "mul(%4, %0)"],
        &["mul(%2, %1)", "add(%3, %3)"],
        &[
            "div(%2, %1)",
            "div_scalar(%3, 3)",
            "sub_scalar(%4, 0.1)",
            "add_scalar(%5, 7)",
        ],
        &["mul_scalar(%2, 0.3333333333333333)", "relu(%3)", "mul(%4, %4)"],
        &["threshold_backward(%2, %0, 0)", "add(%3, %1)"],
        &["sub(%0, %2)"],
        &["div(%0, %2)", "mul(%3, %1)"],
    ];
    let shapes: [(&[i64], &[i64]); 9] = [
        (&[128, 10], &[10]),
        (&[3, 64], &[1, 64]),
        (&[2, 3, 5], &[3, 5]),
        (&[7], &[]),
        (&[], &[]),
        (&[4, 9], &[4, 9]),
        (&[4, 9], &[1, 1]),
        (&[1, 8], &[8]),
        (&[5, 1], &[1]),
    ];
    for (name, kind) in [("f32", Kind::Float), ("f64", Kind::Double)] {
        for (shape, part) in shapes {
            for body in bodies {
                let text = graph(name, shape, part, body);
                let [ours, theirs] = both(&text);
                assert!(ours.lowered().text.contains("cotangent_dense"), "no loop:\n{text}");
                assert!(!theirs.lowered().text.contains("cotangent_dense"));
                let (x, b) = (sample(shape, kind), sample(part, kind));
                let [ours, theirs] = [ours, theirs].map(|g| bits(&run(&g, &[&x, &b])[0]));
                assert_eq!(ours, theirs, "{text}");
            }
        }
    }
}

#[test]
fn where_elements_do_not_lie_in_order_the_kernels_run() {
    tch::manual_seed(2);
    let text = graph("f32", &[6, 4], &[4], &["add(%2, %1)", "relu(%3)"]);
    let [ours, theirs] = both(&text);
    let x = sample(&[4, 6], Kind::Float).tr();
    let wide = sample(&[8], Kind::Float);
    for b in [wide.slice(0, 0, 8, 2), wide.slice(0, 0, 4, 1)] {
        let [ours, theirs] = [&ours, &theirs].map(|g| bits(&run(g, &[&x, &b])[0]));
        assert_eq!(ours, theirs);
    }
}

#[test]
fn large_or_empty_tensors_and_other_broadcasts_are_left_to_the_kernels() {
    for (shape, part) in [(&[40000i64][..], &[40000i64][..]), (&[0, 4], &[4]), (&[4, 5], &[4, 1])] {
        let [ours, _] = both(&graph("f32", shape, part, &["add(%2, %1)"]));
        assert!(!ours.lowered().text.contains("cotangent_dense"), "{shape:?}");
    }
}
