//! The MNIST step, stage by stage of the planner: what each improvement buys in time and memory.
//!
//!     cargo xtask bench mnist --json
//!
//! Each stage runs in a process of its own with the planner's switches set for it, and is timed there in turn with LibTorch's own autograd. Figures are medians; ratios are to native. With `--json` the last line
//! is one object, `{"full backward": ratio, …}`, and `"bytes"` with what a step allocates.

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

/// Name, switches of the planner, and whether only the parameters are selected.
const STAGES: [(&str, &str, bool); 5] = [
    ("full backward", "none", false),
    ("unselected inputs omitted", "none", true),
    ("accumulate in place", "accumulate", true),
    ("buffer reuse", "accumulate,in_place", true),
    ("early release", "accumulate,in_place,early_release", true),
];

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
        println!("{}", stage(args[i + 2] == "true", if small { 3 } else { 60 }));
        return;
    }
    let mut report = Map::new();
    let mut bytes = Map::new();
    for (name, switches, selected) in STAGES {
        let mut child = Command::new(std::env::current_exe().expect("this program has a path"));
        child.args(["--stage", switches, &selected.to_string()]);
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
            "{name:28} time {:.3} of native   allocated {:>9} B   peak {:>9} B (native {} B)",
            figures["ratio"].as_f64().unwrap_or(f64::NAN),
            figures["allocated"],
            figures["peak"],
            figures["native_peak"],
        );
        report.insert(name.into(), figures["ratio"].clone());
        bytes.insert(name.into(), figures);
    }
    if args.iter().any(|a| a == "--json") {
        report.insert("bytes".into(), Value::Object(bytes));
        println!("{}", Value::Object(report));
    }
}

/// Figures of one stage, in this process.
fn stage(selected: bool, rounds: usize) -> Value {
    tch::set_num_threads(1);
    tch::manual_seed(0);
    let random = |shape: &[i64]| Tensor::randn(shape, (Kind::Float, Device::Cpu)) * 0.05;
    let (x, y) = (random(&[128, 784]), random(&[128, 10]));
    let parameters = [random(&[784, 64]), random(&[64]), random(&[64, 10]), random(&[10])];
    let leaves = parameters.each_ref().map(|t| t.copy().set_requires_grad(true));
    let native = || {
        let [w1, b1, w2, b2] = &leaves;
        if selected {
            let value = loss(&x, &y, w1, b1, w2, b2);
            return Tensor::run_backward(&[&value], &[w1, b1, w2, b2], false, false);
        }
        let (x, y) = (x.detach().set_requires_grad(true), y.detach().set_requires_grad(true));
        let value = loss_of_all(&x, &y, w1, b1, w2, b2);
        Tensor::run_backward(&[&value], &[&x, &y, w1, b1, w2, b2], false, false)
    };
    let compiled = || {
        let [w1, b1, w2, b2] = &parameters;
        if selected {
            drop(loss::value_and_grad(&x, &y, w1, b1, w2, b2));
        } else {
            drop(loss_of_all::value_and_grad(&x, &y, w1, b1, w2, b2));
        }
    };
    drop(native());
    compiled();
    let time = |f: &dyn Fn()| {
        let start = Instant::now();
        (0..20).for_each(|_| f());
        start.elapsed().as_secs_f64()
    };
    let (mut a, mut b) = (vec![], vec![]);
    for _ in 0..rounds {
        a.push(time(&|| drop(native())));
        b.push(time(&compiled));
    }
    let storage = measure_storage(compiled).1;
    let native_storage = measure_storage(|| drop(native())).1;
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
