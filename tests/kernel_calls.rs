//! Calls of kernels through their entry points: aliases, scratch memory, results that may be absent, tensors, rules.
//!
//! Needs the pass: `cargo cotangent test`.

use cotangent::{Differentiable, differentiable};
use cotangent_graph::artifact;
use cotangent_graph::program::Artifact;
use cotangent_runtime::engine::dispatch;
use std::sync::atomic::{AtomicUsize, Ordering};
use tch::Tensor;

#[differentiable]
fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

#[test]
fn aliased_slices_have_a_cotangent_each() {
    let x = [1.0, 2.0, 3.0];
    let g = dot::grad(&x, &x);
    assert_eq!((g.x, g.y), (x.to_vec(), x.to_vec()));
    let g = dot::grad(&x[..2], &x[1..]);
    assert_eq!((g.x, g.y), (vec![2.0, 3.0], vec![1.0, 2.0]));
}

#[test]
fn a_pullback_outlives_its_arguments_and_serves_any_thread() {
    let pullback = {
        let (x, y): (Box<[f64]>, Box<[f64]>) = (Box::new([1.0, 2.0]), Box::new([3.0, 4.0]));
        dot::vjp(&x, &y).1
    };
    std::thread::scope(|scope| {
        for seed in [1.0, -2.0] {
            let pullback = &pullback;
            scope.spawn(move || {
                for _ in 0..20 {
                    assert_eq!(pullback.call(seed).x, [3.0 * seed, 4.0 * seed]);
                }
            });
        }
    });
}

#[derive(Differentiable)]
struct Scratch {
    last: f64,
    all: Vec<f64>,
}

#[differentiable(wrt(x))]
fn through_scratch(x: f64, scratch: &mut Scratch) -> f64 {
    scratch.last = x * x;
    scratch.all.push(scratch.last * x);
    scratch.all[0] + scratch.last
}

#[test]
fn memory_that_nobody_asks_for_carries_derivatives() {
    let mut scratch = Scratch { last: 1.0, all: vec![] };
    assert_eq!(through_scratch::grad(2.0, &mut scratch).x, 12.0 + 4.0);
    assert_eq!((scratch.last, scratch.all), (4.0, vec![8.0]));
}

#[differentiable]
fn root(x: f64) -> Option<f64> {
    (x > 0.0).then(|| x.sqrt())
}

#[test]
fn what_is_absent_has_cotangents_of_zero() {
    assert_eq!(root::value_and_grad(4.0).1.x, 0.25);
    let (none, pullback) = root::vjp(-1.0);
    assert_eq!((none, pullback.call(1.0).x), (None, 0.0));
}

#[differentiable]
fn grown(v: &mut Vec<f64>, k: f64) -> Vec<f64> {
    for i in 0..10 {
        v.push(k * v[i]);
    }
    vec![k, v[3]]
}

#[test]
fn memory_that_the_call_makes_takes_seeds() {
    let mut v = vec![1.0];
    let (made, pullback) = grown::vjp(&mut v, 2.0);
    assert_eq!((made, v.len(), v[10]), (vec![2.0, 8.0], 11, 1024.0));
    for scale in [1.0, 3.0] {
        let mut last = vec![0.0; 11];
        last[2] = scale;
        // k + 10 k^3 v0, and k^2 v0
        let g = pullback.call(grown::Seed {
            ret: vec![scale, 10.0 * scale],
            v: last,
        });
        assert_eq!((g.v, g.k), (vec![84.0 * scale], (1.0 + 120.0 + 4.0) * scale));
    }
    assert!(
        pullback
            .try_call(grown::Seed {
                ret: vec![1.0],
                v: vec![]
            })
            .is_err()
    );
}

#[differentiable(wrt(x, k))]
fn scaled(x: &[f64], weights: &[f64], k: f64) -> Vec<f64> {
    x.iter().zip(weights).map(|(x, w)| k * w * x * x).collect()
}

