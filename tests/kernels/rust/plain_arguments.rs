//! Shape: parameters of numbers and slices of numbers only, by value, by reference, written, constant, of both widths.
//! Hard: such functions are differentiated as they are, and read the caller's slices again in the reverse; vectors made
//! on the way may be empty.
use cotangent::differentiable;

/// Relative tolerance. CASE_RTOL loosens it for a finite-difference reference run.
fn rtol() -> f64 {
    std::env::var("CASE_RTOL")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1e-9)
}

#[track_caller]
fn close(got: f64, want: f64) {
    assert!(
        (got - want).abs() <= rtol() * want.abs().max(1.0),
        "got {got:?}, want {want:?}"
    );
}

#[track_caller]
fn close_all(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (g, w) in got.iter().zip(want) {
        close(*g, *w);
    }
}

#[differentiable]
fn dot(x: &[f64], y: &[f64]) -> f64 {
    let products: Vec<f64> = x.iter().zip(y).map(|(x, y)| x * y).collect();
    products.iter().sum()
}

/// `ū` goes to the number behind a reference, `v̄` to one by value.
#[differentiable]
fn mixed(u: &f64, v: f64, w: &[f64; 3], steps: usize, square: bool, each: &Vec<f64>) -> f64 {
    let mut s = *u;
    for k in 0..steps {
        s = s * v + w[k % 3] * each[k % each.len()];
    }
    if square { s * s } else { s }
}

#[differentiable(wrt(x))]
fn weighed(x: &[f64], weights: &[f64], order: &[usize]) -> f64 {
    order.iter().zip(weights).map(|(k, w)| w * x[*k] * x[*k]).sum()
}

#[differentiable]
fn narrow(x: &[f32], scale: f32) -> f32 {
    let mut s = 0.0;
    for x in x {
        s += x * x * scale;
    }
    s
}

/// What is differentiated is written, too: its cotangent is that of what it held at first.
#[differentiable]
fn smoothed(x: &mut [f64], rate: f64) -> f64 {
    for i in 1..x.len() {
        x[i] = rate * x[i] + (1.0 - rate) * x[i - 1];
    }
    x.iter().map(|x| x * x).sum()
}

/// A triangular product, with buffers that live for all rows.
#[differentiable(wrt(x, l))]
fn triangular(x: &[f64], l: &[f64], n: usize) -> f64 {
    let (mut to, mut total) = (vec![0.0; n], 0.0);
    for x in x.chunks_exact(n) {
        let mut rest = l;
        to.copy_from_slice(x);
        for i in 0..n {
            let (column, below) = rest.split_at(n - i - 1);
            for (to, l) in to[i + 1..].iter_mut().zip(column) {
                *to += l * x[i];
            }
            rest = below;
        }
        total += to.iter().map(|t| t * t).sum::<f64>();
    }
    total
}

#[test]
fn slices_that_are_one() {
    let x = [1.0, -2.0, 0.5];
    let (v, g) = dot::value_and_grad(&x, &x);
    close(v, 5.25);
    close_all(&g.x, &x);
    close_all(&g.y, &x);
    let g = dot::grad(&x[..2], &x[1..]);
    close_all(&g.x, &[-2.0, 0.5]);
    close_all(&g.y, &[1.0, -2.0]);
}

#[test]
fn slices_without_elements() {
    let (v, g) = dot::value_and_grad(&[], &[]);
    assert_eq!((v, g.x.len(), g.y.len()), (0.0, 0, 0));
    let (v, g) = triangular::value_and_grad(&[], &[], 1);
    assert_eq!((v, g.x.len(), g.l.len()), (0.0, 0, 0));
    assert_eq!(narrow::grad(&[], 2.0).scale, 0.0);
}

#[test]
fn numbers_by_value_and_behind_references() {
    let each = vec![2.0, 3.0];
    let (v, g) = mixed::value_and_grad(&0.5, 2.0, &[1.0, 10.0, 100.0], 4, true, &each);
    // s = ((((0.5·2 + 2)·2 + 30)·2 + 200)·2 + 3
    close(v, 547.0 * 547.0);
    let outer = 2.0 * 547.0;
    close(g.u, outer * 16.0);
    close(g.v, outer * (272.0 + 2.0 * 36.0 + 4.0 * 3.0 + 8.0 * 0.5));
    close_all(&g.w, &[outer * (8.0 * 2.0 + 3.0), outer * 4.0 * 3.0, outer * 2.0 * 2.0]);
    close_all(&g.each, &[outer * (8.0 + 2.0 * 100.0), outer * (4.0 * 10.0 + 1.0)]);
}

#[test]
fn constant_slices() {
    let g = weighed::grad(&[1.0, 2.0, 3.0], &[0.5, 4.0], &[2, 0]);
    close_all(&g.x, &[8.0, 0.0, 3.0]);
}

#[test]
fn floats_of_half_the_width() {
    let (v, g) = narrow::value_and_grad(&[1.0, 2.0, 3.0], 0.5);
    assert_eq!((v, g.x, g.scale), (7.0, vec![1.0, 2.0, 3.0], 14.0));
}

#[test]
fn slices_that_are_written() {
    let mut x = [1.0, 2.0, 4.0];
    let (v, g) = smoothed::value_and_grad(&mut x, 0.5);
    assert_eq!(x, [1.0, 1.5, 2.75]);
    close(v, 1.0 + 2.25 + 7.5625);
    close_all(&g.x, &[2.0 + 1.5 + 1.375, 1.5 + 1.375, 2.75]);
    close(g.rate, 3.0 * 1.0 + 5.5 * (2.5 + 0.5 * 1.0));
}

#[test]
fn buffers_for_all_rows() {
    let (x, l) = ([1.0, 2.0, -1.0, 0.5, -3.0, 2.0], [0.5, -1.0, 2.0]);
    let (v, g) = triangular::value_and_grad(&x, &l, 3);
    // Rows: (1, 2.5, 2) and (0.5, -2.75, -4.5).
    close(v, 1.0 + 6.25 + 4.0 + 0.25 + 7.5625 + 20.25);
    close_all(
        &g.x,
        &[2.0 + 2.5 - 4.0, 5.0 + 8.0, 4.0, 1.0 - 2.75 + 9.0, -5.5 - 18.0, -9.0],
    );
    close_all(&g.l, &[5.0 - 2.75, 4.0 - 4.5, 8.0 + 27.0]);
}
