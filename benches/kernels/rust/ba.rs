//! Bundle adjustment: the Jacobian of all reprojection errors. Each observation has its own copy of what it depends on
//! (camera 11, point 3, weight 1), so that two pullbacks, one for each coordinate, give all rows at once.

use crate::random::Random;
use crate::{Size, Workload};
use cotangent::differentiable;

/// Numbers that an observation depends on.
const INPUTS: usize = 15;

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// Turns a point about an axis, whose length is the angle.
fn turned(axis: [f64; 3], x: [f64; 3]) -> [f64; 3] {
    let square = dot(axis, axis);
    if square == 0.0 {
        let side = cross(axis, x);
        return [x[0] + side[0], x[1] + side[1], x[2] + side[2]];
    }
    let angle = square.sqrt();
    let (s, c) = (angle.sin(), angle.cos());
    let a = [axis[0] / angle, axis[1] / angle, axis[2] / angle];
    let (side, along) = (cross(a, x), dot(a, x) * (1.0 - c));
    [
        x[0] * c + side[0] * s + a[0] * along,
        x[1] * c + side[1] * s + a[1] * along,
        x[2] * c + side[2] * s + a[2] * along,
    ]
}

fn project(input: &[f64; INPUTS], feature: &[f64; 2], error: &mut [f64; 2]) {
    let moved = [input[11] - input[3], input[12] - input[4], input[13] - input[5]];
    let seen = turned([input[0], input[1], input[2]], moved);
    let (x, y) = (seen[0] / seen[2], seen[1] / seen[2]);
    let square = x * x + y * y;
    let scale = input[6] * (1.0 + input[9] * square + input[10] * square * square);
    error[0] = input[14] * (x * scale + input[7] - feature[0]);
    error[1] = input[14] * (y * scale + input[8] - feature[1]);
}

#[differentiable(wrt(inputs))]
fn residuals(inputs: &[f64], features: &[f64], errors: &mut [f64]) {
    let observations = inputs.as_chunks().0.iter().zip(features.as_chunks().0);
    for ((input, feature), error) in observations.zip(errors.as_chunks_mut().0) {
        project(input, feature, error);
    }
}

/// The reverse of `project`.
fn project_back(input: &[f64; INPUTS], feature: &[f64; 2], seed: [f64; 2], bar: &mut [f64; INPUTS]) {
    let axis = [input[0], input[1], input[2]];
    let moved = [input[11] - input[3], input[12] - input[4], input[13] - input[5]];
    let seen = turned(axis, moved);
    let p = [seen[0] / seen[2], seen[1] / seen[2]];
    let square = p[0] * p[0] + p[1] * p[1];
    let distortion = 1.0 + input[9] * square + input[10] * square * square;
    let (mut p_bar, mut distortion_bar) = ([0.0; 2], 0.0);
    for i in 0..2 {
        bar[14] += seed[i] * (p[i] * distortion * input[6] + input[7 + i] - feature[i]);
        let g = seed[i] * input[14];
        bar[7 + i] += g;
        bar[6] += g * p[i] * distortion;
        p_bar[i] = g * distortion * input[6];
        distortion_bar += g * p[i] * input[6];
    }
    bar[9] += distortion_bar * square;
    bar[10] += distortion_bar * square * square;
    let square_bar = distortion_bar * (input[9] + 2.0 * input[10] * square);
    for i in 0..2 {
        p_bar[i] += 2.0 * p[i] * square_bar;
    }
    let g = [
        p_bar[0] / seen[2],
        p_bar[1] / seen[2],
        -(p_bar[0] * p[0] + p_bar[1] * p[1]) / seen[2],
    ];
    let angle = dot(axis, axis).sqrt();
    let (s, c) = (angle.sin(), angle.cos());
    let a = axis.map(|v| v / angle);
    let (ax, ag) = (dot(a, moved), dot(a, g));
    let (xg, ga) = (cross(moved, g), cross(g, a));
    let c_bar = dot(moved, g) - ax * ag;
    let s_bar = dot(cross(a, moved), g);
    let a_bar: [f64; 3] = std::array::from_fn(|i| s * xg[i] + (1.0 - c) * (ax * g[i] + ag * moved[i]));
    let angle_bar = c * s_bar - s * c_bar - dot(a_bar, a) / angle;
    for i in 0..3 {
        let moved_bar = c * g[i] + s * ga[i] + a[i] * (1.0 - c) * ag;
        bar[11 + i] += moved_bar;
        bar[3 + i] -= moved_bar;
        bar[i] += a_bar[i] / angle + a[i] * angle_bar;
    }
}

fn by_hand(inputs: &[f64], features: &[f64]) -> Vec<Vec<f64>> {
    let rows = [[1.0, 0.0], [0.0, 1.0]].map(|seed| {
        let mut bars = vec![0.0; inputs.len()];
        let observations = inputs.as_chunks().0.iter().zip(features.as_chunks().0);
        for ((input, feature), bar) in observations.zip(bars.as_chunks_mut().0) {
            project_back(input, feature, seed, bar);
        }
        bars
    });
    rows.into()
}

pub(crate) fn workload(size: Size) -> Workload {
    let count = size.pick(5, 31_843);
    let mut random = Random(7);
    let mut inputs = random.numbers(count * INPUTS);
    for input in inputs.chunks_exact_mut(INPUTS) {
        input[13] += 5.0;
        input[6] += 2.0;
        input[9] *= 0.1;
        input[10] *= 0.01;
    }
    let features = random.numbers(2 * count);
    let (i1, f1, i2, f2) = (inputs.clone(), features.clone(), inputs.clone(), features.clone());
    let mut errors = vec![0.0; 2 * count];
    let mut kept = errors.clone();
    let seeds = [0, 1].map(|row| {
        (0..2 * count)
            .map(|i| f64::from(u8::from(i % 2 == row)))
            .collect::<Vec<f64>>()
    });
    Workload {
        primal: Box::new(move || {
            residuals(&inputs, &features, &mut errors);
            errors[0]
        }),
        gradient: Box::new(move || {
            let ((), pullback) = residuals::vjp(&i1, &f1, &mut kept);
            let row = |seed: &Vec<f64>| pullback.call(residuals::Seed { errors: seed.clone() }).inputs;
            seeds.iter().map(row).collect()
        }),
        by_hand: Box::new(move || by_hand(&i2, &f2)),
    }
}
