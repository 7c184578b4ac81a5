//! Heat maps as SVG.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::legend::{Swatch, described, legend};

/// A value for each place of a grid.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// Name of the horizontal axis and what its columns are.
    pub x: (String, Vec<String>),
    /// Name of the vertical axis and what its rows are, from below.
    pub y: (String, Vec<String>),
    /// For each column all rows: a value from 0, pale, to 1, deep.
    pub cells: Vec<f64>,
    /// What the palest and the deepest cell are.
    pub scale: [String; 2],
    /// For each cell whether it is out of bounds, which has a colour of its own.
    pub beyond: Vec<bool>,
    /// What it is to be out of bounds.
    pub beyond_what: String,
    /// Shapes at columns and rows, which may be between two.
    pub marks: Vec<(Shape, f64, f64)>,
}

/// What marks a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// ◆
    Diamond,
    /// ■
    Square,
    /// ●
    Circle,
    /// ▲
    Triangle,
}

const SIZE: (u32, u32) = (560, 420);
const PALE: [f64; 3] = [238.0, 243.0, 248.0];
const DEEP: [f64; 3] = [0.0, 84.0, 148.0];
const PALE_BEYOND: [f64; 3] = [252.0, 226.0, 205.0];
const DEEP_BEYOND: [f64; 3] = [176.0, 66.0, 0.0];
const GREY: RGBColor = RGBColor(128, 128, 128);
/// Half the size of a mark.
const MARK: i32 = 7;

impl HeatMap {
    /// The drawing and its scale; empty without cells.
    pub fn html(&self) -> String {
        let mut svg = String::new();
        if self.cells.is_empty() {
            return svg;
        }
        self.draw(&mut svg).expect("drawing into memory does not fail");
        let [low, high] = &self.scale;
        let [pale, deep] = [PALE, DEEP].map(|colour| between(colour, colour, 0.0));
        let mut scale = vec![(Swatch::Scale(pale, deep), format!("{low} to {high}"))];
        if self.beyond.contains(&true) {
            let [pale, deep] = [PALE_BEYOND, DEEP_BEYOND].map(|colour| between(colour, colour, 0.0));
            scale.push((Swatch::Scale(pale, deep), self.beyond_what.clone()));
        }
        let title = format!("{} by {}", self.y.0, self.x.0);
        let description = format!("{} columns and {} rows, from {low} to {high}", self.x.1.len(), self.y.1.len());
        described(&svg, SIZE, "chart", &title, &description) + &legend(&scale)
    }

    fn draw(&self, svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
        let root = SVGBackend::with_string(svg, SIZE).into_drawing_area();
        let (columns, rows) = (self.x.1.len(), self.y.1.len());
        let mut chart = ChartBuilder::on(&root)
            .margin(10)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(0.0..columns as f64, 0.0..rows as f64)?;
        chart
            .configure_mesh()
            .disable_mesh()
            .axis_style(GREY)
            .x_desc(&self.x.0)
            .y_desc(&self.y.0)
            .x_labels(0)
            .y_labels(0)
            .label_style(("sans-serif", 13))
            .draw()?;
        chart.draw_series(self.cells.iter().zip(&self.beyond).enumerate().map(|(index, (&value, &beyond))| {
            let (x, y) = ((index / rows) as f64, (index % rows) as f64);
            let (pale, deep) = if beyond { (PALE_BEYOND, DEEP_BEYOND) } else { (PALE, DEEP) };
            Rectangle::new([(x, y), (x + 1.0, y + 1.0)], between(pale, deep, value).filled())
        }))?;
        let style = |horizontal, vertical| {
            ("sans-serif", 11).into_text_style(&root).pos(Pos::new(horizontal, vertical)).color(&GREY)
        };
        // A label for each fourth place, and for the last.
        let labelled = |count: usize| (0..count).filter(move |k| k % 4 == 0 && k + 3 < count || k + 1 == count);
        let plot = chart.plotting_area();
        let pixel = |x: f64, y: f64| plot.map_coordinate(&(x, y));
        for k in labelled(columns) {
            let (x, y) = pixel(k as f64 + 0.5, 0.0);
            root.draw(&Text::new(self.x.1[k].clone(), (x, y + 4), style(HPos::Center, VPos::Top)))?;
        }
        for k in labelled(rows) {
            let (x, y) = pixel(0.0, k as f64 + 0.5);
            root.draw(&Text::new(self.y.1[k].clone(), (x - 5, y), style(HPos::Right, VPos::Center)))?;
        }
        for &(shape, x, y) in &self.marks {
            let (x, y) = pixel(x + 0.5, y + 0.5);
            let (fill, line) = (WHITE.filled(), BLACK.stroke_width(2));
            match shape {
                Shape::Circle => {
                    root.draw(&Circle::new((x, y), MARK, fill))?;
                    root.draw(&Circle::new((x, y), MARK, line))?;
                }
                _ => {
                    let corners = corners(shape, x, y);
                    root.draw(&Polygon::new(corners[1..].to_vec(), fill))?;
                    root.draw(&PathElement::new(corners, line))?;
                }
            }
        }
        root.present()?;
        Ok(())
    }
}

fn corners(shape: Shape, x: i32, y: i32) -> Vec<(i32, i32)> {
    let turned = [(0, -MARK - 2), (MARK + 2, 0), (0, MARK + 2), (-MARK - 2, 0), (0, -MARK - 2)];
    let straight = [(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)].map(|(dx, dy)| (dx * (MARK - 1), dy * (MARK - 1)));
    let up = [(0, -MARK - 1), (MARK + 1, MARK), (-MARK - 1, MARK), (0, -MARK - 1)];
    let corners: &[(i32, i32)] = match shape {
        Shape::Diamond => &turned,
        Shape::Triangle => &up,
        _ => &straight,
    };
    corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect()
}

fn between(pale: [f64; 3], deep: [f64; 3], value: f64) -> RGBColor {
    let value = if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
    let [red, green, blue] = std::array::from_fn(|k| (pale[k] + (deep[k] - pale[k]) * value).round() as u8);
    RGBColor(red, green, blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_and_mark_is_drawn() {
        let names = |count: usize| (0..count).map(|k| format!("<{k}>")).collect::<Vec<_>>();
        let map = HeatMap {
            x: ("I".into(), names(5)),
            y: ("T".into(), names(3)),
            cells: (0..15).map(|k| f64::from(k) / 7.0 - 0.5).chain([f64::NAN]).take(15).collect(),
            scale: ["1 %".into(), "9 %".into()],
            beyond: (0..15).map(|k| k > 9).collect(),
            beyond_what: "more than 7 %".into(),
            marks: vec![
                (Shape::Diamond, 0.5, 2.0),
                (Shape::Square, 0.0, 2.0),
                (Shape::Circle, 1.0, 0.0),
                (Shape::Triangle, 3.0, 1.0),
            ],
        };
        let svg = map.html();
        assert!(svg.matches("<rect").count() >= 15 && svg.matches("<circle").count() == 2, "{svg}");
        assert!(svg.contains("&lt;4&gt;") && svg.contains("class=\"chart\""));
        assert!(svg.contains("linear-gradient(to right, #eef3f8, #005494)\"></i>1 % to 9 %</li>"), "{svg}");
        assert!(svg.contains("</i>more than 7 %</li>") && svg.contains("<title>T by I</title>"), "{svg}");
        let within = HeatMap { beyond: vec![false; 15], ..map.clone() };
        assert!(!within.html().contains("more than 7 %"));
        assert_eq!(HeatMap { cells: Vec::new(), ..map }.html(), "");
    }
}
