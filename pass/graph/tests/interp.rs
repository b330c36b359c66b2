//! The reference interpreter: LibTorch's conventions that every test of the crate leans on.

use cotangent_graph::interp::{EvalArg, InterpError, Tensor, Value, eval_op, run, supports};
use cotangent_graph::ir::{Arg, Graph, Kind, Type};
use cotangent_graph::ops::Op;

fn tensor(kind: Kind, shape: &[i64], values: &[f64]) -> EvalArg {
    EvalArg::Tensor(Tensor::from_f64(kind, shape, values.to_vec()))
}

fn eval(op: &str, args: &[EvalArg]) -> Tensor {
    match eval_op(Op::named(op), args).expect("the op runs").remove(0) {
        Value::Tensor(t) => t,
        other => panic!("{other:?} is not a tensor"),
    }
}

fn kind_of(op: &str, x: EvalArg, y: EvalArg) -> Kind {
    eval(op, &[x, y]).kind()
}

#[test]
fn every_op_with_a_rule_of_ours_is_interpreted() {
    let mut missing: Vec<&str> = Op::all()
        .filter(|op| op.own.is_some() && !op.facts.random && !supports(*op))
        .map(|op| op.name)
        .collect();
    missing.sort_unstable();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn tensors_with_dimensions_decide_the_kind() {
    let vector = |kind| tensor(kind, &[2], &[1.0, 2.0]);
    let scalar = |kind| tensor(kind, &[], &[1.0]);
    assert_eq!(kind_of("mul", vector(Kind::F32), scalar(Kind::F64)), Kind::F32);
    assert_eq!(kind_of("mul", vector(Kind::F32), vector(Kind::F64)), Kind::F64);
    assert_eq!(kind_of("mul", vector(Kind::I64), scalar(Kind::F64)), Kind::F64);
    assert_eq!(kind_of("add", vector(Kind::F16), vector(Kind::BF16)), Kind::F32);
    assert_eq!(kind_of("add", vector(Kind::U8), vector(Kind::I8)), Kind::I16);
    assert_eq!(kind_of("add", vector(Kind::Bool), vector(Kind::Bool)), Kind::Bool);
}

#[test]
fn numbers_raise_the_category_but_not_the_width() {
    let vector = |kind| tensor(kind, &[2], &[1.0, 2.0]);
    assert_eq!(kind_of("add_scalar", vector(Kind::I64), EvalArg::Float(0.5)), Kind::F32);
    assert_eq!(kind_of("add_scalar", vector(Kind::F16), EvalArg::Float(0.5)), Kind::F16);
    assert_eq!(kind_of("add_scalar", vector(Kind::I32), EvalArg::Int(1)), Kind::I32);
    assert_eq!(kind_of("add_scalar", vector(Kind::Bool), EvalArg::Int(1)), Kind::I64);
    assert_eq!(kind_of("div_scalar", vector(Kind::I64), EvalArg::Int(2)), Kind::F32);
}

#[test]
fn results_are_rounded_to_their_kind() {
    let x = tensor(Kind::F32, &[1], &[16_777_216.0]);
    assert_eq!(eval("add_scalar", &[x, EvalArg::Float(1.0)]).to_f64(), [16_777_216.0]);
    let big = tensor(Kind::F16, &[1], &[60_000.0]);
    assert_eq!(eval("add", &[big.clone(), big]).to_f64(), [f64::INFINITY]);
    let byte = tensor(Kind::U8, &[1], &[250.0]);
    assert_eq!(eval("add_scalar", &[byte, EvalArg::Int(10)]).to_i64(), [4]);
}

#[test]
fn kinks_follow_libtorch() {
    let x = tensor(Kind::F64, &[4], &[0.0, -0.0, f64::NAN, -1.0]);
    let ones = tensor(Kind::F64, &[4], &[1.0; 4]);
    let y = eval("relu", std::slice::from_ref(&x)).to_f64();
    assert!(y[0] == 0.0 && y[1] == 0.0 && y[2].is_nan() && y[3] == 0.0);
    let slopes = eval("threshold_backward", &[ones, x, EvalArg::Int(0)]);
    assert_eq!(slopes.to_f64(), [0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn a_mean_of_nothing_is_nan_and_a_sum_zero() {
    let x = tensor(Kind::F64, &[0], &[]);
    assert!(eval("mean", &[x.clone(), EvalArg::None]).to_f64()[0].is_nan());
    assert_eq!(eval("sum", &[x, EvalArg::None]).to_f64(), [0.0]);
}

#[test]
fn an_in_place_op_keeps_the_kind_of_its_target() {
    let x = tensor(Kind::F32, &[1], &[1.5]);
    let y = tensor(Kind::F64, &[1], &[0.1]);
    assert_eq!(kind_of("add_", x, y), Kind::F32);
    let integer = tensor(Kind::I64, &[1], &[1.0]);
    let refused = eval_op(Op::named("add_scalar_"), &[integer, EvalArg::Float(0.5)]);
    assert!(matches!(refused, Err(InterpError::Invalid(_))));
}

#[test]
fn an_op_that_the_interpreter_lacks_is_named() {
    let refused = eval_op(Op::named("fft_rfft"), &[]);
    assert_eq!(refused, Err(InterpError::NotInterpreted("fft_rfft".to_string())));
}

#[test]
fn a_graph_whose_types_are_wrong_does_not_run() {
    let mut graph = Graph::new("wrong");
    let x = graph.input("x", Type::tensor(Kind::F64, [2]));
    let y = graph.push(
        Op::named("exp"),
        vec![x.into()],
        vec![Type::tensor(Kind::F64, [3])],
        None,
    );
    graph.outputs = y;
    let x = Value::Tensor(Tensor::full(Kind::F64, &[2], 0.0));
    assert!(matches!(run(&graph, &[x]), Err(InterpError::Invalid(_))));
}

#[test]
fn scalars_of_a_graph_have_their_width() {
    let mut graph = Graph::new("scalars");
    let x = graph.input("x", Type::Int(32));
    let sum = graph.push(
        Op::named("scalar.add"),
        vec![x.into(), Arg::Int(1)],
        vec![Type::Int(32)],
        None,
    )[0];
    let is_less = vec![Arg::Str("slt".into()), sum.into(), x.into()];
    let less = graph.push(Op::named("scalar.icmp"), is_less, vec![Type::Int(1)], None)[0];
    graph.outputs = vec![sum, less];
    let got = run(&graph, &[Value::Int(i64::from(i32::MAX))]);
    assert_eq!(got, Ok(vec![Value::Int(i64::from(i32::MIN)), Value::Int(1)]));
}
