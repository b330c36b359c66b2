//! Shape: functions that are marked as known operations: products of matrices, softmax, convolution and the like.
//! Hard: their bodies are not differentiated, what is kept must last until the pullback is gone, and large products go to
//! another library.
use cotangent::differentiable;

/// Relative tolerance. CASE_RTOL loosens it for a finite-difference reference run.
fn rtol() -> f64 {
    std::env::var("CASE_RTOL")
        .ok()
        .and_then(|s| s.parse().ok())
        .unwrap_or(1e-9)
}

#[track_caller]
fn close_all(got: &[f64], want: &[f64]) {
    assert_eq!(got.len(), want.len());
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!(
            (g - w).abs() <= rtol() * w.abs().max(1.0),
            "element {i}: got {g:?}, want {w:?}"
        );
    }
}

/// The bodies are written again without the marks, and differentiated as they are.
macro_rules! twice {
    ($(#[op($op:ident)] fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block)*) => {
        mod known {
            $(#[cotangent::op($op)] pub fn $name($($arg: $ty),*) -> $ret $body)*
        }
        mod plain {
            $(pub fn $name($($arg: $ty),*) -> $ret $body)*
        }
    };
}

twice! {
    #[op(matmul)]
    fn product(a: &[f64], b: &[f64], m: usize, k: usize, n: usize) -> Vec<f64> {
        let mut c = vec![0.0; m * n];
        for i in 0..m {
            for j in 0..n {
                c[i * n + j] = (0..k).map(|l| a[i * k + l] * b[l * n + j]).sum();
            }
        }
        c
    }

    #[op(softmax)]
    fn shares(x: &[f64], columns: usize) -> Vec<f64> {
        let mut y: Vec<f64> = x.iter().map(|x| x.exp()).collect();
        for row in y.chunks_mut(columns) {
            let total: f64 = row.iter().sum();
            row.iter_mut().for_each(|y| *y /= total);
        }
        y
    }

    #[op(conv2d)]
    fn correlation(x: &[f64], w: &[f64], input: [usize; 3], kernel: [usize; 3]) -> Vec<f64> {
        let ([channels, height, width], [many, down, across]) = (input, kernel);
        let mut y = vec![];
        for o in 0..many {
            for r in 0..=height - down {
                for c in 0..=width - across {
                    let mut sum = 0.0;
                    for i in 0..channels * down * across {
                        let (channel, (i, j)) = (i / (down * across), (i / across % down, i % across));
                        let weight = w[((o * channels + channel) * down + i) * across + j];
                        sum += weight * x[(channel * height + r + i) * width + c + j];
                    }
                    y.push(sum);
                }
            }
        }
        y
    }

    #[op(logsumexp)]
    fn total(x: &[f64]) -> f64 {
        x.iter().map(|x| x.exp()).sum::<f64>().ln()
    }

    #[op(dot)]
    fn inner(x: &[f64], y: &[f64]) -> f64 {
        x.iter().zip(y).map(|(x, y)| x * y).sum()
    }

    #[op(mean)]
    fn average(x: &[f64]) -> f64 {
        x.iter().sum::<f64>() / x.len() as f64
    }

    #[op(sum)]
    fn altogether(x: &[f64]) -> f64 {
        x.iter().sum()
    }

    #[op(tanh)]
    fn squashed(x: &[f64]) -> Vec<f64> {
        x.iter().map(|x| x.tanh()).collect()
    }

    #[op(sigmoid)]
    fn gated(x: &[f64]) -> Vec<f64> {
        x.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect()
    }

    #[op(softplus)]
    fn softened(x: &[f64]) -> Vec<f64> {
        x.iter().map(|x| x.exp().ln_1p()).collect()
    }

    #[op(relu)]
    fn positive(x: &[f64]) -> Vec<f64> {
        x.iter().map(|x| if *x > 0.0 { *x } else { 0.0 }).collect()
    }
}

macro_rules! model {
    ($name:ident of $ops:ident) => {
        #[differentiable]
        fn $name(x: &[f64], w: &[f64], n: usize) -> f64 {
            use $ops::*;
            let mut h = product(x, &w[..n * n], x.len() / n, n, n);
            h = positive(&squashed(&h));
            let p = shares(&h, n);
            let image = correlation(&softened(x), &w[..4], [1, x.len() / n, n], [1, 2, 2]);
            h.iter_mut().for_each(|h| *h *= 0.5);
            inner(&p, &gated(x)) + total(&image) * average(x) + altogether(&h) + p[0] * p[1]
        }
    };
}

model!(marked of known);
model!(written of plain);

fn arguments(rows: usize, n: usize) -> (Vec<f64>, Vec<f64>) {
    let numbers = |count: usize, k: usize| (0..count).map(move |i| ((i * k) % 23) as f64 / 16.0 - 0.7).collect();
    (numbers(rows * n, 7), numbers(n * n, 5))
}

#[test]
fn gradients_are_those_of_the_bodies() {
    for (rows, n) in [(3, 4), (40, 30)] {
        let (x, w) = arguments(rows, n);
        let (known, plain) = (marked::value_and_grad(&x, &w, n), written::value_and_grad(&x, &w, n));
        close_all(&[known.0], &[plain.0]);
        close_all(&known.1.x, &plain.1.x);
        close_all(&known.1.w, &plain.1.w);
    }
}

#[test]
fn tangents_agree_and_pullbacks_can_be_called_again() {
    let (x, w) = arguments(3, 4);
    let along = || (x.iter().map(|x| 1.0 - x).collect(), w.iter().map(|w| 2.0 * w).collect());
    let (dx, dw): (Vec<f64>, Vec<f64>) = along();
    let (_, known) = marked::jvp(
        &x,
        &w,
        4,
        marked::Tangents {
            x: dx.clone(),
            w: dw.clone(),
        },
    );
    let (_, pullback) = marked::vjp(&x, &w, 4);
    let (once, again) = (pullback.call(1.0), pullback.call(2.0));
    let inner = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let slope = inner(&once.x, &dx) + inner(&once.w, &dw);
    close_all(
        &[slope, inner(&again.x, &dx) + inner(&again.w, &dw)],
        &[known, 2.0 * known],
    );
}

#[differentiable]
fn square(x: &[f64], n: usize) -> f64 {
    known::product(x, x, n, n, n).iter().sum()
}

#[test]
fn slices_of_other_lengths_are_told() {
    let failed = std::panic::catch_unwind(|| square::grad(&[1.0, 2.0, 3.0], 2).x).unwrap_err();
    let text = failed.downcast_ref::<String>().expect("a message");
    let want = "the first factor of `matmul` has 3 elements, and its dimensions [2, 2] make 4";
    assert!(text.contains(want), "{text}");
    close_all(&square::grad(&[1.0, 2.0, 3.0, 4.0], 2).x, &[7.0, 11.0, 9.0, 13.0]);
}
