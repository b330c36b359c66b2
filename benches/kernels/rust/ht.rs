//! Hand tracking: a skeleton is posed by angles, its skin follows by blended transforms, and is compared with points.

use crate::random::Random;
use crate::{Size, Workload};
use cotangent::differentiable;

/// A rotation and a translation, as three rows of four.
type Pose = [[f64; 4]; 3];

const BONES: usize = 22;

/// The bone that each bone hangs on: a wrist and five chains.
fn parent(bone: usize) -> Option<usize> {
    match bone {
        0 => None,
        _ if (bone - 1).is_multiple_of(4) => Some(0),
        _ => Some(bone - 1),
    }
}

/// Sines and cosines of three angles, as a rotation about x, then y, then z.
fn turn(s: [f64; 3], c: [f64; 3]) -> [[f64; 3]; 3] {
    [
        [
            c[2] * c[1],
            c[2] * s[1] * s[0] - s[2] * c[0],
            c[2] * s[1] * c[0] + s[2] * s[0],
        ],
        [
            s[2] * c[1],
            s[2] * s[1] * s[0] + c[2] * c[0],
            s[2] * s[1] * c[0] - c[2] * s[0],
        ],
        [-s[1], c[1] * s[0], c[1] * c[0]],
    ]
}

fn local(angles: &[f64], offset: &[f64]) -> Pose {
    let r = turn(
        [angles[0].sin(), angles[1].sin(), angles[2].sin()],
        [angles[0].cos(), angles[1].cos(), angles[2].cos()],
    );
    [
        [r[0][0], r[0][1], r[0][2], offset[0]],
        [r[1][0], r[1][1], r[1][2], offset[1]],
        [r[2][0], r[2][1], r[2][2], offset[2]],
    ]
}

fn times(a: &Pose, b: &Pose) -> Pose {
    let mut product = [[0.0; 4]; 3];
    for i in 0..3 {
        for j in 0..4 {
            product[i][j] = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
        }
        product[i][3] += a[i][3];
    }
    product
}

fn posed(angles: &[f64], offsets: &[f64]) -> [Pose; BONES] {
    let mut poses = [[[0.0; 4]; 3]; BONES];
    for bone in 0..BONES {
        let own = local(&angles[3 * bone..3 * bone + 3], &offsets[3 * bone..3 * bone + 3]);
        poses[bone] = match parent(bone) {
            Some(parent) => times(&poses[parent], &own),
            None => own,
        };
    }
    poses
}

/// Half the sum of squares between skin and points; `weights` say how much of each bone moves a vertex.
#[differentiable(wrt(angles))]
fn ht(angles: &[f64], offsets: &[f64], vertices: &[f64], weights: &[f64], points: &[f64]) -> f64 {
    let poses = posed(angles, offsets);
    let mut total = 0.0;
    for (v, (vertex, point)) in vertices.chunks_exact(3).zip(points.chunks_exact(3)).enumerate() {
        let mut skin = [0.0; 3];
        for (pose, weight) in poses.iter().zip(&weights[v * BONES..(v + 1) * BONES]) {
            for i in 0..3 {
                let row = &pose[i];
                skin[i] += weight * (row[0] * vertex[0] + row[1] * vertex[1] + row[2] * vertex[2] + row[3]);
            }
        }
        for i in 0..3 {
            total += 0.5 * (skin[i] - point[i]) * (skin[i] - point[i]);
        }
    }
    total
}

fn by_hand(angles: &[f64], offsets: &[f64], vertices: &[f64], weights: &[f64], points: &[f64]) -> Vec<f64> {
    let poses = posed(angles, offsets);
    let mut bars = [[[0.0; 4]; 3]; BONES];
    for (v, (vertex, point)) in vertices.chunks_exact(3).zip(points.chunks_exact(3)).enumerate() {
        let (mut skin, weights) = ([0.0; 3], &weights[v * BONES..(v + 1) * BONES]);
        for (pose, weight) in poses.iter().zip(weights) {
            for i in 0..3 {
                let row = &pose[i];
                skin[i] += weight * (row[0] * vertex[0] + row[1] * vertex[1] + row[2] * vertex[2] + row[3]);
            }
        }
        for (bar, weight) in bars.iter_mut().zip(weights) {
            for i in 0..3 {
                let rest = weight * (skin[i] - point[i]);
                for j in 0..3 {
                    bar[i][j] += rest * vertex[j];
                }
                bar[i][3] += rest;
            }
        }
    }
    let mut angles_bar = vec![0.0; angles.len()];
    for bone in (0..BONES).rev() {
        let at = 3 * bone..3 * bone + 3;
        let own = local(&angles[at.clone()], &offsets[at.clone()]);
        let bar = bars[bone];
        let mut own_bar = bar;
        if let Some(parent) = parent(bone) {
            let above = poses[parent];
            for i in 0..3 {
                for j in 0..4 {
                    own_bar[i][j] = (0..3).map(|k| above[k][i] * bar[k][j]).sum();
                }
                for k in 0..3 {
                    bars[parent][i][k] += (0..4).map(|j| bar[i][j] * own[k][j]).sum::<f64>();
                }
                bars[parent][i][3] += bar[i][3];
            }
        }
        let angles = &angles[at.clone()];
        let (s, c): ([f64; 3], [f64; 3]) = (
            [angles[0].sin(), angles[1].sin(), angles[2].sin()],
            [angles[0].cos(), angles[1].cos(), angles[2].cos()],
        );
        for k in 0..3 {
            // Entries are linear in the sine and cosine of one angle: the slope is their value at (cos, -sin), less what does
            // not depend on them.
            let (mut ds, mut dc, mut zs, mut zc) = (s, c, s, c);
            (ds[k], dc[k]) = (c[k], -s[k]);
            (zs[k], zc[k]) = (0.0, 0.0);
            let (slope, rest) = (turn(ds, dc), turn(zs, zc));
            for i in 0..3 {
                for j in 0..3 {
                    angles_bar[3 * bone + k] += own_bar[i][j] * (slope[i][j] - rest[i][j]);
                }
            }
        }
    }
    angles_bar
}

pub(crate) fn workload(size: Size) -> Workload {
    let count = size.pick(10, 544);
    let mut random = Random(9);
    let (angles, offsets) = (random.numbers(3 * BONES), random.numbers(3 * BONES));
    let (vertices, points) = (random.numbers(3 * count), random.numbers(3 * count));
    let weights: Vec<f64> = random
        .numbers(BONES * count)
        .iter()
        .map(|w| w.abs() / BONES as f64)
        .collect();
    let data = (angles, offsets, vertices, weights, points);
    let (d1, d2) = (data.clone(), data.clone());
    Workload {
        primal: Box::new(move || ht(&data.0, &data.1, &data.2, &data.3, &data.4)),
        gradient: Box::new(move || vec![ht::grad(&d1.0, &d1.1, &d1.2, &d1.3, &d1.4).angles]),
        by_hand: Box::new(move || vec![by_hand(&d2.0, &d2.1, &d2.2, &d2.3, &d2.4)]),
    }
}
