//! The cost of k-means: squares of the distances from each point to its nearest centroid.

use crate::random::Random;
use crate::{Size, Workload};
use cotangent::differentiable;

fn square(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

#[differentiable(wrt(centroids))]
fn kmeans(centroids: &[f64], points: &[f64], d: usize) -> f64 {
    let nearest = |point| {
        let squares = centroids.chunks_exact(d).map(|centroid| square(point, centroid));
        squares.fold(f64::INFINITY, |least, s| if s < least { s } else { least })
    };
    points.chunks_exact(d).map(nearest).sum()
}

fn by_hand(centroids: &[f64], points: &[f64], d: usize) -> Vec<f64> {
    let mut slopes = vec![0.0; centroids.len()];
    for point in points.chunks_exact(d) {
        let (mut best, mut least) = (0, f64::INFINITY);
        for (k, centroid) in centroids.chunks_exact(d).enumerate() {
            let square = square(point, centroid);
            if square < least {
                (best, least) = (k, square);
            }
        }
        for j in 0..d {
            slopes[best * d + j] += 2.0 * (centroids[best * d + j] - point[j]);
        }
    }
    slopes
}

pub(crate) fn workload(size: Size) -> Workload {
    let (n, k, d) = size.pick((30, 4, 3), (10_000, 64, 16));
    let mut random = Random(5);
    let (centroids, points) = (random.numbers(k * d), random.numbers(n * d));
    let (c1, p1, c2, p2) = (centroids.clone(), points.clone(), centroids.clone(), points.clone());
    Workload {
        primal: Box::new(move || kmeans(&centroids, &points, d)),
        gradient: Box::new(move || vec![kmeans::grad(&c1, &p1, d).centroids]),
        by_hand: Box::new(move || vec![by_hand(&c2, &p2, d)]),
    }
}
