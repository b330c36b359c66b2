//! The MNIST step, stage by stage of the planner: what each improvement buys in time and memory. And a step of an
//! autoencoder whose only matrix is used twice, so that its cotangent is a sum.
//!
//!     cargo xtask bench mnist --json
//!
//! Each stage runs in a process of its own with the planner's switches set for it, and is timed there in turn with
//! LibTorch's own autograd. Figures are medians; ratios are to native. With `--json` the last line is one object,
//! `{"full backward": ratio, …}`, and `"bytes"` with what a step allocates.

use cotangent::{PlanOptions, differentiable, measure_storage, set_plan_options};
use serde_json::{Map, Value, json};
use std::process::Command;
use std::time::Instant;
use tch::{Device, Kind, Tensor};

#[differentiable(wrt(w1, b1, w2, b2))]
fn loss(x: &Tensor, y: &Tensor, w1: &Tensor, b1: &Tensor, w2: &Tensor, b2: &Tensor) -> Tensor {
    let h = (x.matmul(w1) + b1).relu();
    let d = h.matmul(w2) + b2 - y;
    (&d * &d).sum(Kind::Float) / (2.0 * x.size()[0] as f64)
}

/// The same with the images and labels selected too.
#[differentiable]
fn loss_of_all(x: &Tensor, y: &Tensor, w1: &Tensor, b1: &Tensor, w2: &Tensor, b2: &Tensor) -> Tensor {
    loss(x, y, w1, b1, w2, b2)
}

/// An autoencoder: `w` encodes, and its transpose decodes.
#[differentiable(wrt(w))]
fn tied(x: &Tensor, w: &Tensor) -> Tensor {
    let d = x.matmul(w).relu().matmul(&w.tr()) - x;
    (&d * &d).sum(Kind::Float) / (2.0 * x.size()[0] as f64)
}

/// The same with the input selected too.
#[differentiable]
fn tied_of_all(x: &Tensor, w: &Tensor) -> Tensor {
    tied(x, w)
}

/// Name, switches of the planner, and whether only the parameters are selected.
const STAGES: [(&str, &str, bool); 5] = [
    ("full backward", "none", false),
    ("unselected inputs omitted", "none", true),
    ("accumulate in place", "accumulate", true),
    ("buffer reuse", "accumulate,in_place", true),
    ("early release", "accumulate,in_place,early_release", true),
];

/// What is measured, and how its stages are called in the report.
const WORKLOADS: [(&str, &str); 2] = [("mnist", ""), ("tied", "used twice: ")];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    // `cargo test` runs benches to see that they work: without `--bench`.
    let small = !args.iter().any(|a| a == "--bench");
    if let Some(i) = args.iter().position(|a| a == "--stage") {
        let on = |switch: &str| args[i + 1].split(',').any(|s| s == switch);
        set_plan_options(PlanOptions {
            in_place: on("in_place"),
            accumulate: on("accumulate"),
            early_release: on("early_release"),
        });
        println!(
            "{}",
            stage(&args[i + 3], args[i + 2] == "true", if small { 3 } else { 60 })
        );
        return;
    }
    let mut report = Map::new();
    let mut bytes = Map::new();
    let workloads = WORKLOADS.iter().flat_map(|w| STAGES.iter().map(move |s| (w, s)));
    for ((workload, prefix), (stage, switches, selected)) in workloads {
        let name = format!("{prefix}{stage}");
        let mut child = Command::new(std::env::current_exe().expect("this program has a path"));
        child.args(["--stage", switches, &selected.to_string(), workload]);
        if !small {
            child.arg("--bench");
        }
        let output = child.output().expect("this program can run itself");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().last().unwrap_or_default();
        let figures: Value = serde_json::from_str(line).unwrap_or_else(|e| {
            panic!(
                "stage `{name}` gave no figures ({e}): {}",
                String::from_utf8_lossy(&output.stderr)
            )
        });
        println!(
            "{name:38} time {:.3} of native   allocated {:>9} B   peak {:>9} B (native {} B)",
            figures["ratio"].as_f64().unwrap_or(f64::NAN),
            figures["allocated"],
            figures["peak"],
            figures["native_peak"],
        );
        report.insert(name.clone(), figures["ratio"].clone());
        bytes.insert(name, figures);
    }
    if args.iter().any(|a| a == "--json") {
        report.insert("bytes".into(), Value::Object(bytes));
        println!("{}", Value::Object(report));
    }
}

/// Figures of one stage, in this process.
fn stage(workload: &str, selected: bool, rounds: usize) -> Value {
    tch::set_num_threads(1);
    tch::manual_seed(0);
    let random = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu)) * 0.05;
    let x = random(&[128, 784]);
    if workload == "tied" {
        let w = random(&[784, 64]);
        return match selected {
            true => figures(
                rounds,
                &[&w],
                |p| tied(&x, &p[0]),
                || drop(tied::value_and_grad(&x, &w)),
            ),
            false => figures(
                rounds,
                &[&x, &w],
                |p| tied(&p[0], &p[1]),
                || drop(tied_of_all::value_and_grad(&x, &w)),
            ),
        };
    }
    let y = random(&[128, 10]);
    let [w1, b1, w2, b2] = [random(&[784, 64]), random(&[64]), random(&[64, 10]), random(&[10])];
    match selected {
        true => figures(
            rounds,
            &[&w1, &b1, &w2, &b2],
            |p| loss(&x, &y, &p[0], &p[1], &p[2], &p[3]),
            || drop(loss::value_and_grad(&x, &y, &w1, &b1, &w2, &b2)),
        ),
        false => figures(
            rounds,
            &[&x, &y, &w1, &b1, &w2, &b2],
            |p| loss(&p[0], &p[1], &p[2], &p[3], &p[4], &p[5]),
            || drop(loss_of_all::value_and_grad(&x, &y, &w1, &b1, &w2, &b2)),
        ),
    }
}

/// Time and storage of a compiled step and of the native one, which takes gradients of `leaves`.
fn figures(rounds: usize, leaves: &[&Tensor], native: impl Fn(&[Tensor]) -> Tensor, compiled: impl Fn()) -> Value {
    let leaves: Vec<Tensor> = leaves.iter().map(|t| t.copy().set_requires_grad(true)).collect();
    let native = || drop(Tensor::run_backward(&[native(&leaves)], &leaves, false, false));
    native();
    compiled();
    let time = |f: &dyn Fn()| {
        let start = Instant::now();
        (0..20).for_each(|_| f());
        start.elapsed().as_secs_f64()
    };
    let (mut a, mut b) = (vec![], vec![]);
    for _ in 0..rounds {
        a.push(time(&native));
        b.push(time(&compiled));
    }
    let storage = measure_storage(compiled).1;
    let native_storage = measure_storage(native).1;
    json!({
        "ratio": median(b) / median(a),
        "allocated": storage.allocated,
        "peak": storage.peak,
        "native_allocated": native_storage.allocated,
        "native_peak": native_storage.peak,
    })
}

fn median(mut v: Vec<f64>) -> f64 {
    v.sort_by(f64::total_cmp);
    v[v.len() / 2]
}
