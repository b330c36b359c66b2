//! Optimal control of a heat equation: which heaters, and when, warm a plate to a wanted pattern? The simulation is
//! ordinary Rust; its gradient through all time steps drives a descent. The plate is drawn to
//! `target/heat_control.svg`.
//!
//! `cargo cotangent run --release --example heat_control`

use anyhow::Result;
use cotangent::differentiable;
use plotters::prelude::*;

/// Cells along an edge of the plate.
const SIDE: usize = 24;
/// Time steps.
const STEPS: usize = 60;
/// Steps between changes of the heaters' power.
const HOLD: usize = 15;
/// Heaters along an edge: each warms a square of cells.
const HEATERS: usize = 8;
/// Diffusion in a step; below a quarter, so that the scheme is stable.
const DIFFUSION: f64 = 0.2;

/// The plate after all steps. `power` has one number per heater and period.
fn simulate(power: &[f64]) -> Vec<f64> {
    let mut plate = vec![0.0; SIDE * SIDE];
    let mut next = plate.clone();
    for step in 0..STEPS {
        let now = &power[step / HOLD * HEATERS * HEATERS..];
        for row in 0..SIDE {
            for column in 0..SIDE {
                // Beyond the edge is ice.
                let at = |r: usize, c: usize| if r < SIDE && c < SIDE { plate[r * SIDE + c] } else { 0.0 };
                let here = at(row, column);
                let around = at(row.wrapping_sub(1), column)
                    + at(row + 1, column)
                    + at(row, column.wrapping_sub(1))
                    + at(row, column + 1);
                let heater = row * HEATERS / SIDE * HEATERS + column * HEATERS / SIDE;
                next[row * SIDE + column] = here + DIFFUSION * (around - 4.0 * here) + 0.05 * now[heater];
            }
        }
        std::mem::swap(&mut plate, &mut next);
    }
    plate
}

/// How far the plate is from what is wanted, and a little for the energy.
#[differentiable(wrt(power))]
fn cost(power: &[f64], wanted: &[f64]) -> f64 {
    let plate = simulate(power);
    let misfit: f64 = plate.iter().zip(wanted).map(|(p, w)| (p - w) * (p - w)).sum();
    misfit + 1e-4 * power.iter().map(|p| p * p).sum::<f64>()
}

/// A ring.
fn wanted() -> Vec<f64> {
    let centre = (SIDE - 1) as f64 / 2.0;
    let ring = |i: usize| {
        let radius = ((i / SIDE) as f64 - centre).hypot((i % SIDE) as f64 - centre);
        (-((radius - 7.0) / 2.0).powi(2)).exp()
    };
    (0..SIDE * SIDE).map(ring).collect()
}

/// The largest difference of some elements of the gradient from central differences.
fn error(power: &[f64], wanted: &[f64]) -> f64 {
    let gradient = cost::grad(power, wanted).power;
    let error = |i: usize| {
        let at = |h: f64| {
            let mut moved = power.to_vec();
            moved[i] += h;
            cost(&moved, wanted)
        };
        (gradient[i] - (at(1e-4) - at(-1e-4)) / 2e-4).abs()
    };
    (0..power.len()).step_by(37).map(error).fold(0.0, f64::max)
}

fn draw(plates: &[(&str, &[f64])], file: &str) -> Result<()> {
    let area = SVGBackend::new(file, (300 * plates.len() as u32, 330)).into_drawing_area();
    area.fill(&WHITE)?;
    for (panel, (title, plate)) in area.split_evenly((1, plates.len())).iter().zip(plates) {
        let mut chart = ChartBuilder::on(panel)
            .margin(8)
            .caption(*title, ("sans-serif", 18))
            .build_cartesian_2d(0..SIDE, 0..SIDE)?;
        chart.draw_series(plate.iter().enumerate().map(|(i, heat)| {
            let (row, column) = (i / SIDE, i % SIDE);
            let heat = (heat.clamp(0.0, 1.0) * 255.0) as u8;
            let colour = RGBColor(heat, heat / 3, 255 - heat);
            Rectangle::new([(column, row), (column + 1, row + 1)], colour.filled())
        }))?;
    }
    area.present()?;
    Ok(())
}

fn main() -> Result<()> {
    let wanted = wanted();
    let mut power = vec![0.5; STEPS / HOLD * HEATERS * HEATERS];
    let error = error(&power, &wanted);
    println!("largest difference from central differences: {error:.1e}");
    assert!(error < 1e-7, "the gradient through all steps is exact");
    let first = cost(&power, &wanted);
    // Descent with momentum (Nesterov's).
    let mut before = power.clone();
    for iteration in 0..400 {
        let k = iteration as f64 / (iteration as f64 + 3.0);
        let ahead: Vec<f64> = power.iter().zip(&before).map(|(p, b)| p + k * (p - b)).collect();
        let (value, gradient) = cost::value_and_grad(&ahead, &wanted);
        before = power;
        power = ahead.iter().zip(&gradient.power).map(|(p, g)| p - 0.02 * g).collect();
        if iteration % 50 == 0 {
            println!("iteration {iteration:>3}: cost {value:.5}");
        }
    }
    let last = cost(&power, &wanted);
    println!("cost before {first:.4}, after {last:.4}");
    assert!(last < 0.1 * first, "the heaters have learnt the pattern");
    let plot = "target/heat_control.svg";
    std::fs::create_dir_all("target")?;
    draw(&[("wanted", &wanted), ("reached", &simulate(&power))], plot)?;
    println!("plot: {plot}");
    Ok(())
}
