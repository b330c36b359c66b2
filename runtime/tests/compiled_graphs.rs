//! Closed graphs through lowering and the JIT, on real tensors.

use cotangent_graph::ir::Graph;
use cotangent_graph::partition::Ownership;
use cotangent_graph::plan::{Options, plan, plan_once};
use cotangent_runtime::exec::{CompiledGraph, Given, Input, Output, RunError};
use tch::{Device, Kind, Tensor};

fn compile(text: &str) -> CompiledGraph {
    let graph: Graph = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    CompiledGraph::compile(&plan(&graph, Options::default())).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn run(graph: &CompiledGraph, inputs: &[Input<'_>]) -> Vec<Tensor> {
    let outputs = graph
        .run(inputs)
        .unwrap_or_else(|e| panic!("{e}\n{}", graph.lowered().text));
    outputs.into_iter().filter_map(Output::into_tensor).collect()
}

fn numbers(x: &Tensor) -> Vec<f64> {
    Vec::try_from(x.to_kind(Kind::Double).reshape([-1])).expect("numbers")
}

#[test]
fn every_form_of_argument_reaches_the_kernel() {
    let graph = compile(
        r#"graph @forms(%0: f32[2,3] "x", %1: f32[3] "w", %2: f64 "s") {
  %3: f32[2,3] = layer_norm(%0, [3], %1, none, 1e-5, false)
  %4: f32[2,3] = mul_scalar(%3, %2)
  %5: f32[2,3] = add_scalar(%4, 2)
  %6: f32[2,6] = cat({%5, %0}, 1)
  %7: f32[2] = sum_dim_intlist(%6, [1], false, none)
  %8: f64[2] = totype(%7, f64)
  %9: f64[2] = div_tensor_mode(%8, %8, "trunc")
  %10: f32[2] = ones([2], f32, cpu)
  %11: f32[2] = clamp(%10, 0.25, 0.5)
  return %7, %9, %11, %0
}"#,
    );
    let x = Tensor::arange(6, (Kind::Float, Device::Cpu)).reshape([2, 3]);
    let w = Tensor::from_slice(&[1f32, 2.0, 3.0]);
    let y = run(&graph, &[(&x).into(), (&w).into(), Input::Float(3.0)]);
    let want =
        (x.layer_norm([3], Some(&w), None::<&Tensor>, 1e-5, false) * 3.0 + 2).sum_dim_intlist(1, false, None::<Kind>)
            + x.sum_dim_intlist(1, false, None::<Kind>);
    assert_eq!(numbers(&y[0]), numbers(&want));
    assert_eq!(numbers(&y[1]), [1.0, 1.0]);
    assert_eq!(numbers(&y[2]), [0.5, 0.5]);
    assert_eq!(y[3].data_ptr(), x.data_ptr());
}

#[test]
fn lists_and_several_results_come_out_in_order() {
    let graph = compile(
        r#"graph @many(%0: f32[4,2] "x") {
  %1: f32[2,2], %2: f32[2,2] = split(%0, 2, 0)
  %3: f32[2], %4: i64[2] = max_dim(%2, 1, false)
  return %2, %1, %3, %4, %1
}"#,
    );
    let x = Tensor::arange(8, (Kind::Float, Device::Cpu)).reshape([4, 2]);
    let y = run(&graph, &[(&x).into()]);
    assert_eq!(numbers(&y[0]), [4.0, 5.0, 6.0, 7.0]);
    assert_eq!(numbers(&y[1]), [0.0, 1.0, 2.0, 3.0]);
    assert_eq!(numbers(&y[2]), [5.0, 7.0]);
    assert_eq!(numbers(&y[3]), [1.0, 1.0]);
    assert_eq!(numbers(&y[4]), numbers(&y[1]));
}

