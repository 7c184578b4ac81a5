//! Charts as SVG. Text takes its colour from the page, so that one drawing serves light and dark.

use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Nanos;

/// One line of a distribution chart.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What the legend calls it.
    pub label: String,
    /// Samples, in any order.
    pub samples: Vec<f64>,
}

/// What an axis shows, and how its labels are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Seconds, logarithmic.
    LogSeconds,
    /// Numbers, logarithmic.
    Log,
    /// Shares of one, from 0 to 1.
    Share,
    /// Numbers.
    Linear,
}

/// A chart of lines.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Name and scale of the horizontal axis.
    pub x: (String, Scale),
    /// Name and scale of the vertical axis.
    pub y: (String, Scale),
    /// A name and its points, in order; points that a logarithm does not have are left out.
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
    /// Heights at which a dashed line goes across.
    pub marks: Vec<f64>,
    /// One of several beside each other: smaller, and without a legend.
    pub small: bool,
}

const SIZE: (u32, u32) = (860, 400);
const SMALL: (u32, u32) = (420, 220);
const LEGEND: u32 = 200;
/// Told apart by people who see colours differently, on white and on black.
const COLOURS: [RGBColor; 12] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 160, 233),
    RGBColor(200, 140, 0),
    RGBColor(140, 110, 90),
    RGBColor(120, 120, 200),
    RGBColor(170, 30, 60),
    RGBColor(60, 90, 60),
    RGBColor(150, 150, 40),
    RGBColor(90, 60, 130),
];
const GREY: RGBColor = RGBColor(128, 128, 128);

/// The cumulative distribution of some samples in seconds, on a logarithmic axis (DSN 2012, figure 7). Empty without a
/// sample above zero.
pub fn cdf_chart(x_label: &str, curves: &[Curve]) -> String {
    let line = |curve: &Curve| (curve.label.clone(), steps(&sorted(&curve.samples)));
    Chart {
        x: (x_label.into(), Scale::LogSeconds),
        y: ("share of requests".into(), Scale::Share),
        lines: curves.iter().map(line).collect(),
        marks: Vec::new(),
        small: false,
    }
    .svg()
}

impl Scale {
    fn is_log(self) -> bool {
        matches!(self, Self::LogSeconds | Self::Log)
    }

    /// Where a value is on the axis, if it is.
    fn place(self, value: f64) -> Option<f64> {
        let place = if self.is_log() { value.log10() } else { value };
        place.is_finite().then_some(place)
    }

    fn label(self, place: f64) -> String {
        match self {
            Self::LogSeconds => Nanos((10f64.powf(place) * 1e9).round() as u64).to_string(),
            Self::Log if (-2.0..5.0).contains(&place) => format!("{}", (10f64.powf(place) * 1e4).round() / 1e4),
            Self::Log => format!("1e{}", place.round()),
            Self::Share => format!("{:.0} %", place * 100.0),
            Self::Linear => format!("{}", (place * 1e4).round() / 1e4),
        }
    }

    /// The ends of an axis that shows all of these places, and how many labels it has.
    fn range(self, places: impl Iterator<Item = f64>) -> Option<(f64, f64, usize)> {
        let (low, high) = places.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), place| (l.min(place), h.max(place)));
        if low > high {
            return None;
        }
        Some(match self {
            Self::Share => (0.0, if high > 0.5 { 1.0 } else { 0.5 }, 6),
            Self::Linear => {
                let (low, high) = (low.min(0.0), if high > low.min(0.0) { high } else { low + 1.0 });
                (low, high + (high - low) * 0.05, 6)
            }
            // Whole powers of ten, so that each label is one.
            _ => (low.floor(), high.ceil().max(low.floor() + 1.0), (high.ceil() - low.floor()) as usize + 1),
        })
    }
}

impl Chart {
    /// The drawing; empty if there is no point to draw.
    pub fn svg(&self) -> String {
        let place = |&(x, y): &(f64, f64)| Some((self.x.1.place(x)?, self.y.1.place(y)?));
        let lines: Vec<Vec<(f64, f64)>> =
            self.lines.iter().map(|(_, points)| points.iter().filter_map(place).collect()).collect();
        let marks: Vec<f64> = self.marks.iter().filter_map(|&mark| self.y.1.place(mark)).collect();
        let points = || lines.iter().flatten();
        let x = self.x.1.range(points().map(|point| point.0));
        let y = self.y.1.range(points().map(|point| point.1).chain(marks.iter().copied()));
        let (Some(x), Some(y)) = (x, y) else { return String::new() };
        let mut svg = String::new();
        let size = if self.small { SMALL } else { SIZE };
        self.draw(&mut svg, size, &lines, &marks, x, y).expect("drawing into memory does not fail");
        // The page gives the text its colour and the drawing its width.
        svg.replace(&format!("width=\"{}\" height=\"{}\"", size.0, size.1), "class=\"chart\" role=\"img\"")
    }

