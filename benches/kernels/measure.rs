//! Medians of interleaved runs.

use crate::{Size, Workload};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Seconds for one run of each.
pub(crate) struct Times {
    pub(crate) primal: f64,
    pub(crate) gradient: f64,
    pub(crate) by_hand: Option<f64>,
}

/// Runs the three in turn, several times.
pub(crate) fn measured(workload: &mut Workload, size: Size) -> Times {
    let (least, patience) = match size {
        Size::Small => (1, Duration::ZERO),
        Size::Full => (5, Duration::from_secs(3)),
    };
    let (mut primal, mut gradient, mut by_hand) = (vec![], vec![], vec![]);
    let start = Instant::now();
    while primal.len() < least || (start.elapsed() < patience && primal.len() < 1000) {
        primal.push(seconds(|| _ = black_box((workload.primal)())));
        gradient.push(seconds(|| _ = black_box((workload.gradient)())));
        if let Some(run) = &mut workload.by_hand {
            by_hand.push(seconds(|| _ = black_box(run())));
        }
    }
    Times {
        primal: median(primal),
        gradient: median(gradient),
        by_hand: (!by_hand.is_empty()).then(|| median(by_hand)),
    }
}

fn seconds(run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_secs_f64()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
