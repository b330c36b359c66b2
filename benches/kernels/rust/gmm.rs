//! The likelihood of a mixture of Gaussians, with Wishart's prior. Inverse covariances are given by the logarithms of
//! a diagonal and a lower triangle.

use crate::random::Random;
use crate::{Size, Workload};
use cotangent::differentiable;

fn log_sum_exp(x: &[f64]) -> f64 {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    x.iter().map(|x| (x - largest).exp()).sum::<f64>().ln() + largest
}

/// The triangular matrix times a vector.
fn times(diagonal: &[f64], triangle: &[f64], x: &[f64], to: &mut [f64]) {
    let d = x.len();
    for ((to, q), x) in to.iter_mut().zip(diagonal).zip(x) {
        *to = q * x;
    }
    let mut rest = triangle;
    for i in 0..d {
        let (column, below) = rest.split_at(d - i - 1);
        for (to, l) in to[i + 1..].iter_mut().zip(column) {
            *to += l * x[i];
        }
        rest = below;
    }
}

#[differentiable(wrt(alphas, means, icf))]
fn gmm(alphas: &[f64], means: &[f64], icf: &[f64], x: &[f64], d: usize) -> f64 {
    let (k, per) = (alphas.len(), d * (d + 1) / 2);
    let diagonals: Vec<f64> = (0..k * d).map(|i| icf[i / d * per + i % d].exp()).collect();
    let sums: Vec<f64> = (0..k).map(|i| icf[i * per..i * per + d].iter().sum()).collect();
    let (mut centred, mut product, mut terms) = (vec![0.0; d], vec![0.0; d], vec![0.0; k]);
    let mut total = 0.0;
    for x in x.chunks_exact(d) {
        for i in 0..k {
            let mean = &means[i * d..(i + 1) * d];
            for ((c, x), m) in centred.iter_mut().zip(x).zip(mean) {
                *c = x - m;
            }
            let triangle = &icf[i * per + d..(i + 1) * per];
            times(&diagonals[i * d..(i + 1) * d], triangle, &centred, &mut product);
            let square: f64 = product.iter().map(|p| p * p).sum();
            terms[i] = alphas[i] + sums[i] - 0.5 * square;
        }
        total += log_sum_exp(&terms);
    }
    let n = x.len() / d;
    let mut prior = 0.0;
    for i in 0..k {
        let squares: f64 = diagonals[i * d..(i + 1) * d].iter().map(|q| q * q).sum();
        let below: f64 = icf[i * per + d..(i + 1) * per].iter().map(|l| l * l).sum();
        prior += 0.5 * (squares + below) - sums[i];
    }
    total - n as f64 * log_sum_exp(alphas) + prior
}

/// Weights whose sum is one.
fn softmax(x: &[f64]) -> Vec<f64> {
    let sum = log_sum_exp(x);
    x.iter().map(|x| (x - sum).exp()).collect()
}

fn by_hand(alphas: &[f64], means: &[f64], icf: &[f64], x: &[f64], d: usize) -> Vec<Vec<f64>> {
    let (k, per, n) = (alphas.len(), d * (d + 1) / 2, x.len() / d);
    let (mut alphas_bar, mut means_bar, mut icf_bar) = (vec![0.0; k], vec![0.0; k * d], vec![0.0; k * per]);
    let diagonals: Vec<f64> = (0..k * d).map(|i| icf[i / d * per + i % d].exp()).collect();
    let sums: Vec<f64> = (0..k).map(|i| icf[i * per..i * per + d].iter().sum()).collect();
    let (mut centred, mut products, mut terms) = (vec![0.0; k * d], vec![0.0; k * d], vec![0.0; k]);
    let (mut back, mut centred_bar) = (vec![0.0; d], vec![0.0; d]);
    for x in x.chunks_exact(d) {
        for i in 0..k {
            let (centred, product) = (&mut centred[i * d..(i + 1) * d], &mut products[i * d..(i + 1) * d]);
            for j in 0..d {
                centred[j] = x[j] - means[i * d + j];
            }
            times(
                &diagonals[i * d..(i + 1) * d],
                &icf[i * per + d..(i + 1) * per],
                centred,
                product,
            );
            terms[i] = alphas[i] + sums[i] - 0.5 * product.iter().map(|p| p * p).sum::<f64>();
        }
        for (i, weight) in softmax(&terms).into_iter().enumerate() {
            alphas_bar[i] += weight;
            let (diagonal, centred) = (&diagonals[i * d..(i + 1) * d], &centred[i * d..(i + 1) * d]);
            for j in 0..d {
                back[j] = -weight * products[i * d + j];
                icf_bar[i * per + j] += weight + back[j] * centred[j] * diagonal[j];
                centred_bar[j] = diagonal[j] * back[j];
            }
            let mut at = i * per + d;
            for j in 0..d {
                let below = d - j - 1;
                let (l, l_bar) = (&icf[at..at + below], &mut icf_bar[at..at + below]);
                let mut sum = 0.0;
                for ((l, l_bar), back) in l.iter().zip(l_bar).zip(&back[j + 1..]) {
                    sum += l * back;
                    *l_bar += back * centred[j];
                }
                centred_bar[j] += sum;
                at += below;
            }
            for j in 0..d {
                means_bar[i * d + j] -= centred_bar[j];
            }
        }
    }
    for (i, weight) in softmax(alphas).into_iter().enumerate() {
        alphas_bar[i] -= n as f64 * weight;
        for j in 0..d {
            icf_bar[i * per + j] += diagonals[i * d + j] * diagonals[i * d + j] - 1.0;
        }
        for j in i * per + d..(i + 1) * per {
            icf_bar[j] += icf[j];
        }
    }
    vec![alphas_bar, means_bar, icf_bar]
}

pub(crate) fn workload(size: Size) -> Workload {
    let (n, k, d) = size.pick((5, 3, 4), (1000, 100, 64));
    let per = d * (d + 1) / 2;
    let mut random = Random(6);
    let (alphas, means, x) = (random.numbers(k), random.numbers(k * d), random.numbers(n * d));
    let icf: Vec<f64> = random.numbers(k * per).iter().map(|v| 0.2 * v).collect();
    let data = (alphas, means, icf, x);
    let (d1, d2) = (data.clone(), data.clone());
    Workload {
        primal: Box::new(move || gmm(&data.0, &data.1, &data.2, &data.3, d)),
        gradient: Box::new(move || {
            let gmm::Cotangents { alphas, means, icf } = gmm::grad(&d1.0, &d1.1, &d1.2, &d1.3, d);
            vec![alphas, means, icf]
        }),
        by_hand: Box::new(move || by_hand(&d2.0, &d2.1, &d2.2, &d2.3, d)),
    }
}
