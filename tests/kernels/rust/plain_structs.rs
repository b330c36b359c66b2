//! Shape: parameters that are structs, pairs and arrays, by value and by reference, under other names of their types, in
//! part constant, and in part not differentiated.
//! Hard: floats that arrive packed in an integer register; memory behind memory; numbers that are asked for beside fields that
//! are not; references under which the caller has one object twice.
use cotangent::{Differentiable, differentiable};

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

type Real = f64;
type Pair = [f32; 2];

#[derive(Clone, Differentiable)]
struct Layer {
    weights: Vec<Real>,
    bias: f64,
    #[constant]
    slope: f64,
}

#[derive(Clone, Copy, Differentiable)]
struct Point {
    x: f64,
    y: f64,
}

#[derive(Clone, Copy, Differentiable)]
struct Mass {
    at: [f64; 3],
    m: f64,
}

#[differentiable]
fn layer(layer: &Layer, x: &[Real], bent: bool) -> f64 {
    let mut total = 0.0;
    for row in layer.weights.chunks_exact(x.len()) {
        let s = row.iter().zip(x).map(|(w, x)| w * x * x).sum::<f64>() + layer.bias;
        total += if bent && s < 0.0 { layer.slope * s } else { s * s };
    }
    total
}

#[differentiable]
fn twice(a: &Layer, b: &Layer) -> f64 {
    a.weights.iter().zip(&b.weights).map(|(a, b)| a * b).sum::<f64>() + a.bias * b.bias * b.bias
}

#[differentiable]
fn written(layer: &mut Layer, rate: Real) -> f64 {
    for k in 1..layer.weights.len() {
        layer.weights[k] -= rate * layer.weights[k - 1];
        layer.bias *= layer.weights[k];
    }
    layer.weights.push(layer.bias);
    layer.weights.iter().sum()
}

/// Two floats in one register.
#[differentiable]
fn packed(pair: Pair, scale: f32) -> f32 {
    pair[0] * pair[1] * scale
}

#[differentiable]
fn by_value(p: Point, pair: (f64, usize), m: Mass) -> f64 {
    let (u, k) = pair;
    p.x * p.y * u.powi(k as i32) + m.m * m.at[k % 3]
}

#[differentiable(wrt(bodies))]
fn potential(bodies: &[Mass], origin: Point, softening: &[f64]) -> f64 {
    let mut total = 0.0;
    for (i, a) in bodies.iter().enumerate() {
        for b in &bodies[..i] {
            let square: f64 = a.at.iter().zip(&b.at).map(|(a, b)| (a - b) * (a - b)).sum();
            total -= a.m * b.m / (square + softening[0]).sqrt();
        }
        total += a.m * (a.at[0] - origin.x + a.at[1] - origin.y);
    }
    total
}

#[differentiable(wrt(x))]
fn beside(x: &[f64], layer: &Layer, scratch: &mut [f64]) -> f64 {
    for (k, x) in x.iter().enumerate() {
        scratch[k] = x * layer.weights[k];
    }
    scratch.iter().map(|s| s * s).sum()
}

fn example() -> Layer {
    Layer {
        weights: vec![1.0, -2.0, 0.5, 3.0],
        bias: 0.25,
        slope: 0.1,
    }
}

#[test]
fn a_struct_behind_a_reference() {
    let x = [2.0, 1.0];
    // Rows: 4 - 2 + 0.25, and 2 + 3 + 0.25.
    let (v, g) = layer::value_and_grad(&example(), &x, false);
    let (r, s) = (2.25, 5.25);
    close(v, r * r + s * s);
    close(g.layer.bias, 2.0 * (r + s));
    close_all(&g.layer.weights, &[8.0 * r, 2.0 * r, 8.0 * s, 2.0 * s]);
    close_all(&g.x, &[4.0 * 2.0 * r + 2.0 * 2.0 * s, -4.0 * 2.0 * r + 6.0 * 2.0 * s]);
    let negative = Layer {
        weights: vec![-1.0, 0.0],
        ..example()
    };
    let (v, g) = layer::value_and_grad(&negative, &x, true);
    close(v, 0.1 * -3.75);
    close(g.layer.bias, 0.1);
    close_all(&g.layer.weights, &[0.4, 0.1]);
    close_all(&g.x, &[-0.4, 0.0]);
}

#[test]
fn one_object_behind_two_references() {
    let layer = example();
    let (v, g) = twice::value_and_grad(&layer, &layer);
    close(v, 14.25 + 0.25f64.powi(3));
    close_all(&g.a.weights, &layer.weights);
    close_all(&g.b.weights, &layer.weights);
    close(g.a.bias, 0.0625);
    close(g.b.bias, 2.0 * 0.0625);
}

#[test]
fn a_struct_that_is_written_and_grows() {
    let mut layer = Layer {
        weights: vec![2.0, 3.0],
        ..example()
    };
    let (v, g) = written::value_and_grad(&mut layer, 0.5);
    // w1 = 3 - 0.5·2, bias = 0.25·w1
    close_all(&layer.weights, &[2.0, 2.0, 0.5]);
    close(v, 4.5);
    close_all(&g.layer.weights[..2], &[1.0 - 0.5 * 1.25, 1.25]);
    close(g.layer.bias, 2.0);
    close(g.rate, -2.0 * 1.25);
}

#[test]
fn floats_packed_in_a_register() {
    let (v, g) = packed::value_and_grad([2.0, -3.0], 0.5);
    assert_eq!((v, g.pair, g.scale), (-3.0, [-1.5, 1.0], -6.0));
}

#[test]
fn structs_and_pairs_by_value() {
    let m = Mass {
        at: [1.0, 2.0, 5.0],
        m: 0.5,
    };
    let (v, g) = by_value::value_and_grad(Point { x: 2.0, y: 3.0 }, (1.5, 2), m);
    close(v, 6.0 * 2.25 + 2.5);
    close_all(&[g.p.x, g.p.y, g.pair.0], &[3.0 * 2.25, 2.0 * 2.25, 6.0 * 3.0]);
    close_all(&g.m.at, &[0.0, 0.0, 0.5]);
    close(g.m.m, 5.0);
}

#[test]
fn slices_of_structs_beside_what_is_constant() {
    let mass = |x: f64, m: f64| Mass { at: [x, 0.0, 0.0], m };
    let bodies = [mass(0.0, 2.0), mass(3.0, 4.0)];
    let (v, g) = potential::value_and_grad(&bodies, Point { x: 1.0, y: 2.0 }, &[16.0]);
    close(v, -8.0 / 5.0 + 2.0 * -3.0);
    close(g.bodies[0].m, -4.0 / 5.0 - 3.0);
    close(g.bodies[1].m, -2.0 / 5.0);
    let force = 8.0 * 3.0 / 125.0;
    close_all(&g.bodies[0].at, &[2.0 - force, 2.0, 0.0]);
    close_all(&g.bodies[1].at, &[4.0 + force, 4.0, 0.0]);
}

#[test]
fn memory_that_is_not_asked_for_carries() {
    let mut scratch = [0.0; 2];
    let g = beside::grad(&[1.0, 2.0], &example(), &mut scratch);
    close_all(&g.x, &[2.0, 16.0]);
    assert_eq!(scratch, [1.0, -4.0]);
}
