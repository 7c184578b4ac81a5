//! What a drawing's colours mean, as HTML beside it, which a phone can break into lines; and what screen readers say of it.

use std::fmt::Write;

use plotters::style::RGBColor;

/// How something is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swatch {
    /// As a line.
    Line(RGBColor),
    /// As dots.
    Dot(RGBColor),
    /// As a colour between two.
    Scale(RGBColor, RGBColor),
}

/// A list of swatches and what they mean; nothing for nothing.
pub fn legend(entries: &[(Swatch, String)]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let items = entries.iter().fold(String::new(), |mut items, (swatch, meaning)| {
        let (class, background) = match *swatch {
            Swatch::Line(colour) => ("line", hex(colour)),
            Swatch::Dot(colour) => ("dot", hex(colour)),
            Swatch::Scale(pale, deep) => ("scale", format!("linear-gradient(to right, {}, {})", hex(pale), hex(deep))),
        };
        let meaning = escaped(meaning);
        writeln!(items, "<li><i class=\"{class}\" style=\"background: {background}\"></i>{meaning}</li>")
            .expect("writing into memory does not fail");
        items
    });
    format!("<ul class=\"legend\">\n{items}</ul>\n")
}

/// The drawing with a title and a description, in the size that the page gives it.
pub fn described(svg: &str, (width, height): (u32, u32), class: &str, title: &str, description: &str) -> String {
    let size = format!("width=\"{width}\" height=\"{height}\"");
    let sized = svg.replacen(&size, &format!("class=\"{class}\" role=\"img\""), 1);
    let (begin, rest) = sized.split_at(sized.find('>').map_or(0, |end| end + 1));
    let (title, description) = (escaped(title), escaped(description));
    format!("{begin}\n<title>{title}</title>\n<desc>{description}</desc>{rest}")
}

fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Whether one line, drawn in points, lies under another wherever it goes.
pub fn lies_under(line: &[(f64, f64)], other: &[(f64, f64)]) -> bool {
    /// What nobody sees beside a line of this width.
    const NEAR: f64 = 2.0;
    let covers = |&(x, y): &(f64, f64)| {
        let on = |pair: &[(f64, f64)]| {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            let (dx, dy) = (x1 - x0, y1 - y0);
            let length = dx * dx + dy * dy;
            let along = if length > 0.0 { (((x - x0) * dx + (y - y0) * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
            (x0 + along * dx - x).hypot(y0 + along * dy - y) <= NEAR
        };
        other.windows(2).any(on)
    };
    line.len() > 1 && line.iter().all(covers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_drawings_described() {
        let html = legend(&[(Swatch::Dot(RGBColor(0, 114, 178)), "<plan> & \"all\"".into())]);
        assert!(html.contains("class=\"dot\" style=\"background: #0072b2\""), "{html}");
        assert!(html.contains("&lt;plan&gt; &amp; &quot;all&quot;</li>"), "{html}");
        assert_eq!(legend(&[]), "");
        let svg = described("<svg width=\"8\" height=\"4\" x=\"y\">\n<g/></svg>", (8, 4), "chart", "a<b", "c");
        assert_eq!(
            svg,
            "<svg class=\"chart\" role=\"img\" x=\"y\">\n<title>a&lt;b</title>\n<desc>c</desc>\n<g/></svg>"
        );
    }

    #[test]
    fn a_line_under_another_is_known() {
        let line = [(0.0, 0.0), (50.0, 50.0), (100.0, 100.0)];
        let longer = [(-10.0, -10.0), (120.0, 120.5)];
        assert!(lies_under(&line, &longer) && !lies_under(&longer, &line));
        assert!(!lies_under(&line, &[(0.0, 5.0), (100.0, 105.0)]) && !lies_under(&line[..1], &longer));
    }
}