#[test]
fn arithmetic_on_floats_is_exact_at_both_widths() {
    let graph = compile(
        r#"graph @floats(%0: f64 "a", %1: f32 "b", %2: f64[] "t") {
  %3: f64 = scalar.fmul(%0, 0.1)
  %4: f64 = scalar.call("exp", %3)
  %5: f64 = scalar.call("sqrt", %4)
  %6: f32 = scalar.fadd(%1, 0.1)
  %7: f64 = scalar.cast("fpext", %6)
  %8: i1 = scalar.fcmp("ogt", %5, %7)
  %9: f64 = scalar.select(%8, %5, %7)
  %10: f64 = item(%2)
  %11: f64 = scalar.fneg(%10)
  return %5, %6, %9, %11
}"#,
    );
    let t = Tensor::from(2.5);
    let out = graph
        .run(&[Input::Float(3.0), Input::Float(0.5), (&t).into()])
        .expect("it runs");
    let got: Vec<f64> = out
        .into_iter()
        .map(|o| match o {
            Output::Float(x) => x,
            _ => panic!("a float"),
        })
        .collect();
    let a = (3.0f64 * 0.1).exp().sqrt();
    let b = f64::from(0.5f32 + 0.1f32);
    assert_eq!(got, [a, b, a.max(b), -2.5]);
}

#[test]
fn a_failure_names_the_step_and_leaves_nothing_behind() {
    let graph = compile(
        r#"graph @fails(%0: f32[2,3] "x", %1: f32[3,2] "y") {
  %2: f32[2,3] = neg(%0)
  %3: f32[2,2] = mm(%2, %1) @ src/lib.rs:7:3
  return %3
}"#,
    );
    let (x, y) = (
        Tensor::ones([2, 3], (Kind::Float, Device::Cpu)),
        Tensor::ones([4, 2], (Kind::Float, Device::Cpu)),
    );
    for _ in 0..3 {
        match graph.run(&[(&x).into(), (&y).into()]) {
            Err(RunError::Kernel(e)) => {
                assert_eq!((e.step, e.op), (1, "mm"));
                assert_eq!(e.loc.map(|l| l.to_string()).as_deref(), Some("src/lib.rs:7:3"));
                assert!(e.message.contains("cannot be multiplied"), "{}", e.message);
            }
            other => panic!("{other:?}"),
        }
    }
    let y = Tensor::ones([3, 2], (Kind::Float, Device::Cpu));
    assert_eq!(numbers(&run(&graph, &[(&x).into(), (&y).into()])[0]), [-3.0; 4]);
}

#[test]
fn nothing_inside_a_region_has_a_grad_fn() {
    let graph = compile(
        r#"graph @plain(%0: f32[2] "x") {
  %1: f32[2] = exp(%0)
  %2: f32[1,2] = unsqueeze(%1, 0)
  return %1, %2
}"#,
    );
    let x = Tensor::ones([2], (Kind::Float, Device::Cpu)).set_requires_grad(true);
    for y in run(&graph, &[(&x).into()]) {
        assert!(!y.requires_grad() && !cotangent_runtime::torch::has_grad_fn(&y));
    }
}

#[test]
fn a_write_to_an_input_raises_its_version() {
    let graph = compile(
        r#"graph @write(%0: f32[2] "x") {
  %1: f32[2] = add_scalar_(%0, 1)
  return
}"#,
    );
    let w = Tensor::ones([2], (Kind::Float, Device::Cpu)).set_requires_grad(true);
    let x = Tensor::ones([2], (Kind::Float, Device::Cpu));
    let loss = (&w * &x).sum(Kind::Float);
    run(&graph, &[(&x).into()]);
    assert_eq!(numbers(&x), [2.0, 2.0]);
    let error = loss.f_backward().expect_err("the saved tensor was modified");
    assert!(
        error.to_string().contains("modified by an inplace operation"),
        "{error}"
    );
}

/// `x + y`, then the product with `z`, as a run that may use up what `owners` say.
fn once(owners: &[Ownership]) -> CompiledGraph {
    let graph: Graph = r#"graph @once(%0: f32[2,2] "x", %1: f32[2,2] "y", %2: f32[2,2] "z") {
  %3: f32[2,2] = add(%0, %1)
  %4: f32[2,2] = mm(%3, %2)
  return %3, %4
}"#
    .parse()
    .expect("a graph");
    CompiledGraph::compile(&plan_once(&graph, Options::default(), owners)).expect("it lowers")
}

