//! Time per compiler stage against the size of the graph.
//!
//!     cargo xtask bench stages
//!
//! The graph is a chain of layers (product, bias, activation, scaling) that ends in a sum, raised from a function of
//! three tensors, differentiated for all three. A stage whose time per op grows with the graph is a mistake of ours.
#![allow(missing_docs, reason = "Criterion's macros write functions without documentation")]

use cotangent_graph::canonicalize::canonicalize;
use cotangent_graph::differentiate::{NoOracle, vjp};
use cotangent_graph::functionalize::functionalize;
use cotangent_graph::ir::{Arg, Graph, Kind, TensorType, Type, Value};
use cotangent_graph::ops::Op;
use cotangent_graph::partition::{Policy, partition};
use cotangent_graph::plan::{Options, plan};
use cotangent_graph::program::{Base, Datum, How, Image, Leaf, Program, Tree, Write};
use cotangent_graph::simplify;
use cotangent_graph::specialize::{Host, Outcome, Specialized, TensorFacts, specialize};
use cotangent_runtime::lower::lower;
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Ops of a layer.
const LAYER: usize = 4;

/// A program whose only path has about `ops` ops.
fn program(ops: usize) -> Program {
    let mut g = Graph::new("chain");
    let [x, w, b] = [0, 1, 2].map(|i| {
        let place = push(&mut g, "host.arg", vec![Arg::Int(i)], Type::Ptr);
        let handle = push(&mut g, "host.load", vec![place.into(), Arg::Int(0)], Type::Ptr);
        push(&mut g, "host.tensor", vec![handle.into()], Type::Tensor(None))
    });
    let mut h = x;
    for _ in 0..ops.div_ceil(LAYER) {
        let mut op = |name, args| push(&mut g, name, args, Type::Tensor(None));
        let product = op("matmul", vec![h.into(), w.into()]);
        let sum = op("add", vec![product.into(), b.into()]);
        let active = op("tanh", vec![sum.into()]);
        h = op("mul_scalar", vec![active.into(), Arg::Float(0.5)]);
    }
    let total = push(&mut g, "sum", vec![h.into()], Type::Tensor(None));
    g.outputs = vec![total];
    let result = Write {
        base: Base::Out,
        offset: 0,
        datum: Datum::Tensor(0),
        how: How::Store,
    };
    Program {
        key: "chain".into(),
        description: String::new(),
        shim: String::new(),
        tree: Tree::Leaf(0),
        unlowered: vec![],
        leaves: vec![Leaf {
            graph: g,
            image: Image {
                writes: vec![result],
                ..Image::default()
            },
        }],
    }
}

fn push(g: &mut Graph, name: &str, mut args: Vec<Arg>, ty: Type) -> Value {
    let op = Op::named(name);
    args.resize(op.params.len(), Arg::None);
    g.push(op, args, vec![ty], None)[0]
}

/// A host in whose memory every word is its own address: argument `i` is the tensor of handle `i + 1`.
struct Stand;

impl Stand {
    fn facts(handle: u64) -> TensorFacts {
        let shape: &[i64] = if handle == 3 { &[16] } else { &[16, 16] };
        TensorFacts::contiguous(TensorType::new(Kind::F32, shape), handle)
    }
}

impl Host for Stand {
    fn global(&self, _: &str) -> Option<u64> {
        None
    }
    fn argument(&self, index: usize) -> u64 {
        index as u64 + 1
    }
    fn load(&self, address: u64, _: u8) -> u64 {
        address
    }
    fn tensor(&self, handle: u64) -> Result<Option<TensorFacts>, String> {
        Ok(Some(Self::facts(handle)))
    }
    fn matches(&self, handle: u64, ty: &TensorType, device: i32) -> bool {
        let facts = Self::facts(handle);
        facts.ty == *ty && facts.device == device
    }
    fn defined(&self, _: u64) -> bool {
        true
    }
    fn requires_grad(&self, _: u64) -> bool {
        false
    }
    fn has_strides(&self, handle: u64, strides: &[i64]) -> bool {
        Self::facts(handle).strides == strides
    }
    fn identity(&self, handle: u64) -> u64 {
        handle
    }
    fn storage(&self, handle: u64) -> u64 {
        handle
    }
}

fn specialized(program: &Program) -> Specialized {
    match specialize(program, &Stand, &NoOracle) {
        Ok(Outcome::Closed(closed)) => *closed,
        other => panic!("{other:?}"),
    }
}

fn stages(c: &mut Criterion) {
    // `cargo test` runs benches to see that they work: without `--bench`.
    let small = !std::env::args().any(|a| a == "--bench");
    let sizes: &[usize] = if small { &[10, 100] } else { &[10, 100, 1_000, 10_000] };
    let mut group = c.benchmark_group("stages");
    group.sample_size(10);
    for &size in sizes {
        let program = program(size);
        let closed = specialized(&program);
        let wrt: Vec<Value> = closed.inputs.iter().map(|i| i.value).collect();
        let functional = || {
            let mut closed = closed.clone();
            functionalize(&mut closed, &wrt, &NoOracle).expect("nothing is written to");
            closed.graph
        };
        let canonical = || {
            let mut graph = functional();
            canonicalize(&mut graph, &NoOracle).expect("every op has its shape rule");
            graph
        };
        let graph = canonical();
        let joint = vjp(&graph, &wrt, &[true], &NoOracle).expect("every op has its rule");
        let mut simple = joint.clone();
        simplify::joint(&mut simple);
        let split = partition(&simple, Policy::SaveReads);
        let planned = plan(&split.backward, Options::default());

        group.throughput(Throughput::Elements(graph.insts.len() as u64));
        let id = |stage: &str| BenchmarkId::new(stage, size);
        group.bench_function(id("1 specialize"), |b| b.iter(|| specialized(&program)));
        group.bench_function(id("2 functionalize"), |b| {
            let run = |mut s: Specialized| functionalize(&mut s, &wrt, &NoOracle).map(|e| (s, e));
            b.iter_batched(|| closed.clone(), run, BatchSize::LargeInput);
        });
        group.bench_function(id("3 canonicalize"), |b| {
            let run = |mut g: Graph| canonicalize(&mut g, &NoOracle).map(|()| g);
            b.iter_batched(functional, run, BatchSize::LargeInput);
        });
        group.bench_function(id("4 differentiate"), |b| {
            b.iter(|| vjp(&graph, &wrt, &[true], &NoOracle));
        });
        group.bench_function(id("5 simplify"), |b| {
            let run = |mut joint| {
                simplify::joint(&mut joint);
                joint
            };
            b.iter_batched(|| joint.clone(), run, BatchSize::LargeInput);
        });
        group.bench_function(id("6 partition"), |b| b.iter(|| partition(&simple, Policy::SaveReads)));
        group.bench_function(id("7 plan"), |b| b.iter(|| plan(&split.backward, Options::default())));
        group.bench_function(id("8 lower to text"), |b| b.iter(|| lower(&planned)));
    }
    group.finish();
}

criterion_group!(benches, stages);
criterion_main!(benches);
