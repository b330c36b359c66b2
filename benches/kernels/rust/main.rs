//! Gradients of kernels in Rust against the kernels themselves: in one process, one thread, interleaved; medians of the
//! processor's time. The same kernels as those in C++ in `../c`.
//!
//! `cargo xtask bench kernels` runs both. By itself this program takes names of workloads and `--json`, with which one
//! object goes to the standard output: the seconds of each workload's primal, gradient, and gradient by hand. The table
//! goes to the standard error. Every gradient is compared with one written by hand first. Without Cargo's `--bench` (in
//! tests) and with `--small` the sizes are small.

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
mod random;

use measure::{check, measured};

/// A function to differentiate, on arguments of its own.
struct Workload {
    /// The function.
    primal: Box<dyn FnMut() -> f64>,
    /// Its gradient.
    gradient: Box<Gradient>,
    /// The gradient written by hand.
    by_hand: Box<Gradient>,
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
    let is_given = |word: &str| arguments.iter().any(|a| a == word);
    let size = match is_given("--bench") && !is_given("--small") {
        true => Size::Full,
        false => Size::Small,
    };
    let names: Vec<&String> = arguments.iter().filter(|a| !a.starts_with('-')).collect();
    eprintln!(
        "{:<8}{:>12}{:>12}{:>12}{:>8}{:>9}",
        "Rust", "primal ms", "gradient", "by hand", "ratio", "by hand"
    );
    let mut found = vec![];
    for (name, make) in WORKLOADS {
        if !names.is_empty() && !names.iter().any(|n| *n == name) {
            continue;
        }
        let mut workload = make(size);
        check(name, &mut workload);
        let [primal, gradient, by_hand] = measured(&mut workload, size);
        eprintln!(
            "{name:<8}{:>12.3}{:>12.3}{:>12.3}{:>8.2}{:>9.2}",
            1e3 * primal,
            1e3 * gradient,
            1e3 * by_hand,
            gradient / primal,
            by_hand / primal
        );
        found.push(format!("\"{name}\": [{primal:e}, {gradient:e}, {by_hand:e}]"));
    }
    if is_given("--json") {
        println!("{{{}}}", found.join(", "));
    }
}
