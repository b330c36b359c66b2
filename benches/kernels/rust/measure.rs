//! Medians of interleaved runs; and whether what was measured is right.

use crate::{Size, Workload};
use cpu_time::ProcessTime;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Seconds of the processor for one run of the primal, the gradient, and the gradient by hand, in turn, several times.
pub(crate) fn measured(workload: &mut Workload, size: Size) -> [f64; 3] {
    let (least, patience) = size.pick((1, Duration::ZERO), (5, Duration::from_millis(2500)));
    let mut times = [const { vec![] }; 3];
    let start = Instant::now();
    while times[0].len() < least || (start.elapsed() < patience && times[0].len() < 1000) {
        times[0].push(seconds(|| _ = black_box((workload.primal)())));
        times[1].push(seconds(|| _ = black_box((workload.gradient)())));
        times[2].push(seconds(|| _ = black_box((workload.by_hand)())));
    }
    times.map(median)
}

fn seconds(run: impl FnOnce()) -> f64 {
    let start = ProcessTime::now();
    run();
    start.elapsed().as_secs_f64()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The gradient is that by hand. Where terms of order one cancel, rounding is larger than the result.
pub(crate) fn check(name: &str, workload: &mut Workload) {
    let (gradient, by_hand) = ((workload.gradient)(), (workload.by_hand)());
    assert_eq!(gradient.len(), by_hand.len(), "{name}: one vector per parameter");
    let largest = by_hand.iter().flatten().fold(1e-30f64, |m, w| m.max(w.abs()));
    for (parameter, (found, wanted)) in gradient.iter().zip(&by_hand).enumerate() {
        assert_eq!(found.len(), wanted.len(), "{name}: parameter {parameter}");
        for (i, (f, w)) in found.iter().zip(wanted).enumerate() {
            assert!(
                (f - w).abs() <= 1e-9 * largest + 1e-13,
                "{name}: parameter {parameter}, element {i}: {f} is not {w}"
            );
        }
    }
}
