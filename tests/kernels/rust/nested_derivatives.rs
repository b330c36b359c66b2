//! Derivatives asked for within differentiable functions. Shape: gradients, values with gradients and tangents of other
//! functions, in loops, of structs and floats by value, of gradients again; and the derivatives of all that.
//! Hard: what stands between an entry point and a derivative is differentiated, too.
use cotangent::{Differentiable, differentiable};

#[track_caller]
fn close(got: f64, want: f64) {
    assert!(
        (got - want).abs() <= 1e-9 * want.abs().max(1.0),
        "got {got:?}, want {want:?}"
    );
}

/// Central differences of a function, to a tolerance that they allow.
#[track_caller]
fn agrees(f: impl Fn(&[f64]) -> f64, x: &[f64], gradient: &[f64]) {
    for i in 0..x.len() {
        let at = |h: f64| {
            let mut x = x.to_vec();
            x[i] += h;
            f(&x)
        };
        let h = 1e-5;
        let want = (at(h) - at(-h)) / (2.0 * h);
        assert!(
            (gradient[i] - want).abs() <= 1e-6 * want.abs().max(1.0),
            "element {i}: got {}, want {want}",
            gradient[i]
        );
    }
}

#[differentiable]
fn energy(x: &[f64]) -> f64 {
    let mut sum = 0.0;
    for pair in x.windows(2) {
        let d = pair[1] - pair[0] * pair[0];
        sum += (1.0 - pair[0]).powi(2) + 10.0 * d * d;
    }
    sum
}

/// A few steps of gradient descent: its derivative by where it starts from, and by how far it goes.
#[differentiable]
fn descended(start: &[f64], rate: f64) -> f64 {
    let mut x = start.to_vec();
    for _ in 0..3 {
        let gradient = energy::grad(&x).x;
        for (x, g) in x.iter_mut().zip(&gradient) {
            *x -= rate * g;
        }
    }
    energy(&x)
}

#[test]
fn descent_is_differentiated_by_its_start_and_by_its_rate() {
    let (x, rate) = ([0.3, 0.2, 0.4, 0.1], 0.01);
    let (value, g) = descended::value_and_grad(&x, rate);
    close(value, descended(&x, rate));
    agrees(|x| descended(x, rate), &x, &g.start);
    agrees(|r| descended(&x, r[0]), &[rate], &[g.rate]);
    let tangents = descended::Tangents {
        start: vec![1.0, 0.5, -1.0, 2.0],
        rate: 0.25,
    };
    let along: f64 = g.start.iter().zip([1.0, 0.5, -1.0, 2.0]).map(|(g, t)| g * t).sum::<f64>() + 0.25 * g.rate;
    close(descended::jvp(&x, rate, tangents).1, along);
}

#[differentiable]
fn product(a: f64, b: f64) -> f64 {
    a * a * b + (a * b).sin()
}

#[differentiable]
fn slope(a: f64, b: f64) -> f64 {
    let (value, g) = product::value_and_grad(a, b);
    value * g.a + g.b
}

#[test]
fn floats_by_value_have_second_derivatives() {
    let x = [0.7, 1.3];
    let g = slope::grad(x[0], x[1]);
    agrees(|x| slope(x[0], x[1]), &x, &[g.a, g.b]);
}

#[differentiable]
fn hessian_along(x: &[f64], v: &[f64]) -> f64 {
    let (_, along) = energy::jvp(x, energy::Tangents { x: v.to_vec() });
    along * along
}

#[test]
fn a_tangent_is_differentiated_by_point_and_direction() {
    let (x, v) = ([0.3, 0.2, 0.4], [1.0, -2.0, 0.5]);
    let g = hessian_along::grad(&x, &v);
    agrees(|x| hessian_along(x, &v), &x, &g.x);
    agrees(|v| hessian_along(&x, v), &v, &g.v);
    let t = hessian_along::jvp(
        &x,
        &v,
        hessian_along::Tangents {
            x: vec![1.0, 0.0, 2.0],
            v: vec![0.0, 1.0, 0.0],
        },
    );
    close(t.1, g.x[0] + 2.0 * g.x[2] + g.v[1]);
}

#[differentiable]
fn cube(x: f64) -> f64 {
    x.powi(5) + x.exp()
}

#[differentiable]
fn first(x: f64) -> f64 {
    cube::grad(x).x
}

#[differentiable]
fn second(x: f64) -> f64 {
    first::grad(x).x
}

#[test]
fn derivatives_of_third_order() {
    close(second::grad(1.5).x, 60.0 * 1.5f64.powi(2) + 1.5f64.exp());
    close(
        second::jvp(1.5, second::Tangents { x: 2.0 }).1,
        2.0 * (60.0 * 1.5f64.powi(2) + 1.5f64.exp()),
    );
}