#[test]
fn a_run_that_may_use_up_an_input_writes_its_result_there() {
    let owners = [Ownership::Caller, Ownership::RunAlone, Ownership::Run];
    let (graph, float) = (once(&owners), (Kind::Float, Device::Cpu));
    let (x, y, z) = (
        Tensor::ones([2, 2], float),
        Tensor::ones([2, 2], float),
        Tensor::eye(2, float),
    );
    let place = y.data_ptr();
    let own = |t: Tensor| Given::Own(Output::Tensor(t));
    let made = graph.run_once([Given::Lent((&x).into()), own(y), own(z.shallow_clone())]);
    let made: Vec<Tensor> = made
        .expect("it runs")
        .into_iter()
        .filter_map(Output::into_tensor)
        .collect();
    assert_eq!((made[0].data_ptr(), numbers(&made[0])), (place, vec![2.0; 4]));
    assert_eq!(numbers(&made[1]), [2.0; 4]);
    assert_eq!(numbers(&z), [1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn a_run_that_fails_frees_what_it_was_given() {
    let owners = [Ownership::RunAlone, Ownership::RunAlone, Ownership::RunAlone];
    let (graph, float) = (once(&owners), (Kind::Float, Device::Cpu));
    let give = |shape: [i64; 2]| Given::Own(Output::Tensor(Tensor::ones(shape, float)));
    let (failed, storage) = cotangent_runtime::torch::measure_storage(|| {
        graph.run_once([give([2, 2]), give([2, 2]), give([3, 3])]).map(|_| ())
    });
    assert!(matches!(failed, Err(RunError::Kernel(e)) if e.op == "mm"));
    assert_eq!(storage.live, 0);
}

#[test]
fn arithmetic_with_a_constant_number_gives_every_bit_that_libtorch_gives() {
    let numbers = [
        "0.1",
        "0.3333333333333333",
        "3.0",
        "-0.0",
        "1e300",
        "1e-300",
        "inf",
        "nan",
        "7",
        "16777217",
        "9007199254740993",
    ];
    type Native = fn(&Tensor, tch::Scalar) -> Tensor;
    let ops: [(&str, Native); 4] = [
        ("add", |x, s| x.g_add_scalar(s)),
        ("sub", |x, s| x.g_sub_scalar(s)),
        ("mul", |x, s| x.g_mul_scalar(s)),
        ("div", |x, s| x.g_div_scalar(s)),
    ];
    let x = Tensor::from_slice(&[0.1, -0.0, 1e30, -3.5, f64::INFINITY, 1e-40]);
    for (name, kind) in [("f32", Kind::Float), ("f64", Kind::Double), ("bf16", Kind::BFloat16)] {
        for shape in [&[6i64][..], &[]] {
            let x = if shape.is_empty() { x.get(3) } else { x.copy() }.to_kind(kind);
            for ((op, native), number) in ops.iter().flat_map(|op| numbers.iter().map(move |n| (op, n))) {
                let sizes = if shape.is_empty() { "" } else { "6" };
                let graph = compile(&format!(
                    "graph @constant(%0: {name}[{sizes}] \"x\") {{\n  %1: {name}[{sizes}] = {op}_scalar(%0, {number})\n  return %1\n}}"
                ));
                let scalar = match number.parse::<i64>() {
                    Ok(i) => tch::Scalar::from(i),
                    Err(_) => tch::Scalar::from(number.parse::<f64>().expect("a number")),
                };
                let (ours, theirs) = (&run(&graph, &[(&x).into()])[0], native(&x, scalar));
                assert_eq!(ours.kind(), theirs.kind());
                let bits = |t: &Tensor| {
                    let t = t.reshape([-1]).to_kind(Kind::Double);
                    let values: Vec<f64> = Vec::try_from(t).expect("numbers");
                    values
                        .iter()
                        .map(|v| (v.is_nan(), if v.is_nan() { 0 } else { v.to_bits() }))
                        .collect::<Vec<_>>()
                };
                assert_eq!(bits(ours), bits(&theirs), "{name} {op} {number}");
            }
        }
    }
}
