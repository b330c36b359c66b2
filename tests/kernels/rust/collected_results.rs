//! Shape: results and options collected into one: a vector of all values, or the first error, which is a text or a number.
//! Hard: a float and the pointer of a text share a word, which is copied to where only the text can come.
use cotangent::differentiable;

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

fn roots(x: &[f64]) -> Result<Vec<f64>, String> {
    let root = |v: &f64| match *v < 0.0 {
        true => Err(format!("negative: {v}")),
        false => Ok(v.sqrt()),
    };
    x.iter().map(root).collect()
}

#[differentiable]
fn or_text(x: &[f64]) -> f64 {
    match roots(x) {
        Ok(all) => all.into_iter().map(|v| v * v * v).sum(),
        Err(text) => x[0] * x[1] * text.len() as f64,
    }
}

fn logarithms(x: &[f64]) -> Result<Vec<f64>, (usize, f64)> {
    let log = |(i, v): (usize, &f64)| if *v > 0.0 { Ok(v.ln()) } else { Err((i, *v)) };
    x.iter().enumerate().map(log).collect()
}

#[differentiable]
fn or_number(x: &[f64]) -> f64 {
    match logarithms(x) {
        Ok(all) => all.iter().sum::<f64>() * all[0],
        Err((at, v)) => v * v * at as f64,
    }
}

#[differentiable]
fn all_or_none(x: &[f64], least: f64) -> f64 {
    let squares: Option<Vec<f64>> = x.iter().map(|v| (*v > least).then(|| v * v)).collect();
    squares.map_or(x[0], |all| all.iter().product())
}

#[test]
fn a_text_or_the_values() {
    let x = [1.5f64, 2.5, 0.25];
    close_all(&or_text::grad(&x).x, &x.map(|v| 1.5 * v.sqrt()));
    let length = "negative: -2.5".len() as f64;
    close_all(
        &or_text::grad(&[1.5, -2.5, 0.25]).x,
        &[-2.5 * length, 1.5 * length, 0.0],
    );
}

#[test]
fn a_number_or_the_values() {
    let x = [1.5f64, 2.5, 0.25];
    let (sum, first) = (x.iter().map(|v| v.ln()).sum::<f64>(), x[0].ln());
    close_all(
        &or_number::grad(&x).x,
        &[(sum + first) / x[0], first / x[1], first / x[2]],
    );
    close_all(&or_number::grad(&[1.5, 2.5, -0.25]).x, &[0.0, 0.0, -1.0]);
}

#[test]
fn all_or_nothing() {
    let x = [1.5f64, 2.0];
    close_all(&all_or_none::grad(&x, 1.0).x, &[2.0 * 1.5 * 4.0, 2.0 * 2.0 * 2.25]);
    close_all(&all_or_none::grad(&x, 1.8).x, &[1.0, 0.0]);
}
