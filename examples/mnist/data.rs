//! The data set, and the order of its batches.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use tch::{Kind, Tensor};

/// Images as rows of 784 floats in 0..1, labels as one-hot rows of ten.
pub(crate) struct Dataset {
    /// What it is called.
    pub(crate) name: String,
    /// Training images, `[n, 784]`.
    pub(crate) images: Tensor,
    /// Training labels, `[n, 10]`.
    pub(crate) one_hot: Tensor,
    test_images: Tensor,
    test_labels: Tensor,
}

impl Dataset {
    /// Loads the four files from a folder: the one given, or the one that `cargo xtask setup` fills.
    pub(crate) fn load(folder: Option<&Path>, limit: Option<i64>) -> anyhow::Result<Self> {
        let (name, folder) = match folder {
            Some(f) => ("data set".to_string(), f.to_owned()),
            None => cached().context("no data set found; run `cargo xtask setup`, or name a folder with --data")?,
        };
        let set = tch::vision::mnist::load_dir(&folder)
            .with_context(|| format!("cannot read the data set in {}", folder.display()))?;
        let n = limit.unwrap_or(i64::MAX).min(set.train_images.size()[0]);
        if n < crate::train::BATCH as i64 {
            bail!("at least {} images make a batch", crate::train::BATCH);
        }
        Ok(Self {
            name,
            images: set.train_images.narrow(0, 0, n).contiguous(),
            one_hot: set.train_labels.narrow(0, 0, n).onehot(10).to_kind(Kind::Float),
            test_images: set.test_images,
            test_labels: set.test_labels,
        })
    }

    /// Number of training images.
    pub(crate) fn train_len(&self) -> i64 {
        self.images.size()[0]
    }

    /// Number of test images.
    pub(crate) fn test_len(&self) -> i64 {
        self.test_images.size()[0]
    }

    /// A permutation of the training images, the same for the same seed on every machine.
    pub(crate) fn order(&self, seed: u64) -> Vec<i64> {
        let mut order: Vec<i64> = (0..self.train_len()).collect();
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        for i in (1..order.len()).rev() {
            // xorshift64*; see Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016.
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let x = state.wrapping_mul(0x2545_F491_4F6C_DD1D);
            order.swap(i, (x >> 33) as usize % (i + 1));
        }
        order
    }

    /// Copies of the images and labels of one batch.
    pub(crate) fn batch(&self, rows: &[i64]) -> (Tensor, Tensor) {
        let rows = Tensor::from_slice(rows);
        (self.images.index_select(0, &rows), self.one_hot.index_select(0, &rows))
    }

    /// Fraction of the test images that a classifier gets right.
    pub(crate) fn accuracy(&self, scores: impl Fn(&Tensor) -> Tensor) -> f64 {
        let right = scores(&self.test_images).argmax(-1, false).eq_tensor(&self.test_labels);
        right.to_kind(Kind::Double).mean(Kind::Double).double_value(&[])
    }
}

/// The folder that set-up fills: MNIST, or Fashion-MNIST where MNIST could not be had.
fn cached() -> Option<(String, PathBuf)> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache")))?
        .join("cotangent");
    let found = [("MNIST", "mnist"), ("Fashion-MNIST", "fashion-mnist")];
    let folder = |dir: &str| Some(cache.join(dir)).filter(|f| f.join("train-images-idx3-ubyte").is_file());
    found
        .into_iter()
        .find_map(|(name, dir)| Some((name.to_string(), folder(dir)?)))
}
