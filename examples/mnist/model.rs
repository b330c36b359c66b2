//! The model: two layers, ReLU between them, half the mean squared distance from the one-hot label.

use cotangent::differentiable;
use tch::{Device, Kind, Tensor};

/// `x` is `[batch, 784]`, `y` is `[batch, 10]`; the result is a 0-dim tensor.
#[differentiable(wrt(w1, b1, w2, b2))]
pub(crate) fn loss(x: &Tensor, y: &Tensor, w1: &Tensor, b1: &Tensor, w2: &Tensor, b2: &Tensor) -> Tensor {
    let h = (x.matmul(w1) + b1).relu();
    let d = h.matmul(w2) + b2 - y;
    (&d * &d).sum(Kind::Float) / (2.0 * x.size()[0] as f64)
}

/// Weights and biases of both layers.
pub(crate) struct Parameters {
    /// `w1 [784, 64]`, `b1 [64]`, `w2 [64, 10]`, `b2 [10]`.
    pub(crate) tensors: [Tensor; 4],
}

impl Parameters {
    /// Weights from a normal distribution of standard deviation 0.05, biases zero, from a seed.
    pub(crate) fn new(seed: i64) -> Self {
        tch::manual_seed(seed);
        let normal = |shape: &[i64], deviation: f64| {
            let t = Tensor::randn(shape, (Kind::Float, Device::Cpu)) * deviation;
            t.set_requires_grad(true)
        };
        Self {
            tensors: [
                normal(&[784, 64], 0.05),
                normal(&[64], 0.0),
                normal(&[64, 10], 0.05),
                normal(&[10], 0.0),
            ],
        }
    }

    /// Three equal sets.
    pub(crate) fn three(seed: i64) -> [Self; 3] {
        [(); 3].map(|()| Self::new(seed))
    }

    /// Scores of ten classes for each row.
    pub(crate) fn scores(&self, x: &Tensor) -> Tensor {
        let [w1, b1, w2, b2] = &self.tensors;
        tch::no_grad(|| (x.matmul(w1) + b1).relu().matmul(w2) + b2)
    }

    /// Gradient descent: `p -= rate * gradient`.
    pub(crate) fn descend(&self, gradients: [Tensor; 4], rate: f64) {
        tch::no_grad(|| {
            for (p, g) in self.tensors.iter().zip(gradients) {
                let mut p = p.shallow_clone();
                p -= g * rate;
            }
        });
    }

    /// Largest absolute difference of an element from another set.
    pub(crate) fn max_difference(&self, other: &Self) -> f64 {
        let pairs = self.tensors.iter().zip(&other.tensors);
        tch::no_grad(|| {
            pairs
                .map(|(a, b)| (a - b).abs().max().double_value(&[]))
                .fold(0.0, f64::max)
        })
    }

    /// Panics if training has diverged: a ratio of times would mean nothing then.
    pub(crate) fn assert_finite(&self) {
        for t in &self.tensors {
            let finite = tch::no_grad(|| t.isfinite().all().int64_value(&[]));
            assert_eq!(finite, 1, "training has diverged");
        }
    }
}
