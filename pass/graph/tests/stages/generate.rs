//! Random graphs: a recipe of choices, each of which appends an op if its shape rule allows it.

use cotangent_graph::differentiate::{NoOracle, emit};
use cotangent_graph::interp::{Tensor, Value};
use cotangent_graph::ir::{self, Arg, Graph, Kind, Type};
use cotangent_graph::ops::Op;
use proptest::prelude::*;

/// What a graph is made of: per instruction the op and which values it takes, then which values are outputs.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    steps: Vec<(usize, usize, usize)>,
    outputs: Vec<usize>,
    /// Chooses the numbers that the graph is run on.
    pub(crate) seed: u64,
}

pub(crate) fn recipe() -> impl Strategy<Value = Recipe> {
    let step = (0..OPS.len(), 0..1000usize, 0..1000usize);
    let parts = (
        proptest::collection::vec(step, 1..25),
        proptest::collection::vec(0..1000usize, 1..4),
        any::<u64>(),
    );
    parts.prop_map(|(steps, outputs, seed)| Recipe { steps, outputs, seed })
}

type Arguments = fn(Arg, Arg, &[i64]) -> Vec<Arg>;

/// Ops, with the arguments that they get: two values, and the shape of the first.
const OPS: &[(&str, Arguments)] = &[
    ("add", |x, y, _| vec![x, y]),
    ("sub", |x, y, _| vec![x, y]),
    ("mul", |x, y, _| vec![x, y]),
    ("mm", |x, y, _| vec![x, y]),
    ("matmul", |x, y, _| vec![x, y]),
    ("add", |x, y, _| vec![y, x]),
    ("mm", |x, y, _| vec![y, x]),
    ("relu", |x, _, _| vec![x]),
    ("tanh", |x, _, _| vec![x]),
    ("sigmoid", |x, _, _| vec![x]),
    ("neg", |x, _, _| vec![x]),
    ("t", |x, _, _| vec![x]),
    ("mul_scalar", |x, _, _| vec![x, Arg::Float(0.5)]),
    ("mul_scalar", |x, _, _| vec![x, Arg::Float(1.0)]),
    ("sub_scalar", |x, _, _| vec![x, Arg::Int(0)]),
    ("sum", |x, _, _| vec![x, Arg::None]),
    ("sum_dim_intlist", |x, _, _| {
        vec![x, Arg::ints(&[0]), Arg::Bool(false), Arg::None]
    }),
    ("expand", |x, _, _| vec![x, Arg::ints(&[3, 3]), Arg::Bool(false)]),
    ("reshape", |x, _, s| vec![x, Arg::ints(&[s.iter().product()])]),
    ("reshape", |x, _, _| vec![x, Arg::ints(&[3, 3])]),
    ("unsqueeze", |x, _, _| vec![x, Arg::Int(0)]),
    ("select", |x, _, _| vec![x, Arg::Int(0), Arg::Int(1)]),
    ("ones_like", |x, _, _| vec![x]),
    ("zeros_like", |x, _, _| vec![x]),
    ("permute", |x, _, s| {
        vec![x, Arg::ints(&(0..s.len() as i64).rev().collect::<Vec<_>>())]
    }),
    ("cat", |x, y, _| match (x, y) {
        (Arg::Value(x), Arg::Value(y)) => vec![Arg::List(vec![Some(x), Some(y)]), Arg::Int(0)],
        _ => vec![],
    }),
];

pub(crate) fn build(recipe: &Recipe) -> Graph {
    let mut graph = Graph::new("random");
    for (name, shape) in [("a", vec![3, 3]), ("b", vec![3, 3]), ("c", vec![3]), ("d", vec![])] {
        graph.input(name, Type::tensor(Kind::F32, shape));
    }
    for (op, a, b) in &recipe.steps {
        // Half of the time one of the latest values, so that values die early and chains grow.
        let count = graph.value_count();
        let pick = |n: &usize| match n % 2 {
            0 => ir::Value((count - 1 - n / 2 % count.min(4)) as u32),
            _ => ir::Value((n / 2 % count) as u32),
        };
        let (x, y) = (pick(a), pick(b));
        let (name, arguments) = OPS[*op];
        let args = arguments(x.into(), y.into(), &graph.tensor(x).shape);
        // What the shape rule refuses is left out.
        let _ = emit(&mut graph, &NoOracle, Op::named(name), args, None);
    }
    let count = graph.value_count();
    graph.outputs = recipe
        .outputs
        .iter()
        .map(|n| ir::Value((count - 1 - n % count) as u32))
        .collect();
    graph
}

/// Numbers for every input of a graph.
pub(crate) fn inputs(graph: &Graph, seed: u64) -> Vec<Value> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Zeros of both signs and infinities are the values that careless rewrites get wrong.
        match state % 23 {
            0 => 0.0,
            1 => -0.0,
            2 => f64::INFINITY,
            n => (n as f64 - 12.0) / 8.0,
        }
    };
    let tensor = |i: &ir::Input| {
        let ty = graph.tensor(i.value);
        let numbers = (0..ty.numel()).map(|_| next()).collect();
        Value::Tensor(Tensor::from_f64(ty.kind, &ty.shape, numbers))
    };
    graph.inputs.iter().map(tensor).collect()
}
