//! Trains a 784-64-10 network on the full MNIST set three ways, epoch by epoch in turn: with LibTorch's own autograd,
//! with the compiled pullback called directly, and with the compiled pullback inside LibTorch's graph.
//!
//!     cargo cotangent run --release --example mnist -- --epochs 10
//!
//! All three start from the same parameters and see the same batches. The last line is one JSON object.

mod data;
mod model;
mod plot;
mod train;

use clap::Parser;
use data::Dataset;
use indicatif::{ProgressBar, ProgressStyle};
use model::Parameters;
use std::path::PathBuf;
use train::{Epoch, Path, epoch, storage_per_step};

/// Command line.
#[derive(Parser)]
struct Options {
    /// Passes over the training set
    #[arg(long, default_value_t = 2)]
    epochs: usize,
    /// Folder with the four files of the data set, unpacked
    #[arg(long, env = "COTANGENT_MNIST")]
    data: Option<PathBuf>,
    /// Where the plot of loss and accuracy goes
    #[arg(long, default_value = "target/mnist.svg")]
    plot: PathBuf,
    /// Train on the first so many images only
    #[arg(long)]
    limit: Option<i64>,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    tch::set_num_threads(1);
    let data = Dataset::load(options.data.as_deref(), options.limit)?;
    println!(
        "{}: {} training images, {} test images",
        data.name,
        data.train_len(),
        data.test_len()
    );

    let paths = [Path::Native, Path::Direct, Path::Autograd];
    let mut parameters = paths.map(|_| Parameters::new(0));
    // One step each outside of the clock: compiles, and warms every cache alike.
    for (path, p) in paths.into_iter().zip(&Parameters::three(0)) {
        let _ = train::step(path, p, &data, &data.order(0)[..train::BATCH]);
    }
    let mut history: Vec<[Epoch; 3]> = vec![];
    let mut max_param_diff = 0.0;
    let bar = ProgressBar::new((3 * options.epochs) as u64)
        .with_style(ProgressStyle::with_template("{bar:30} {pos}/{len} epochs  {msg}")?);
    for e in 0..options.epochs {
        // Each path takes each place in turn, so that none always runs on a warmer machine.
        let mut results = [Epoch::default(); 3];
        for k in 0..3 {
            let i = (e + k) % 3;
            results[i] = epoch(paths[i], &parameters[i], &data, e as u64);
            bar.inc(1);
            bar.set_message(format!(
                "{:?}: loss {:.4}, accuracy {:.2} %, {:.2} s",
                paths[i],
                results[i].loss,
                100.0 * results[i].accuracy,
                results[i].seconds
            ));
        }
        if e == 0 {
            max_param_diff = parameters[1].max_difference(&parameters[0]);
        }
        history.push(results);
    }
    bar.finish_and_clear();
    for (e, r) in history.iter().enumerate() {
        println!(
            "epoch {:2}   native {:.2} s   direct {:.2} s   autograd {:.2} s   loss {:.4}   accuracy {:.2} %",
            e + 1,
            r[0].seconds,
            r[1].seconds,
            r[2].seconds,
            r[1].loss,
            100.0 * r[1].accuracy
        );
    }
    plot::draw(&options.plot, &history)?;
    println!("plot of loss and accuracy: {}", options.plot.display());

    let storage = paths.map(|p| storage_per_step(p, &Parameters::new(0), &data));
    let seconds = |i: usize| train::median(history.iter().map(|r| r[i].seconds));
    let last = history.last().copied().unwrap_or_default();
    parameters.iter_mut().for_each(|p| p.assert_finite());
    println!(
        "{}",
        serde_json::json!({
            "accuracy": last[1].accuracy,
            "native_accuracy": last[0].accuracy,
            "max_param_diff": max_param_diff,
            "time_ratio": seconds(1) / seconds(0),
            "autograd_path_time_ratio": seconds(2) / seconds(0),
            "peak_storage_ratio": storage[1].peak as f64 / storage[0].peak as f64,
            "epochs": options.epochs,
            "dataset": data.name,
            "native_seconds_per_epoch": seconds(0),
            "peak_bytes": storage.map(|s| s.peak),
            "allocated_bytes_per_step": storage.map(|s| s.allocated),
        })
    );
    Ok(())
}
