//! The page of `sample --report`: the choice of k, and the intervals over time.

use idlewise::report::{Chart, Page, Scale, Section};
use idlewise::sample::{Criterion, TraceInterval, mean_response};

use super::{Report, Shown, text};

/// A line over time has at most so many points, each the mean of a stretch: nobody sees more.
const STRETCHES: u64 = 600;

/// The page.
pub fn page(report: &Report, intervals: &[TraceInterval]) -> Page {
    let ways = Section {
        heading: "Ways to sample, and what each would estimate".into(),
        text: "drawn is by lot; bic, bic90 and fk cluster intervals and differ in how many clusters they choose. Systematic sampling takes one of every \
               so many intervals, from the offset with the most requests (single) or from ten of them (avg10), with as many \
               samples as an error of 15 % at a confidence of 90 % asks for, or at least 30 (SIGMETRICS 2015, figure 8)."
            .into(),
        table: text::ways(report),
        ..Section::default()
    };
    let clusters = report.rule.map(|rule| Section {
        heading: "How many clusters".into(),
        text: format!(
            "The rule {} chose {} clusters. The lower a criterion, the better; the distortion only falls.",
            rule.name(),
            report.k
        ),
        drawings: criteria(report),
        ..Section::default()
    });
    let time = Section {
        heading: "Intervals over time".into(),
        text: "All intervals with requests, as means over stretches of the trace, and the representatives in order."
            .into(),
        drawings: over_time(report, intervals),
        ..Section::default()
    };
    let representatives =
        Section { heading: "The representatives".into(), table: text::representatives(report), ..Section::default() };
    let file = report.trace.rsplit('/').next().unwrap_or(&report.trace);
    let sections = [Some(ways), clusters, Some(time), Some(representatives)].into_iter().flatten().collect();
    Page { title: format!("Sampling {file}"), lead: text::lead(report), sections }
}

fn criteria(report: &Report) -> Vec<(String, String)> {
    let least = report.criteria.iter().filter_map(|criterion| criterion.bic).fold(f64::INFINITY, f64::min);
    let drawing = |name: &str, value: &dyn Fn(&Criterion) -> Option<f64>| {
        let points = report.criteria.iter().filter_map(|criterion| Some((criterion.k as f64, value(criterion)?)));
        let chart = Chart {
            x: ("clusters".into(), Scale::Linear),
            y: (String::new(), Scale::Linear),
            lines: vec![(name.into(), points.collect())],
            dots: Vec::new(),
            marks: Vec::new(),
            small: true,
        };
        (name.to_string(), chart.html())
    };
    vec![
        drawing("BIC, over its least", &|criterion| Some(criterion.bic? - least)),
        drawing("F_k", &|criterion| Some(criterion.f_k)),
        drawing("distortion", &|criterion| Some(criterion.distortion)),
    ]
}

fn over_time(report: &Report, intervals: &[TraceInterval]) -> Vec<(String, String)> {
    let stretch = report.intervals.div_ceil(STRETCHES).max(1);
    let hours = |index: u64| index as f64 * report.interval_s / 3600.0;
    let chart = |name: &str, scale, all: fn(&[TraceInterval]) -> Option<f64>, one: fn(&Shown) -> Option<f64>| {
        let stretches = intervals.chunk_by(|a, b| a.index / stretch == b.index / stretch);
        let whole = stretches.filter_map(|part| Some((hours(part[0].index / stretch * stretch), all(part)?)));
        let chosen = report.representatives.iter().filter_map(|chosen| Some((hours(chosen.index), one(chosen)?)));
        let chart = Chart {
            x: ("hours since the first request".into(), Scale::Linear),
            y: (name.into(), scale),
            lines: vec![("all intervals".into(), whole.collect())],
            dots: vec![("representatives".into(), chosen.collect())],
            marks: Vec::new(),
            small: false,
        };
        (name.to_string(), chart.html())
    };
    let requests = |part: &[TraceInterval]| {
        Some(part.iter().map(|interval| interval.requests as f64).sum::<f64>() / part.len() as f64)
    };
    let mut drawings =
        vec![chart("requests in an interval", Scale::Log, requests, |chosen| Some(chosen.requests as f64))];
    if report.true_mean_response_s.is_some() {
        drawings.push(chart("mean response time", Scale::LogSeconds, mean_response, |chosen| chosen.mean_response_s));
    }
    drawings
}
