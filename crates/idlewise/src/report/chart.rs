//! Charts as SVG. Text takes its colour from the page, so that one drawing serves light and dark.

use plotters::prelude::*;

use super::legend::{Swatch, described, legend, lies_under};
use crate::Nanos;

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
    /// The same of points that no line joins, drawn above the lines.
    pub dots: Vec<(String, Vec<(f64, f64)>)>,
    /// Heights at which a dashed line goes across.
    pub marks: Vec<f64>,
    /// One of several beside each other: smaller, and without a legend.
    pub small: bool,
}

const SIZE: (u32, u32) = (760, 400);
const SMALL: (u32, u32) = (420, 220);
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
type Points = Vec<(f64, f64)>;
/// The ends of an axis, and how many labels it has.
type Axis = (f64, f64, usize);

const GREY: RGBColor = RGBColor(128, 128, 128);

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

    /// From where to where these places go, in words.
    fn span(self, name: &str, places: Vec<f64>) -> String {
        let low = places.iter().copied().fold(f64::INFINITY, f64::min);
        let high = places.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        format!("{name} from {} to {}", self.label(low), self.label(high))
    }

    /// The ends of an axis that shows all of these places, and how many labels it has.
    fn range(self, places: impl Iterator<Item = f64>) -> Option<Axis> {
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
            // Labels are whole powers of ten. Where there are two of them, the axis need not end at one.
            _ => {
                let (begin, end) = (round_below(low), -round_below(-high));
                let labels = end.floor() - begin.ceil() + 1.0;
                if labels >= 2.0 {
                    (begin, end, labels as usize)
                } else {
                    let (begin, end) = (low.floor(), high.ceil().max(low.floor() + 1.0));
                    (begin, end, (end - begin) as usize + 1)
                }
            }
        })
    }
}

/// The next of 1, 2 and 5 times a power of ten from above, as its logarithm.
fn round_below(place: f64) -> f64 {
    let steps = [0.0, 2f64.log10(), 5f64.log10()].map(|step| place.floor() + step);
    steps.into_iter().rfind(|&step| step <= place + 1e-9).unwrap_or(place.floor())
}

impl Chart {
    /// The drawing and its legend; empty if there is no point to draw.
    pub fn html(&self) -> String {
        let place = |&(x, y): &(f64, f64)| Some((self.x.1.place(x)?, self.y.1.place(y)?));
        let placed = |all: &[(String, Points)]| -> Vec<Points> {
            all.iter().map(|(_, points)| points.iter().filter_map(place).collect()).collect()
        };
        let (lines, dots) = (placed(&self.lines), placed(&self.dots));
        let marks: Vec<f64> = self.marks.iter().filter_map(|&mark| self.y.1.place(mark)).collect();
        let points = || lines.iter().chain(&dots).flatten();
        let x = self.x.1.range(points().map(|point| point.0));
        let y = self.y.1.range(points().map(|point| point.1).chain(marks.iter().copied()));
        let (Some(x), Some(y)) = (x, y) else { return String::new() };
        let mut svg = String::new();
        let (size, class) = if self.small { (SMALL, "chart small") } else { (SIZE, "chart") };
        self.draw(&mut svg, size, (&lines, &dots), &marks, x, y).expect("drawing into memory does not fail");
        let title = format!("{} by {}", self.y.0, self.x.0);
        let (of_x, of_y) = (points().map(|point| point.0).collect(), points().map(|point| point.1).collect());
        let description =
            format!("{}{}, {}", self.names(), self.x.1.span(&self.x.0, of_x), self.y.1.span(&self.y.0, of_y));
        described(&svg, size, class, &title, &description) + &self.legend(&lines, &dots, x, y)
    }

    /// What is drawn, for a description.
    fn names(&self) -> String {
        let names: Vec<&str> = self.lines.iter().chain(&self.dots).map(|(name, _)| name.as_str()).collect();
        if names.iter().all(|name| name.is_empty()) { String::new() } else { names.join(", ") + ": " }
    }

    /// What each colour means, and which lines are not seen for others; nothing where there is only one thing to see.
    fn legend(&self, lines: &[Points], dots: &[Points], x: Axis, y: Axis) -> String {
        if self.small || self.lines.len() + self.dots.len() < 2 {
            return String::new();
        }
        let pixels = |points: &Points| -> Points {
            let scaled = |(at, length): (f64, u32), ends: Axis| (at - ends.0) / (ends.1 - ends.0) * f64::from(length);
            points.iter().map(|&(px, py)| (scaled((px, SIZE.0), x), scaled((py, SIZE.1), y))).collect()
        };
        let drawn: Vec<Points> = lines.iter().map(pixels).collect();
        let name = |index: usize| {
            let under = (index + 1..drawn.len()).find(|&later| lies_under(&drawn[index], &drawn[later]));
            let under = under.map(|later| format!(" (under {})", self.lines[later].0));
            self.lines[index].0.clone() + &under.unwrap_or_default()
        };
        let of_lines = (0..lines.len()).filter(|&index| !lines[index].is_empty());
        let of_lines = of_lines.map(|index| (swatch(&lines[index], colour(index)), name(index)));
        let of_dots = (0..dots.len()).filter(|&index| !dots[index].is_empty());
        let of_dots = of_dots.map(|index| (Swatch::Dot(colour(lines.len() + index)), self.dots[index].0.clone()));
        legend(&of_lines.chain(of_dots).collect::<Vec<_>>())
    }

