//! The page of `trace stats --report`.

use idlewise::report::{Chart, Page, Scale, Section};
use idlewise::trace::stats::Histogram;

use super::{Report, note, numbers, rows, spreads};

/// The numbers, and a chart of each distribution.
pub fn page(report: &Report) -> Page {
    let seen = &report.all.seen;
    let mut sections = vec![
        Section { heading: "In numbers".into(), table: numbers(&report.all), ..Section::default() },
        Section {
            heading: "Means, percentiles and maxima".into(),
            text: note(&report.all),
            table: spreads(&report.all),
            ..Section::default()
        },
        over_time(report),
        distribution(
            "Sizes",
            "bytes",
            Scale::Log,
            &[("reads", &seen.ops[0].sizes), ("writes", &seen.ops[1].sizes)],
            1.0,
        ),
        distribution("Times between arrivals", "time", Scale::LogSeconds, &[("arrivals", &seen.between_arrivals)], 1e9),
        distribution(
            "Response times",
            "time",
            Scale::LogSeconds,
            &[
                ("arrival to completion (Q2C)", &seen.q2c),
                ("arrival to issue (Q2D)", &seen.q2d),
                ("issue to completion (D2C)", &seen.d2c),
            ],
            1e9,
        ),
        distribution(
            "Queue depth, share of the time",
            "requests in flight",
            Scale::Linear,
            &[("depth", &seen.depth)],
            1.0,
        ),
    ];
    sections.retain(|section| !section.table.rows.is_empty() || !section.drawings.is_empty());
    if !report.volumes.is_empty() {
        let volumes = rows(&report.volumes);
        sections.insert(2, Section { heading: "Volumes".into(), table: volumes, ..Section::default() });
    }
    Page {
        title: format!("Requests of {}", report.trace),
        lead: format!("Format {}; {} bad records left out.", report.format, report.bad_records),
        sections,
    }
}

fn over_time(report: &Report) -> Section {
    let rates = report.all.seen.timeline.rates();
    let line = |op: usize| rates.iter().map(|(at, rates)| (*at, rates[op])).collect::<Vec<_>>();
    let chart = Chart {
        x: ("seconds".into(), Scale::Linear),
        y: ("requests per second".into(), Scale::Linear),
        lines: vec![("reads".into(), line(0)), ("writes".into(), line(1))],
        dots: Vec::new(),
        marks: Vec::new(),
        small: false,
    };
    Section {
        heading: "Requests over time".into(),
        drawings: vec![(String::new(), chart.html())],
        ..Section::default()
    }
}

/// Cumulative distributions of numbers that are to be divided by `unit`; nothing without any.
fn distribution(heading: &str, x: &str, scale: Scale, of: &[(&str, &Histogram)], unit: f64) -> Section {
    let line = |(name, histogram): &(&str, &Histogram)| {
        let points = histogram.shares().into_iter().map(|(value, share)| (value as f64 / unit, share));
        (name.to_string(), points.collect::<Vec<_>>())
    };
    let lines: Vec<_> = of.iter().map(line).filter(|(_, points)| !points.is_empty()).collect();
    let chart = Chart {
        x: (x.into(), scale),
        y: ("share that is no more".into(), Scale::Share),
        lines,
        dots: Vec::new(),
        marks: Vec::new(),
        small: false,
    };
    let drawings = if chart.lines.is_empty() { Vec::new() } else { vec![(String::new(), chart.html())] };
    Section { heading: heading.into(), drawings, ..Section::default() }
}