#[test]
fn a_kernel_is_a_node_of_libtorchs_graph() {
    let x = Tensor::from_slice(&[1.0, 2.0]).set_requires_grad(true);
    let (w, k) = (
        Tensor::from_slice(&[1.0, 3.0]),
        Tensor::from(2.0).set_requires_grad(true),
    );
    let y = scaled::autograd(&(&x * 2.0), &w, &k);
    y.sum(tch::Kind::Double).backward();
    assert_eq!(Vec::<f64>::try_from(&x.grad()).ok(), Some(vec![16.0, 96.0]));
    assert_eq!(k.grad().double_value(&[]), 4.0 + 48.0);
    assert!(!scaled::autograd(&w, &w, 2.0).requires_grad());
    let error = scaled::try_autograd(&w, &x, 2.0).expect_err("not asked for");
    assert!(error.to_string().contains("`weights` requires grad"), "{error}");
}

#[differentiable(wrt(x))]
fn powers(x: f64, scale: f32, n: usize, negated: bool) -> (f64, Vec<f64>) {
    let sign = if negated { -1.0 } else { 1.0 };
    let all: Vec<f64> = (1..=n).map(|k| sign * f64::from(scale) * x.powi(k as i32)).collect();
    (all.iter().sum(), all)
}

#[test]
fn a_registered_kernel_is_an_operator_with_the_same_autograd() {
    scaled::register("cotangent_kernels").expect("the name is free");
    powers::register("cotangent_kernels").expect("numbers are numbers of a schema");
    let call = |x: &Tensor, w: &Tensor, k: &Tensor| dispatch("cotangent_kernels::scaled", &[x, w, k], 1);
    let x = Tensor::from_slice(&[1.0, 2.0]).set_requires_grad(true);
    let (w, k) = (
        Tensor::from_slice(&[1.0, 3.0]),
        Tensor::from(2.0).set_requires_grad(true),
    );
    let y = call(&(&x * 2.0), &w, &k).expect("it runs").remove(0);
    y.sum(tch::Kind::Double).backward();
    assert_eq!(Vec::<f64>::try_from(&x.grad()).ok(), Some(vec![16.0, 96.0]));
    assert_eq!(k.grad().double_value(&[]), 4.0 + 48.0);
    let unrecorded = tch::no_grad(|| call(&x, &w, &k)).expect("it runs");
    assert!(!unrecorded[0].requires_grad());
    let error = call(&x, &x, &k).expect_err("not asked for").to_string();
    assert!(error.contains("`weights` requires grad"), "{error}");
    let error = call(&w.to_kind(tch::Kind::Float), &w, &k)
        .expect_err("another kind")
        .to_string();
    assert!(error.contains("the kernel takes Double"), "{error}");
    let error = scaled::register("cotangent_kernels")
        .expect_err("the name is taken")
        .to_string();
    assert!(error.contains("cotangent_kernels::scaled"), "{error}");
}

/// What `cargo cotangent explain` reads: the artifact within this program.
fn artifact() -> Artifact {
    let program = std::env::current_exe()
        .and_then(std::fs::read)
        .expect("the program is a file");
    let starts = program.windows(8).enumerate().filter(|(_, mark)| *mark == b"cotangnt");
    let mut found = starts.filter_map(|(at, _)| artifact::decode(&program[at..]).ok());
    found.next().expect("the program was linked by `cargo cotangent`")
}

#[test]
fn the_artifact_tells_what_a_kernel_keeps_and_where_its_loops_stand_in_the_users_source() {
    let x = Tensor::from_slice(&[1.0]).set_requires_grad(true);
    _ = scaled::autograd(&x, &x.detach(), 1.0);
    let kernels = artifact().kernels;
    let kernel = kernels
        .iter()
        .find(|k| k.key.ends_with("::scaled"))
        .expect("it is a kernel");
    let tape = kernel
        .tapes
        .iter()
        .find(|t| t.function == kernel.key)
        .expect("its own frame");
    let line = include_str!("kernel_calls.rs")
        .lines()
        .position(|l| l.contains("k * w * x * x"));
    let line = line.map(|n| n as u32 + 1);
    assert!(
        tape.loops
            .iter()
            .any(|l| l.file.ends_with("kernel_calls.rs") && Some(l.line) == line),
        "{tape}"
    );
}

