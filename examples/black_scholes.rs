//! Prices of options and their sensitivities (the "Greeks"), each by one gradient, against the closed forms.
//!
//! `cargo cotangent run --release --example black_scholes`

use cotangent::differentiable;
use std::f64::consts::PI;

/// Density of the normal distribution.
fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// The normal distribution: a power series that runs until its terms no longer count.
fn normal(x: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (x, x, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        odd += 2.0;
        term *= x * x / odd;
        sum += term;
    }
    0.5 + sum * density(x)
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Call,
    Put,
}

/// Price of a European option.
#[differentiable(wrt(spot, strike, volatility, rate, years))]
fn price(kind: Kind, spot: f64, strike: f64, volatility: f64, rate: f64, years: f64) -> f64 {
    let spread = volatility * years.sqrt();
    let d1 = ((spot / strike).ln() + (rate + 0.5 * volatility * volatility) * years) / spread;
    let (d2, discounted) = (d1 - spread, strike * (-rate * years).exp());
    match kind {
        Kind::Call => spot * normal(d1) - discounted * normal(d2),
        Kind::Put => discounted * normal(-d2) - spot * normal(-d1),
    }
}

/// Delta, dual delta, vega, rho and the slope in time, in closed form.
fn greeks(kind: Kind, spot: f64, strike: f64, volatility: f64, rate: f64, years: f64) -> [f64; 5] {
    let sign = match kind {
        Kind::Call => 1.0,
        Kind::Put => -1.0,
    };
    let spread = volatility * years.sqrt();
    let d1 = ((spot / strike).ln() + (rate + 0.5 * volatility * volatility) * years) / spread;
    let (d2, discount) = (d1 - spread, (-rate * years).exp());
    let vega = spot * density(d1) * years.sqrt();
    let held = strike * discount * normal(sign * d2);
    [
        sign * normal(sign * d1),
        -sign * discount * normal(sign * d2),
        vega,
        sign * years * held,
        vega * volatility / (2.0 * years) + sign * rate * held,
    ]
}

fn main() {
    println!(
        "{:<18}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}",
        "", "price", "delta", "dual delta", "vega", "rho", "d/dyears"
    );
    let mut worst = 0.0f64;
    for kind in [Kind::Call, Kind::Put] {
        for strike in [80.0, 100.0, 120.0] {
            let (spot, volatility, rate, years) = (100.0, 0.25, 0.03, 1.5);
            let (value, g) = price::value_and_grad(kind, spot, strike, volatility, rate, years);
            let found = [g.spot, g.strike, g.volatility, g.rate, g.years];
            print!("{:<18}{value:>11.4}", format!("{kind:?}, strike {strike}"));
            found.iter().for_each(|greek| print!("{greek:>11.4}"));
            println!();
            let expected = greeks(kind, spot, strike, volatility, rate, years);
            let error = found
                .iter()
                .zip(expected)
                .map(|(a, b)| (a - b).abs() / b.abs().max(1.0));
            worst = error.fold(worst, f64::max);
        }
    }
    println!("largest relative difference from the closed forms: {worst:.1e}");
    assert!(worst < 1e-11, "gradients are the closed forms");
}
