//! Derivatives where they do not exist, or not as differences see them: LibTorch's choices, as observed on 2.13.

use cotangent_graph::canonicalize::canonicalize;
use cotangent_graph::differentiate::{NoOracle, emit, vjp};
use cotangent_graph::interp::{Tensor, Value, run};
use cotangent_graph::ir::{Arg, Graph, Kind, Type};
use cotangent_graph::ops::Op;

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

/// An op, its tensors (values, one-dimensional), further arguments, and the expected cotangents for a seed of ones.
/// `None` is no cotangent at all.
struct Edge {
    op: &'static str,
    at: &'static str,
    tensors: &'static [&'static [f64]],
    rest: &'static [Rest],
    want: &'static [Option<&'static [f64]>],
}

enum Rest {
    Int(i64),
    Float(f64),
    Flag(bool),
    Ints(&'static [i64]),
    None,
}

const fn edge(
    op: &'static str,
    at: &'static str,
    tensors: &'static [&'static [f64]],
    rest: &'static [Rest],
    want: &'static [Option<&'static [f64]>],
) -> Edge {
    Edge {
        op,
        at,
        tensors,
        rest,
        want,
    }
}

use Rest::{Flag, Float, Int, Ints};

const EDGES: &[Edge] = &[
    edge(
        "relu",
        "zero_and_nan",
        &[&[0.0, -0.0, NAN]],
        &[],
        &[Some(&[0.0, 0.0, 1.0])],
    ),
    edge("leaky_relu", "zero", &[&[0.0]], &[], &[Some(&[0.01])]),
    edge("hardtanh", "bounds", &[&[-1.0, 1.0]], &[], &[Some(&[0.0, 0.0])]),
    edge("relu6", "bounds", &[&[0.0, 6.0]], &[], &[Some(&[0.0, 0.0])]),
    edge("hardswish", "bounds", &[&[-3.0, 3.0]], &[], &[Some(&[0.0, 1.0])]),
    edge(
        "clamp",
        "bounds_and_nan",
        &[&[-1.0, 1.0, NAN]],
        &[Int(-1), Int(1)],
        &[Some(&[1.0, 1.0, 0.0])],
    ),
    edge(
        "clamp_min_tensor",
        "tie",
        &[&[2.0], &[2.0]],
        &[],
        &[Some(&[1.0]), Some(&[0.0])],
    ),
    edge("abs", "zero", &[&[0.0]], &[], &[Some(&[0.0])]),
    edge("sqrt", "zero", &[&[0.0]], &[], &[Some(&[INF])]),
    edge("rsqrt", "zero", &[&[0.0]], &[], &[Some(&[-INF])]),
    edge("log", "zero_and_negative", &[&[0.0, -1.0]], &[], &[Some(&[INF, -1.0])]),
    edge(
        "pow_tensor_scalar",
        "half_at_zero",
        &[&[0.0]],
        &[Float(0.5)],
        &[Some(&[INF])],
    ),
    edge(
        "pow_tensor_scalar",
        "inverse_at_zero",
        &[&[0.0]],
        &[Int(-1)],
        &[Some(&[-INF])],
    ),
    edge(
        "pow_tensor_scalar",
        "to_the_zero",
        &[&[0.0, NAN]],
        &[Int(0)],
        &[Some(&[0.0, 0.0])],
    ),
    edge(
        "pow_tensor_scalar",
        "square_of_zero",
        &[&[0.0]],
        &[Int(2)],
        &[Some(&[0.0])],
    ),
    edge(
        "pow",
        "corners",
        &[&[0.0, 0.0, 0.0, -1.0], &[0.0, 1.0, 2.0, 2.0]],
        &[],
        &[Some(&[0.0, 1.0, 0.0, -2.0]), Some(&[0.0, 0.0, 0.0, NAN])],
    ),
    edge("norm", "zero_vector", &[&[0.0, 0.0]], &[], &[Some(&[0.0, 0.0])]),
    edge(
        "norm_scalaropt_dim",
        "maximum_tie",
        &[&[2.0, -2.0, 1.0]],
        &[Float(INF), Ints(&[0]), Flag(false)],
        &[Some(&[0.5, -0.5, 0.0])],
    ),
    edge(
        "norm_scalaropt_dim",
        "count",
        &[&[2.0, 0.0]],
        &[Int(0), Ints(&[0]), Flag(false)],
        &[None],
    ),
    edge("max", "tie", &[&[3.0, 1.0, 3.0]], &[], &[Some(&[0.5, 0.0, 0.5])]),
    edge(
        "amax",
        "tie",
        &[&[3.0, 1.0, 3.0]],
        &[Ints(&[0]), Flag(false)],
        &[Some(&[0.5, 0.0, 0.5])],
    ),
    edge(
        "amax",
        "nan",
        &[&[3.0, NAN]],
        &[Ints(&[0]), Flag(false)],
        &[Some(&[NAN, NAN])],
    ),
    edge("maximum", "tie", &[&[2.0], &[2.0]], &[], &[Some(&[0.5]), Some(&[0.5])]),
    edge(
        "max_dim",
        "tie",
        &[&[1.0, 3.0, 3.0]],
        &[Int(0), Flag(false)],
        &[Some(&[0.0, 1.0, 0.0])],
    ),
    edge("mean", "nothing", &[&[]], &[Rest::None], &[Some(&[])]),
    edge("std", "constant", &[&[2.0, 2.0]], &[Flag(true)], &[Some(&[0.0, 0.0])]),
    edge("std", "one_element", &[&[2.0]], &[Flag(true)], &[Some(&[NAN])]),
    edge("var", "one_element", &[&[2.0]], &[Flag(false)], &[Some(&[0.0])]),
    edge(
        "logsumexp",
        "infinite",
        &[&[INF, 0.0]],
        &[Ints(&[0]), Flag(false)],
        &[Some(&[NAN, 0.0])],
    ),
    edge("atan2", "origin", &[&[0.0], &[0.0]], &[], &[Some(&[0.0]), Some(&[0.0])]),
    edge("hypot", "origin", &[&[0.0], &[0.0]], &[], &[Some(&[NAN]), Some(&[NAN])]),
    edge("div", "by_zero", &[&[1.0], &[0.0]], &[], &[Some(&[INF]), Some(&[-INF])]),
    edge("asin", "one", &[&[1.0]], &[], &[Some(&[INF])]),
    edge(
        "mul",
        "zero_times_infinity",
        &[&[0.0], &[INF]],
        &[],
        &[Some(&[INF]), Some(&[0.0])],
    ),
    edge(
        "l1_loss",
        "kink",
        &[&[1.0], &[1.0]],
        &[Int(0)],
        &[Some(&[0.0]), Some(&[-0.0])],
    ),
    edge(
        "smooth_l1_loss",
        "joint",
        &[&[2.0], &[1.0]],
        &[Int(0), Float(1.0)],
        &[Some(&[1.0]), Some(&[-1.0])],
    ),
    edge(
        "dropout",
        "everything",
        &[&[1.0, NAN]],
        &[Float(1.0), Flag(true)],
        &[Some(&[0.0, 0.0])],
    ),
    edge(
        "dropout",
        "evaluation",
        &[&[1.0, 2.0]],
        &[Float(0.5), Flag(false)],
        &[Some(&[1.0, 1.0])],
    ),
];