#[derive(Clone, Differentiable)]
struct Layer {
    weights: Vec<f64>,
    bias: f64,
    #[constant]
    steps: usize,
}

#[differentiable]
fn apply(layer: &Layer, x: &[f64]) -> f64 {
    let mut y = layer.bias;
    for _ in 0..layer.steps {
        y = (y + layer.weights.iter().zip(x).map(|(w, x)| w * x).sum::<f64>()).tanh();
    }
    y
}

#[differentiable]
fn sensitivity(layer: &Layer, x: &[f64]) -> f64 {
    let g = apply::grad(layer, x);
    g.x.iter().map(|g| g * g).sum::<f64>() + g.layer.bias * g.layer.weights[0]
}

#[test]
fn parameters_in_a_struct_have_second_derivatives() {
    let (x, w, bias) = ([0.4, -0.3], [0.8, 0.1], 0.2);
    let layer = |w: &[f64], bias| Layer {
        weights: w.to_vec(),
        bias,
        steps: 2,
    };
    let g = sensitivity::grad(&layer(&w, bias), &x);
    agrees(|w| sensitivity(&layer(w, bias), &x), &w, &g.layer.weights);
    agrees(|b| sensitivity(&layer(&w, b[0]), &x), &[bias], &[g.layer.bias]);
    agrees(|x| sensitivity(&layer(&w, bias), x), &x, &g.x);
}

#[differentiable]
fn owned(x: Vec<f64>, scale: [f64; 2]) -> f64 {
    let mut all = x;
    all.push(scale[0] * scale[1]);
    all.iter().map(|v| v * v * v).sum()
}

#[differentiable]
fn of_owned(x: &[f64]) -> f64 {
    let g = owned::grad(x.to_vec(), [x[0], x[1]]);
    g.x[0] * g.x[1] + g.scale[0] * g.scale[1]
}

#[test]
fn arguments_by_value_have_second_derivatives() {
    let x = [0.7, 1.1];
    agrees(of_owned, &x, &of_owned::grad(&x).x);
}

#[differentiable]
fn of_rows(rows: &[Vec<f64>]) -> f64 {
    rows.iter().map(|row| row.iter().product::<f64>().sin()).sum()
}

#[differentiable]
fn rows_squared(x: &[f64]) -> f64 {
    let rows: Vec<Vec<f64>> = x.chunks(2).map(<[f64]>::to_vec).collect();
    let g = of_rows::grad(&rows).rows;
    g.iter().flatten().map(|g| g * g).sum()
}

#[test]
fn matrices_of_rows_have_second_derivatives() {
    let x = [0.7, 1.1, -0.4, 0.9, 0.3];
    agrees(rows_squared, &x, &rows_squared::grad(&x).x);
}

#[differentiable]
fn single(x: &[f32]) -> f32 {
    x[0] * x[0] * x[1]
}

#[differentiable]
fn of_single(x: &[f32]) -> f32 {
    let g = single::grad(x).x;
    g[0] * g[1]
}

#[test]
fn narrow_floats_have_second_derivatives() {
    // 2ab · a²
    let g = of_single::grad(&[2.0, 3.0]).x;
    assert_eq!(g, [6.0 * 4.0 * 3.0, 2.0 * 8.0]);
}

#[differentiable]
fn checked(x: &[f64], at: usize) -> f64 {
    x[at] * x[at] * x[0]
}

#[differentiable]
fn of_checked(x: &[f64], at: usize) -> f64 {
    checked::grad(x, at).x.iter().map(|g| g * g).sum()
}

#[test]
fn a_panic_within_stays_a_panic_and_the_next_call_works() {
    let x = [1.5, 2.0];
    for _ in 0..3 {
        let caught = std::panic::catch_unwind(|| of_checked::grad(&x, 2).x);
        let message = caught.err().and_then(|p| p.downcast::<String>().ok()).expect("it panics");
        assert!(message.contains("out of bounds"), "{message}");
        agrees(|x| of_checked(x, 1), &x, &of_checked::grad(&x, 1).x);
    }
}

/// A step that moves against the gradient, in a function that decides by the gradient.
#[differentiable]
fn clipped(x: &[f64]) -> f64 {
    let g = energy::grad(x).x;
    let norm = g.iter().map(|g| g * g).sum::<f64>().sqrt();
    let moved: Vec<f64> = match norm > 1.0 {
        true => x.iter().zip(&g).map(|(x, g)| x - g / norm).collect(),
        false => x.to_vec(),
    };
    energy(&moved)
}

#[test]
fn a_branch_on_a_gradient_takes_its_side() {
    for x in [[0.3, 0.2, 0.4], [1.0, 1.0, 1.01]] {
        agrees(clipped, &x, &clipped::grad(&x).x);
    }
}
