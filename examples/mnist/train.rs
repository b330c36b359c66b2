//! One step, one epoch, and what a step allocates.

use crate::data::Dataset;
use crate::model::{Parameters, loss};
use cotangent::{StorageUse, measure_storage};
use std::time::Instant;
use tch::Tensor;

/// Rows of a batch.
pub(crate) const BATCH: usize = 128;
/// Learning rate.
const RATE: f64 = 0.05;

/// Who makes the gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// LibTorch's own autograd records the function and plays it back.
    Native,
    /// The compiled forward and pullback, called directly.
    Direct,
    /// The compiled forward and pullback as one node of LibTorch's graph.
    Autograd,
}

/// Figures of one epoch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Epoch {
    /// Mean loss over the batches.
    pub(crate) loss: f64,
    /// Accuracy on the test set afterwards.
    pub(crate) accuracy: f64,
    /// Time for batches, forward, backward and update; the evaluation is not in it.
    pub(crate) seconds: f64,
}

/// One step of gradient descent; gives the loss.
pub(crate) fn step(path: Path, p: &Parameters, data: &Dataset, rows: &[i64]) -> Tensor {
    let (x, y) = data.batch(rows);
    let [w1, b1, w2, b2] = &p.tensors;
    // Native gradients are taken without accumulation into `.grad`, which is the faster way for LibTorch too.
    let pull = |value: Tensor| {
        let g = Tensor::run_backward(&[&value], &[w1, b1, w2, b2], false, false);
        let g: [Tensor; 4] = g.try_into().expect("four parameters");
        (value.detach(), g)
    };
    let (value, gradients) = match path {
        Path::Native => pull(loss(&x, &y, w1, b1, w2, b2)),
        Path::Autograd => pull(loss::autograd(&x, &y, w1, b1, w2, b2)),
        Path::Direct => {
            let (value, c) = loss::value_and_grad(&x, &y, w1, b1, w2, b2);
            (value, [c.w1, c.b1, c.w2, c.b2])
        }
    };
    p.descend(gradients, RATE);
    value
}

/// One pass over the training set; the rest of a last incomplete batch is left out.
pub(crate) fn epoch(path: Path, p: &Parameters, data: &Dataset, seed: u64) -> Epoch {
    let order = data.order(seed + 1);
    let mut total = 0.0;
    let batches = order.chunks_exact(BATCH);
    let count = batches.len();
    let start = Instant::now();
    for rows in batches {
        total += step(path, p, data, rows).double_value(&[]);
    }
    let seconds = start.elapsed().as_secs_f64();
    Epoch {
        loss: total / count as f64,
        accuracy: data.accuracy(|x| p.scores(x)),
        seconds,
    }
}

/// Tensor storage that one step takes from LibTorch's allocator, after a first step that compiles.
pub(crate) fn storage_per_step(path: Path, p: &Parameters, data: &Dataset) -> StorageUse {
    let order = data.order(0);
    let _ = step(path, p, data, &order[..BATCH]);
    measure_storage(|| drop(step(path, p, data, &order[..BATCH]))).1
}

/// The median.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut v: Vec<f64> = values.collect();
    v.sort_by(f64::total_cmp);
    match v.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => v[n / 2],
        n => (v[n / 2 - 1] + v[n / 2]) / 2.0,
    }
}
