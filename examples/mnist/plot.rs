//! A picture of the training: loss and accuracy by epoch, native and compiled.

use crate::train::Epoch;
use plotters::prelude::*;
use std::path::Path;

/// Draws both curves into an SVG file.
pub(crate) fn draw(file: &Path, history: &[[Epoch; 3]]) -> anyhow::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let area = SVGBackend::new(file, (900, 360)).into_drawing_area();
    area.fill(&WHITE)?;
    let (left, right) = area.split_horizontally(450);
    let epochs = history.len() as f64 + 0.5;
    panel(&left, "training loss", epochs, history, |e| e.loss)?;
    panel(&right, "test accuracy", epochs, history, |e| e.accuracy)?;
    area.present()?;
    Ok(())
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    title: &str,
    epochs: f64,
    history: &[[Epoch; 3]],
    of: impl Fn(&Epoch) -> f64,
) -> anyhow::Result<()> {
    let values = || history.iter().flat_map(|r| r[..2].iter().map(&of));
    let (low, high) = values().fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
    let margin = (high - low).max(1e-3) * 0.1;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(50)
        .build_cartesian_2d(0.5..epochs, (low - margin)..(high + margin))?;
    chart.configure_mesh().x_desc("epoch").light_line_style(WHITE).draw()?;
    for (i, (name, colour, width)) in [("native", BLUE, 5), ("compiled", RED, 2)].into_iter().enumerate() {
        let points = history.iter().enumerate().map(|(e, r)| (e as f64 + 1.0, of(&r[i])));
        chart
            .draw_series(LineSeries::new(points, colour.stroke_width(width)).point_size(2))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour.stroke_width(width)));
    }
    chart
        .configure_series_labels()
        .border_style(BLACK)
        .background_style(WHITE)
        .draw()?;
    Ok(())
}
