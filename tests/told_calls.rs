//! What a run tells `cargo cotangent explain`, which sets the file for it.

use cotangent::differentiable;
use tch::{Device, Kind, Tensor};

#[differentiable(wrt(w))]
fn scaled(x: &Tensor, w: &Tensor, by: f64) -> Tensor {
    x.matmul(w) * by
}

#[test]
fn a_run_tells_kinds_and_sizes_of_what_a_function_is_called_with() {
    let Some(file) = std::env::var_os("COTANGENT_CALLS") else {
        panic!("tests with derivatives run under `cargo cotangent test`, which names the file");
    };
    let ones = |shape: &[i64], kind| Tensor::ones(shape, (kind, Device::Cpu));
    _ = scaled::vjp(&ones(&[5, 3], Kind::Double), &ones(&[3, 2], Kind::Double), 2.0);
    let told = std::fs::read_to_string(file).expect("the run has written the file");
    let line = told.lines().find(|l| l.contains("told_calls::scaled\""));
    assert!(
        line.is_some_and(|l| l.contains(r#"["x=f64[5,3]","w=f64[3,2]"]"#)),
        "{told}"
    );
}
