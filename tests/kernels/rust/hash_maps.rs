//! Shape: hash maps and sets: sums by group, values by name, what was seen before.
//! Hard: keys are hashed by words and bytes of memory that could be floats, tables are searched sixteen bytes at a time, and
//! grow while floats are in them.
use cotangent::differentiable;
use std::collections::{HashMap, HashSet};

/// Relative tolerance. CASE_RTOL loosens it for a finite-difference reference run.
fn rtol() -> f64 {
    std::env::var("CASE_RTOL")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1e-9)
}

#[track_caller]
fn close_all(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!(
            (g - w).abs() <= rtol() * w.abs().max(1.0),
            "element {i}: got {g:?}, want {w:?}"
        );
    }
}

#[differentiable]
fn grouped(x: &[f64], n: usize) -> f64 {
    let mut sums: HashMap<usize, f64> = HashMap::new();
    for (i, v) in x.iter().enumerate() {
        *sums.entry(i % n).or_insert(0.0) += v * v;
    }
    (0..n).map(|k| sums[&k] * (k + 1) as f64).sum()
}

#[differentiable]
fn by_name(x: &[f64]) -> f64 {
    let mut values: HashMap<String, f64> = HashMap::new();
    for (i, v) in x.iter().enumerate() {
        values.insert(format!("k{i}"), v * v * v);
    }
    values.remove("k2");
    values["k0"] * values["k1"] + values.get("k2").copied().unwrap_or(x[2] * 3.0)
}

#[differentiable]
fn first_of_each(x: &[f64], keys: &[u8]) -> f64 {
    let mut seen = HashSet::new();
    let new = x.iter().zip(keys).filter(|(_, key)| seen.insert(**key));
    new.map(|(v, key)| v * v * f64::from(*key)).sum()
}

#[test]
fn sums_by_group_as_the_table_grows() {
    let x: Vec<f64> = (0..50).map(|i| 0.1 * i as f64 - 2.0).collect();
    let want: Vec<f64> = (0..50).map(|i| 2.0 * x[i] * (i % 20 + 1) as f64).collect();
    close_all(&grouped::grad(&x, 20).x, &want);
}

#[test]
fn values_by_name() {
    let (a, b) = (0.7f64, -1.2f64);
    let want = [3.0 * a * a * b.powi(3), 3.0 * b * b * a.powi(3), 3.0];
    close_all(&by_name::grad(&[a, b, 0.4]).x, &want);
}

#[test]
fn only_the_first_of_each_key_counts() {
    let g = first_of_each::grad(&[1.0, 2.0, 3.0, 4.0], &[7, 5, 7, 1]);
    close_all(&g.x, &[14.0, 20.0, 0.0, 8.0]);
}
