//! Derivatives from a library of compiled code. Alone in its process: what it counts is the process's own.
#![cfg(feature = "jit")]

use cotangent::{compiled_hits, differentiable, load_compiled, materializations, save_compiled};
use std::process::Command;
use tch::{Device, Kind, Tensor};

/// The variable that makes this program the second process.
const SECOND: &str = "COTANGENT_TEST_LIBRARY";

#[differentiable(wrt(w))]
fn loss(x: &Tensor, w: &Tensor, scale: f64) -> Tensor {
    (x.matmul(w).tanh() * scale.exp()).mean(Kind::Float)
}

/// The sum of the cotangent, for so many rows.
fn step(rows: i64) -> f64 {
    let of = |shape: &[i64]| Tensor::arange(shape.iter().product::<i64>(), (Kind::Float, Device::Cpu)).reshape(shape);
    let (_, cotangents) = loss::value_and_grad(&(of(&[rows, 3]) / 10.0), &of(&[3, 2]), 0.5);
    cotangents.w.sum(Kind::Float).double_value(&[])
}

#[test]
fn a_later_run_loads_what_an_earlier_one_compiled_and_compiles_only_what_is_new() {
    if let Some(file) = std::env::var_os(SECOND) {
        let pieces = load_compiled(&file).expect("it loads") as u64;
        println!("cotangent {:?}", step(4));
        assert_eq!(
            (compiled_hits(), materializations()),
            (pieces, 0),
            "forward and backward"
        );
        step(5);
        assert_eq!(compiled_hits() + materializations(), 2 * pieces);
        assert!(materializations() > 0, "the mean of another shape is new");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("compiled.so");
    let sum = step(4);
    let made = materializations();
    assert_eq!(save_compiled(&file).expect("it is written") as u64, made);

    let mut process = Command::new(std::env::current_exe().expect("a path"));
    let output = process
        .arg("--nocapture")
        .env(SECOND, &file)
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains(&format!("cotangent {sum:?}")), "{text}");
}