    fn draw(
        &self,
        svg: &mut String,
        size: (u32, u32),
        (lines, dots): (&[Points], &[Points]),
        marks: &[f64],
        x: Axis,
        y: Axis,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::with_string(svg, size).into_drawing_area();
        let font = if self.small { 11 } else { 14 };
        let mut chart = ChartBuilder::on(&root)
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
            chart.draw_series(LineSeries::new(points.iter().copied(), colour(index).stroke_width(2)))?;
        }
        let lone = lines.iter().map(|points| if points.len() == 1 { &points[..] } else { &[] });
        for (index, points) in lone.chain(dots.iter().map(Vec::as_slice)).enumerate() {
            // A rim of white and black is seen on any ground; among many dots it would hide others.
            let (radius, rim) = if points.len() == 1 { (6, 3) } else { (4, 1) };
            for &point in points {
                chart.draw_series([
                    Circle::new(point, radius + rim, BLACK.filled()),
                    Circle::new(point, radius + rim - 1, WHITE.filled()),
                    Circle::new(point, radius, colour(index).filled()),
                ])?;
            }
        }
        root.present()?;
        Ok(())
    }
}

fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

fn swatch(points: &Points, colour: RGBColor) -> Swatch {
    if points.len() == 1 { Swatch::Dot(colour) } else { Swatch::Line(colour) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scale_draws_whatever_it_is_given() {
        let points = vec![(0.0, -1.0), (1e-9, 0.0), (1.0, f64::NAN), (2.0, 1e300), (3.0, 5.0)];
        for x in [Scale::LogSeconds, Scale::Log, Scale::Share, Scale::Linear] {
            for y in [Scale::LogSeconds, Scale::Log, Scale::Share, Scale::Linear] {
                let lines = vec![("a".to_string(), points.clone()), ("b".to_string(), vec![(4.0, 4.0)])];
                let dots = vec![("c".into(), points.clone())];
                let chart =
                    Chart { x: ("x".into(), x), y: ("y".into(), y), lines, dots, marks: vec![0.1], small: false };
                let html = chart.html();
                assert!(html.contains("</svg>\n<ul class=\"legend\">") && html.ends_with("</ul>\n"), "{x:?} {y:?}");
            }
        }
    }

    fn chart(lines: Vec<(String, Points)>, dots: Vec<(String, Points)>) -> Chart {
        let (x, y) = (("wait <s>".into(), Scale::LogSeconds), ("share".into(), Scale::Share));
        Chart { x, y, lines, dots, marks: Vec::new(), small: false }
    }

    #[test]
    fn a_chart_is_told_in_words_and_a_lone_dot_has_a_rim() {
        let line = |name: &str, factor: f64| {
            (name.to_string(), (1..50).map(|k| (f64::from(k) * 1e-3, f64::from(k) * factor)).collect())
        };
        let html = chart(
            vec![line("below", 0.01), line("above", 0.01), line("other", 0.02)],
            vec![("the plan".into(), vec![(0.02, 0.3)])],
        )
        .html();
        assert!(html.contains("<title>share by wait &lt;s&gt;</title>"), "{html}");
        assert!(html.contains("<desc>below, above, other, the plan: wait &lt;s&gt; from 1.00 ms to 49.0 ms, share from 1 % to 98 %</desc>"), "{html}");
        assert!(html.contains(">below (under above)</li>") && html.contains(">above</li>"), "{html}");
        assert!(html.contains("class=\"dot\"") && html.matches("<circle").count() == 3, "{html}");
        assert!(html.contains("#FFFFFF") && html.contains("#000000"), "{html}");
        assert!(!chart(vec![line("one", 0.01)], Vec::new()).html().contains("legend"));
    }

    #[test]
    fn an_axis_begins_near_its_first_value() {
        let ends = |low: f64, high: f64| Scale::Log.range([low.log10(), high.log10()].into_iter()).unwrap();
        let (begin, end, labels) = ends(0.06, 110.0);
        assert!((begin - 0.05f64.log10()).abs() < 1e-9 && (end - 200f64.log10()).abs() < 1e-9 && labels == 4);
        assert_eq!(ends(0.06, 0.5), (-2.0, 0.0, 3));
        assert_eq!(ends(1.0, 1.0), (0.0, 1.0, 2));
        assert_eq!(ends(0.01, 10.0), (-2.0, 1.0, 4));
    }
}
