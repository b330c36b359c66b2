//! Gradients of kernels against the kernels themselves, in one process, single thread, interleaved; and the kernels
//! against the same in C++ (`peers.cc`, if `clang++-22` is there).
//!
//! `cargo xtask bench kernels [--json] [NAME..]`: with `--json` one object goes to the standard output, the ratio of each
//! workload by its name; the table goes to the standard error. Without Cargo's `--bench` (in tests) the sizes are small.

#![allow(
    clippy::needless_range_loop,
    reason = "loops over several arrays at once are written as the mathematics is"
)]

mod ba;
mod det;
mod gmm;
mod ht;
mod kmeans;
mod llsq;
mod lse;
mod lstm;
mod measure;
mod ode;
mod peers;
mod random;

use measure::measured;
use std::collections::BTreeMap;

/// A function to differentiate.
struct Workload {
    name: &'static str,
    /// The function.
    primal: Box<dyn FnMut() -> f64>,
    /// Its gradient, one vector per parameter.
    gradient: Box<Gradient>,
    /// The gradient written by hand.
    by_hand: Option<Box<Gradient>>,
    /// Arithmetic of the primal, in operations.
    operations: f64,
    /// What the gradient reads and writes at least, in bytes.
    bytes: f64,
}

/// One vector per parameter.
type Gradient = dyn FnMut() -> Vec<Vec<f64>>;

/// How large workloads are.
#[derive(Clone, Copy, PartialEq)]
enum Size {
    Small,
    Full,
}

impl Size {
    fn pick<T>(self, small: T, full: T) -> T {
        match self {
            Size::Small => small,
            Size::Full => full,
        }
    }
}

type Make = fn(Size) -> Workload;

const WORKLOADS: [(&str, Make); 9] = [
    ("gmm", gmm::workload),
    ("ba", ba::workload),
    ("lse", lse::workload),
    ("llsq", llsq::workload),
    ("ode", ode::workload),
    ("det", det::workload),
    ("lstm", lstm::workload),
    ("kmeans", kmeans::workload),
    ("ht", ht::workload),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |word: &str| arguments.iter().any(|a| a == word);
    let size = if given("--bench") { Size::Full } else { Size::Small };
    let names: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    let peers = if size == Size::Full {
        peers::times()
    } else {
        BTreeMap::new()
    };
    eprintln!(
        "{:<8}{:>12}{:>12}{:>12}{:>8}{:>9}{:>12}{:>9}{:>9}",
        "", "primal", "gradient", "by hand", "ratio", "by hand", "C++ primal", "GFLOP/s", "GB/s"
    );
    let mut ratios = serde_json::Map::new();
    for (name, make) in WORKLOADS {
        if !names.is_empty() && !names.contains(&&name.to_owned()) {
            continue;
        }
        let mut workload = make(size);
        check(&mut workload);
        let times = measured(&mut workload, size);
        let ratio = times.gradient / times.primal;
        let milliseconds = |time: Option<f64>| time.map_or("–".to_owned(), |t| format!("{:.3} ms", 1e3 * t));
        eprintln!(
            "{:<8}{:>12}{:>12}{:>12}{:>8.2}{:>9}{:>12}{:>9.2}{:>9.2}",
            name,
            milliseconds(Some(times.primal)),
            milliseconds(Some(times.gradient)),
            milliseconds(times.by_hand),
            ratio,
            times
                .by_hand
                .map_or("–".to_owned(), |by_hand| format!("{:.2}", by_hand / times.primal)),
            milliseconds(peers.get(name).copied()),
            1e-9 * workload.operations / times.primal,
            1e-9 * workload.bytes / times.gradient,
        );
        ratios.insert(name.to_owned(), ratio.into());
    }
    if given("--json") {
        println!("{}", serde_json::Value::Object(ratios));
    }
}

/// The gradient is that by hand.
fn check(workload: &mut Workload) {
    let gradient = (workload.gradient)();
    let Some(by_hand) = &mut workload.by_hand else { return };
    let by_hand = by_hand();
    assert_eq!(
        gradient.len(),
        by_hand.len(),
        "{}: one vector per parameter",
        workload.name
    );
    for (parameter, (found, wanted)) in gradient.iter().zip(&by_hand).enumerate() {
        assert_eq!(found.len(), wanted.len(), "{}: parameter {parameter}", workload.name);
        let largest = wanted.iter().fold(1e-30f64, |m, w| m.max(w.abs()));
        for (i, (f, w)) in found.iter().zip(wanted).enumerate() {
            let name = workload.name;
            assert!(
                (f - w).abs() <= 1e-9 * largest,
                "{name}: parameter {parameter}, element {i}: {f} is not {w}"
            );
        }
    }
}
