//! `idlewise compare`: policies side by side.

use std::path::PathBuf;

use idlewise::Bytes;
use idlewise::report::{Chart, Page, Scale, Section, Table};
use idlewise::tune::{Point, best_within, compare};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::input::{Source, TraceOnDisk, formats_help};
use crate::output;
use crate::progress::Progress;

/// Compare policies: the idle time that each uses at which rate of collisions, beside what a clairvoyant could
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceOnDisk,

    /// Size of each background request
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    request_size: Bytes,

    /// Write a page with the figure: one HTML file
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    source: Source,
    request_size_bytes: u64,
    points: Vec<Point>,
}

/// Policies in the order of the table, with their names in the figure.
const CURVES: [(&str, &str); 5] = [
    ("oracle", "Oracle"),
    ("lossless-waiting", "Lossless Waiting"),
    ("waiting", "Waiting"),
    ("ar-waiting", "AR + Waiting"),
    ("ar", "AR"),
];
/// Collisions per foreground request at which the table looks.
const RATES: [f64; 7] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check_all(&arguments.input.paths(), &[arguments.report.as_deref()])?;
    if arguments.request_size < Bytes(512) {
        let why = format!("--request-size {}: no disk has blocks so short: give at least 512B", arguments.request_size);
        return Err(UsageError(why).into());
    }
    let input = arguments.input.read()?;
    let progress = Progress::new("comparing");
    let points = compare(&input.disks, &input.model, arguments.request_size, &|done| progress.share(done));
    drop(progress);
    let report = Report { source: input.source, request_size_bytes: arguments.request_size.0, points };
    if let Some(path) = &arguments.report {
        output::file(path, &page(&report).html())?;
    }
    if arguments.json {
        output::json(&report)?;
    } else {
        let title = format!(
            "{}idle time used with at most so many collisions per foreground request; requests of {}, simulated on {}\n\n",
            report.source.line(),
            arguments.request_size,
            report.source.disk
        );
        output::text(&(title + &table(&report.points).to_string()))?;
    }
    Ok(Exit::Clean)
}

fn table(points: &[Point]) -> Table {
    let mut table = Table { head: vec!["collisions".into()], rows: Vec::new() };
    table.head.extend(CURVES.map(|(_, name)| name.to_string()));
    for rate in RATES {
        let cell =
            |(policy, _)| best_within(points, policy, rate).map_or("-".into(), |used| format!("{:.1} %", used * 100.0));
        let mut row = vec![format!("{:.1} %", rate * 100.0)];
        row.extend(CURVES.map(cell));
        table.rows.push(row);
    }
    table
}

fn page(report: &Report) -> Page {
    let curve = |(policy, name): (&str, &str)| {
        let mut points: Vec<(f64, f64)> = report
            .points
            .iter()
            .filter(|point| point.policy == policy)
            .map(|point| (point.collision_rate, point.utilised_idle))
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        (name.to_string(), upper_edge(points))
    };
    let chart = Chart {
        x: ("collisions per foreground request".into(), Scale::Log),
        y: ("idle time used".into(), Scale::Share),
        lines: CURVES.map(curve).into(),
        marks: Vec::new(),
        small: false,
    };
    let section = Section {
        heading: "Figure 14: idle time used against collisions".into(),
        text: "The higher a line, the more background work a policy gets done for the collisions it causes. The Oracle knows each \
               interval's length; Lossless Waiting uses the intervals that Waiting picks, but from their beginning. What lies between \
               Lossless Waiting and the Oracle is what Waiting picks wrongly; between it and Waiting, what is lost in waiting."
            .into(),
        table: table(&report.points),
        drawings: vec![(String::new(), chart.svg())],
        ..Section::default()
    };
    Page {
        title: format!("Policies on {}", report.source.trace),
        lead: format!("Requests of {}, simulated on {}.", Bytes(report.request_size_bytes), report.source.disk),
        sections: vec![section],
    }
}

/// The best so far, from few collisions to many: what a policy gets with its parameters well chosen.
fn upper_edge(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let best = points.into_iter().scan(0.0f64, |best, (rate, used)| {
        *best = best.max(used);
        Some((rate, *best))
    });
    best.collect()
}
