//! Log of a sum of exponentials.

use crate::random::Random;
use crate::{Size, Workload};
use cotangent::differentiable;

#[differentiable]
fn lse(x: &[f64]) -> f64 {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = x.iter().map(|x| (x - largest).exp()).sum();
    sum.ln() + largest
}

fn by_hand(x: &[f64]) -> Vec<f64> {
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut weights: Vec<f64> = x.iter().map(|x| (x - largest).exp()).collect();
    let scale = 1.0 / weights.iter().sum::<f64>();
    weights.iter_mut().for_each(|w| *w *= scale);
    weights
}

pub(crate) fn workload(size: Size) -> Workload {
    let n = size.pick(100, 1_000_000);
    let x = Random(1).numbers(n);
    let (x1, x2) = (x.clone(), x.clone());
    Workload {
        primal: Box::new(move || lse(&x)),
        gradient: Box::new(move || vec![lse::grad(&x1).x]),
        by_hand: Box::new(move || vec![by_hand(&x2)]),
    }
}