    fn draw(
        &self,
        svg: &mut String,
        size: (u32, u32),
        lines: &[Vec<(f64, f64)>],
        marks: &[f64],
        x: (f64, f64, usize),
        y: (f64, f64, usize),
    ) -> Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::with_string(svg, size).into_drawing_area();
        let legend = if self.small || self.lines.len() < 2 { 0 } else { LEGEND };
        let (plot, names) = root.split_horizontally(size.0 - legend);
        let font = if self.small { 11 } else { 14 };
        let mut chart = ChartBuilder::on(&plot)
            .margin(10)
            .margin_right(24)
            .x_label_area_size(if self.small { 34 } else { 44 })
            .y_label_area_size(if self.small { 52 } else { 68 })
            .build_cartesian_2d(x.0..x.1, y.0..y.1)?;
        let mut mesh = chart.configure_mesh();
        mesh.axis_style(GREY)
            .bold_line_style(GREY.mix(0.25))
            .light_line_style(TRANSPARENT)
            .x_desc(&self.x.0)
            .y_desc(&self.y.0)
            .x_labels(x.2.min(if self.small { 6 } else { 10 }))
            .y_labels(y.2.min(if self.small { 5 } else { 10 }))
            .label_style(("sans-serif", font))
            .x_label_formatter(&|&place| self.x.1.label(place))
            .y_label_formatter(&|&place| self.y.1.label(place))
            .draw()?;
        for &mark in marks {
            let dashes = DashedLineSeries::new([(x.0, mark), (x.1, mark)], 4, 4, GREY.stroke_width(1));
            chart.draw_series(dashes)?;
        }
        for (index, points) in lines.iter().enumerate() {
            self.draw_line(&mut chart, points, COLOURS[index % COLOURS.len()])?;
        }
        let drawn = self.lines.iter().enumerate().filter(|(index, _)| legend > 0 && !lines[*index].is_empty());
        for (place, (index, (name, _))) in drawn.enumerate() {
            let (height, colour) = (24 + 22 * place as i32, COLOURS[index % COLOURS.len()]);
            names.draw(&PathElement::new([(0, height), (22, height)], colour.stroke_width(3)))?;
            let style = ("sans-serif", font).into_text_style(&names).pos(Pos::new(HPos::Left, VPos::Center));
            names.draw(&Text::new(shortened(name), (28, height), style))?;
        }
        root.present()?;
        Ok(())
    }

    fn draw_line<'a, B: DrawingBackend + 'a>(
        &self,
        chart: &mut ChartContext<'a, B, Cartesian2d<RangedCoordf64, RangedCoordf64>>,
        points: &[(f64, f64)],
        colour: RGBColor,
    ) -> Result<(), Box<dyn std::error::Error>>
    where
        B::ErrorType: 'static,
    {
        chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
        if let [point] = points {
            chart.draw_series([Circle::new(*point, 3, colour.filled())])?;
        }
        Ok(())
    }
}

/// What fits beside the chart.
fn shortened(name: &str) -> String {
    const FITS: usize = 24;
    if name.chars().count() <= FITS { name.into() } else { name.chars().take(FITS - 1).chain(['…']).collect() }
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

    #[test]
    fn every_scale_draws_whatever_it_is_given() {
        let points = vec![(0.0, -1.0), (1e-9, 0.0), (1.0, f64::NAN), (2.0, 1e300), (3.0, 5.0)];
        for x in [Scale::LogSeconds, Scale::Log, Scale::Share, Scale::Linear] {
            for y in [Scale::LogSeconds, Scale::Log, Scale::Share, Scale::Linear] {
                let lines = vec![("a".to_string(), points.clone()), ("b".to_string(), vec![(4.0, 4.0)])];
                let chart = Chart { x: ("x".into(), x), y: ("y".into(), y), lines, marks: vec![0.1], small: false };
                assert!(chart.svg().ends_with("</svg>\n"), "{x:?} {y:?}");
            }
        }
    }
}
