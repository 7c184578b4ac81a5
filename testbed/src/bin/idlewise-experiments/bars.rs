//! Bars in groups, as in figure 6 of DSN 2012. Text takes its colour from the page, as in the other charts.

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 360.0;
/// Room on the left, above, on the right and below what is drawn.
const MARGINS: [f64; 4] = [60.0, 34.0, 10.0, 76.0];
/// The first colours of the other charts.
const COLOURS: [&str; 3] = ["#0072b2", "#d55e00", "#009e73"];
const GREY: &str = "#808080";

/// A chart of bars.
pub struct Bars {
    /// What the bars show, with its unit.
    pub axis: &'static str,
    /// What the bars of a group are.
    pub series: Vec<&'static str>,
    /// Names, and a bar for each series.
    pub groups: Vec<(String, Vec<Bar>)>,
}

/// A height and how far it may be off, if there is a bar.
pub type Bar = Option<(f64, f64)>;

impl Bars {
    /// The drawing.
    pub fn svg(&self) -> String {
        let [left, top, right, bottom] = MARGINS;
        let (width, height) = (WIDTH - left - right, HEIGHT - top - bottom);
        let bars = self.groups.iter().flat_map(|(_, bars)| bars.iter().flatten());
        let (step, steps) = step(bars.map(|(value, error)| value + error).fold(0.0, f64::max));
        let y = |value: f64| top + height * (1.0 - value / (step * steps));
        let mut svg = format!("<svg class=\"chart\" role=\"img\" viewBox=\"0 0 {WIDTH} {HEIGHT}\">\n");
        let mut add = |text: String| svg.push_str(&text);
        for line in 0..=steps as u32 {
            let value = (step * f64::from(line) * 1e6).round() / 1e6;
            let at = y(value);
            add(format!("<path d=\"M{left} {at:.1}h{width}\" stroke=\"{GREY}\" stroke-opacity=\"0.3\"/>\n"));
            add(text(left - 6.0, at + 4.0, "end", 12, &format!("{value}")));
        }
        let slot = width / self.groups.len().max(1) as f64;
        let thick = slot * 0.84 / self.series.len().max(1) as f64;
        for (group, (name, bars)) in self.groups.iter().enumerate() {
            let begin = left + slot * (group as f64 + 0.08);
            for (series, bar) in bars.iter().enumerate() {
                let Some((value, error)) = *bar else { continue };
                let (x, colour) = (begin + thick * series as f64, COLOURS[series % COLOURS.len()]);
                let (at, middle) = (y(value), x + thick / 2.0);
                let tall = top + height - at;
                add(format!(
                    "<rect x=\"{x:.1}\" y=\"{at:.1}\" width=\"{thick:.1}\" height=\"{tall:.1}\" fill=\"{colour}\"/>\n"
                ));
                if error > 0.0 {
                    let (high, low) = (y(value + error), y((value - error).max(0.0)));
                    add(format!(
                        "<path d=\"M{middle:.1} {high:.1}V{low:.1}\" stroke=\"{GREY}\" stroke-width=\"2\"/>\n"
                    ));
                }
                add(text(middle, y(value + error) - 3.0, "middle", 9, &format!("{value:.1}")));
            }
            let (x, below) = (left + slot * (group as f64 + 0.5), top + height + 14.0);
            let name = escaped(name);
            add(format!(
                "<text transform=\"translate({x:.1} {below:.1}) rotate(-30)\" text-anchor=\"end\" \
                 font-size=\"11\">{name}</text>\n"
            ));
        }
        for (series, name) in self.series.iter().enumerate() {
            let (x, colour) = (left + 190.0 * series as f64 + 90.0, COLOURS[series % COLOURS.len()]);
            add(format!("<rect x=\"{x}\" y=\"8\" width=\"14\" height=\"10\" fill=\"{colour}\"/>\n"));
            add(text(x + 20.0, 17.0, "start", 12, name));
        }
        add(text(4.0, 17.0, "start", 12, self.axis));
        svg + "</svg>\n"
    }
}

/// A round distance between lines, and how many of them hold `highest`.
fn step(highest: f64) -> (f64, f64) {
    let rough = highest.max(1e-9) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|k| k * power).into_iter().find(|&step| step >= rough).unwrap_or(rough);
    (step, (highest * 1.04 / step).ceil().max(1.0))
}

fn text(x: f64, y: f64, anchor: &str, size: u32, words: &str) -> String {
    let words = escaped(words);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{words}</text>\n")
}

fn escaped(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bar_is_drawn_and_lines_are_round() {
        assert_eq!((step(13.0), step(0.9)), ((5.0, 3.0), (0.2, 5.0)));
        let groups = vec![("a<b".into(), vec![Some((1.0, 0.1)), None]), ("c".into(), vec![Some((2.0, 0.0)); 2])];
        let svg = Bars { axis: "MB/s", series: vec!["x", "y"], groups }.svg();
        assert_eq!(svg.matches("<rect").count(), 3 + 2, "{svg}");
        assert!(svg.contains("a&lt;b") && svg.ends_with("</svg>\n"));
    }
}