#[derive(Differentiable)]
struct Layer {
    weights: Vec<f64>,
    bias: f64,
}

#[differentiable]
fn rows(layer: &Layer, x: &[f64], bent: bool) -> f64 {
    let mut total = 0.0;
    for row in layer.weights.chunks_exact(x.len()) {
        let mut s = layer.bias;
        for (w, x) in row.iter().zip(x) {
            s += w * x * x;
        }
        total += if bent { s.tanh() } else { s };
    }
    total
}

#[test]
fn what_a_kernel_borrows_is_read_again_and_not_kept() {
    let layer = Layer {
        weights: vec![1.0, 2.0],
        bias: 0.5,
    };
    assert_eq!(rows::grad(&layer, &[1.0, -1.0], false).x, [2.0, -4.0]);
    let kernels = artifact().kernels;
    let kernel = kernels
        .iter()
        .find(|k| k.key.ends_with("::rows"))
        .expect("it is a kernel");
    let loops = kernel.tapes.iter().flat_map(|t| &t.loops);
    let innermost: Vec<u64> = loops.filter(|l| l.depth == 1).map(|l| l.bytes).collect();
    assert!(
        !innermost.is_empty() && innermost.iter().all(|bytes| *bytes == 0),
        "{:?}",
        kernel.tapes
    );
}

#[cotangent::custom_jvp(tangent = half_jvp)]
fn half(x: f64, n: usize) -> f64 {
    x * n as f64
}

fn half_jvp(x: f64, n: usize, x_dot: f64) -> (f64, f64) {
    (half(x, n), 0.5 * n as f64 * x_dot)
}

#[cotangent::custom_vjp(forward = twice_forward, backward = twice_backward, tangent = twice_jvp)]
fn twice(x: &[f64]) -> Vec<f64> {
    x.to_vec()
}

fn twice_forward(x: &[f64]) -> (Vec<f64>, f64) {
    (x.to_vec(), 2.0)
}

fn twice_backward(two: f64, seed: Vec<f64>) -> Vec<f64> {
    seed.iter().map(|s| two * s).collect()
}

fn twice_jvp(x: &[f64], x_dot: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    (x.to_vec(), twice_backward(2.0, x_dot))
}

#[differentiable]
fn with_tangent(x: f64) -> f64 {
    half(x * x, 3)
}

#[differentiable]
fn with_rule(x: &[f64]) -> f64 {
    twice(x).iter().map(|y| y * y).sum()
}

#[test]
fn rules_replace_derivatives() {
    assert_eq!(
        with_tangent::jvp(2.0, with_tangent::Tangents { x: 1.0 }),
        (12.0, 0.5 * 3.0 * 4.0)
    );
    assert_eq!(with_rule::grad(&[1.0, 3.0]).x, [4.0, 12.0]);
    let tangents = with_rule::Tangents { x: vec![1.0, 0.5] };
    assert_eq!(with_rule::jvp(&[1.0, 3.0], tangents).1, 4.0 + 6.0);
}

#[differentiable]
fn picky(x: &[f64], i: usize) -> f64 {
    x[i]
}

#[test]
fn a_panic_arrives_as_an_error_and_the_next_call_works() {
    let error = picky::try_grad(&[1.0], 3)
        .map(|g| g.x)
        .expect_err("there is no such element");
    assert!(error.to_string().contains("index out of bounds"), "{error}");
    assert_eq!(picky::grad(&[1.0, 2.0], 1).x, [0.0, 1.0]);
}

static CALLS: AtomicUsize = AtomicUsize::new(0);

#[differentiable]
fn counted(x: f64) -> f64 {
    CALLS.fetch_add(1, Ordering::Relaxed);
    x * x
}

#[test]
fn a_static_of_the_crate_is_the_one_that_the_program_has() {
    assert_eq!(counted::grad(3.0).x, 6.0);
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
}
