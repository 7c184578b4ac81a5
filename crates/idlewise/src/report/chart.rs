//! Charts as SVG. Colours are classes of the page, so that one drawing serves light and dark.

use plotters::prelude::*;

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What the legend calls it.
    pub label: String,
    /// Samples, in any order.
    pub samples: Vec<f64>,
}

const SIZE: (u32, u32) = (820, 420);
/// Told apart by people who see colours differently, on white and on black.
const COLOURS: [RGBColor; 4] =
    [RGBColor(0, 114, 178), RGBColor(213, 94, 0), RGBColor(0, 158, 115), RGBColor(204, 121, 167)];
const GREY: RGBColor = RGBColor(128, 128, 128);

/// The cumulative distribution of some samples in seconds, on a logarithmic axis (DSN 2012, figure 7). Empty without a
/// sample above zero.
pub fn cdf_chart(x_label: &str, curves: &[Curve]) -> String {
    let sorted: Vec<Vec<f64>> = curves.iter().map(|curve| sorted(&curve.samples)).collect();
    let low = sorted.iter().filter_map(|s| s.first()).copied().fold(f64::INFINITY, f64::min);
    let high = sorted.iter().filter_map(|s| s.last()).copied().fold(0.0, f64::max);
    if low > high {
        return String::new();
    }
    let mut svg = String::new();
    draw(&mut svg, x_label, curves, &sorted, (low / 1.2, high * 1.2)).expect("drawing into memory does not fail");
    // The page gives the text its colour and the drawing its width.
    svg.replace(&format!("width=\"{}\" height=\"{}\"", SIZE.0, SIZE.1), "class=\"chart\"")
}

type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(svg: &mut String, x_label: &str, curves: &[Curve], sorted: &[Vec<f64>], range: (f64, f64)) -> Drawn {
    let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(48)
        .build_cartesian_2d((range.0..range.1).log_scale(), 0.0..1.0)?;
    chart
        .configure_mesh()
        .axis_style(GREY)
        .bold_line_style(GREY.mix(0.25))
        .light_line_style(TRANSPARENT)
        .x_desc(x_label)
        .y_desc("share of requests")
        .x_label_formatter(&|seconds| crate::Nanos((seconds * 1e9) as u64).to_string())
        .y_labels(6)
        .label_style(("sans-serif", 14))
        .draw()?;
    for (index, (curve, samples)) in curves.iter().zip(sorted).enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let line = LineSeries::new(steps(samples), colour.stroke_width(2));
        chart
            .draw_series(line)?
            .label(&curve.label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], colour.stroke_width(3)));
    }
    chart.configure_series_labels().position(SeriesLabelPosition::LowerRight).label_font(("sans-serif", 14)).draw()?;
    root.present()?;
    Ok(())
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = samples.iter().copied().filter(|&sample| sample > 0.0 && sample.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The points of the distribution, at most some hundreds: nobody sees more.
fn steps(sorted: &[f64]) -> Vec<(f64, f64)> {
    const MOST: usize = 400;
    let count = sorted.len();
    let stride = count.div_ceil(MOST).max(1);
    let picked = (0..count).step_by(stride).chain(count.checked_sub(1));
    picked.map(|index| (sorted[index], (index + 1) as f64 / count as f64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_has_a_line_and_a_label_for_each_curve() {
        let curve = |label: &str, scale: f64| Curve {
            label: label.into(),
            samples: (1..2_000).map(|k| f64::from(k) * scale).collect(),
        };
        let svg = cdf_chart("response time", &[curve("alone", 1e-5), curve("with scrub", 2e-5)]);
        assert!(svg.contains("with scrub") && svg.contains("response time") && svg.contains("class=\"chart\""));
        assert!(svg.matches("<polyline").count() >= 4, "{svg}");
        assert!(svg.len() < 60_000, "{} bytes", svg.len());
        assert_eq!(cdf_chart("x", &[Curve { label: "none".into(), samples: vec![0.0] }]), "");
    }
}
