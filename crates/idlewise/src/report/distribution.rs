//! Distributions of samples as a chart.

use super::{Chart, Scale};

/// One line of a distribution chart.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What the legend calls it.
    pub label: String,
    /// Samples, in any order.
    pub samples: Vec<f64>,
}

/// The cumulative distribution of some samples in seconds, on a logarithmic axis (DSN 2012, figure 7). Empty without a
/// sample above zero.
pub fn cdf_chart(x_label: &str, curves: &[Curve]) -> String {
    let line = |curve: &Curve| (curve.label.clone(), steps(&sorted(&curve.samples)));
    Chart {
        x: (x_label.into(), Scale::LogSeconds),
        y: ("share of requests".into(), Scale::Share),
        lines: curves.iter().map(line).collect(),
        dots: Vec::new(),
        marks: Vec::new(),
        small: false,
    }
    .html()
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