/// One test per edge.
pub(crate) fn trials() -> Vec<libtest_mimic::Trial> {
    let trial = |e: &'static Edge| {
        libtest_mimic::Trial::test(format!("{}::edge_{}", e.op, e.at), move || check(e).map_err(Into::into))
    };
    EDGES.iter().map(trial).collect()
}

fn check(edge: &Edge) -> Result<(), String> {
    let mut graph = Graph::new(edge.op);
    let (mut args, mut inputs) = (vec![], vec![]);
    for (i, x) in edge.tensors.iter().enumerate() {
        let x = Tensor::from_f64(Kind::F64, &[x.len() as i64], x.to_vec());
        args.push(Arg::Value(graph.input(format!("x{i}"), Type::Tensor(Some(x.ty())))));
        inputs.push(Value::Tensor(x));
    }
    let wrt: Vec<_> = graph.inputs.iter().map(|i| i.value).collect();
    args.extend(edge.rest.iter().map(|r| match r {
        Rest::Int(i) => Arg::Int(*i),
        Rest::Float(x) => Arg::Float(*x),
        Rest::Flag(b) => Arg::Bool(*b),
        Rest::Ints(v) => Arg::ints(v),
        Rest::None => Arg::None,
    }));
    let results = emit(&mut graph, &NoOracle, Op::named(edge.op), args, None).map_err(|e| e.to_string())?;
    graph.outputs = results[..1].to_vec();
    canonicalize(&mut graph, &NoOracle).map_err(|(e, _)| e.to_string())?;
    let joint = vjp(&graph, &wrt, &[true], &NoOracle).map_err(|(e, _)| e.to_string())?;
    let y = graph.tensor(graph.outputs[0]);
    inputs.push(Tensor::full(Kind::F64, &y.shape, 1.0).into());
    let mut program = joint.graph.clone();
    program.outputs = joint.cotangents.iter().flatten().copied().collect();
    let mut bars = run(&program, &inputs).map_err(|e| e.to_string())?.into_iter();
    for (i, (bar, want)) in joint.cotangents.iter().zip(edge.want).enumerate() {
        let have = bar.and_then(|_| bars.next()).map(|v| crate::check::components(&v));
        let same = match (&have, want) {
            (Some(have), Some(want)) => {
                have.len() == want.len()
                    && have
                        .iter()
                        .zip(*want)
                        .all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
            }
            (None, None) => true,
            _ => false,
        };
        if !same {
            return Err(format!("cotangent {i} is {have:?}, LibTorch gives {want:?}"));
        }
    }
    Ok(())
}
