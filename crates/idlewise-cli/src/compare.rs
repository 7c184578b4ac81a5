//! `idlewise compare`: policies side by side.

use std::path::{Path, PathBuf};

use anyhow::Context;
use idlewise::Bytes;
use idlewise::idle::Idleness;
use idlewise::policy::POLICIES;
use idlewise::report::{Chart, Page, Scale, Section, Table, percent};
use idlewise::tune::{COMPARED, Comparison, OperatingPoint, chosen_within};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::explore::halves;
use crate::input::{Input, Source, TraceOnDisk, formats_help};
use crate::output::{self, TERMINAL};
use crate::progress::Progress;

/// Compare policies: how much idle time each uses at each collision rate
///
/// The oracle, which knows the future, shows what is possible.
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceOnDisk,

    /// Size of each background request
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    request_size: Bytes,

    /// Policies to compare, by their names in `idlewise simulate --help`
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values = COMPARED)]
    policies: Vec<String>,

    /// Fit policies to this first share of the time, such as 0.5, or to another trace; choose their parameters there, and show what they
    /// then do on the rest or on the trace
    #[arg(long, value_name = "SHARE|TRACE")]
    train: Option<PathBuf>,

    /// Write an HTML page with the figure
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
    /// What policies were fitted to; nothing if that is what they ran on.
    train: Option<String>,
    points: Vec<OperatingPoint>,
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
    let inputs: Vec<_> = arguments.input.paths().into_iter().chain(arguments.train.clone()).collect();
    output::check_all(&inputs, &[arguments.report.as_deref()])?;
    if arguments.request_size < Bytes(512) {
        let why = format!("--request-size {}: no disk has blocks so short: give at least 512B", arguments.request_size);
        return Err(UsageError(why).into());
    }
    let policies = policies(&arguments.policies)?;
    let mut input = arguments.input.read()?;
    let trained = arguments.train.as_ref().map(|train| trained(train, arguments, &mut input)).transpose()?;
    let progress = Progress::new("comparing");
    let comparison = Comparison {
        disks: &input.disks,
        train: trained.as_deref(),
        model: &input.model,
        size: arguments.request_size,
        policies: &policies,
    };
    let points = comparison.points(&|done| progress.share(done));
    drop(progress);
    let train = arguments.train.as_ref().map(|train| train.display().to_string());
    let report = Report { source: input.source, request_size_bytes: arguments.request_size.0, train, points };
    if let Some(path) = &arguments.report {
        output::file(path, &page(&report).html())?;
    }
    if arguments.json {
        output::json(&report)?;
    } else {
        let title = format!(
            "{}idle time used with at most so many collisions per foreground request; requests of {}, simulated on {}\n{}\n\n",
            report.source.line(),
            arguments.request_size,
            report.source.disk,
            fitted(&report)
        );
        output::text(&(title + &table(&report.points).folded(TERMINAL)))?;
    }
    Ok(Exit::Clean)
}

/// The names in the table of policies, each once.
fn policies(asked: &[String]) -> Result<Vec<&'static str>, UsageError> {
    let mut found = Vec::new();
    for name in asked {
        let Some(entry) = POLICIES.get(name) else {
            let known = POLICIES.names().join(", ");
            return Err(UsageError(format!("--policies {name}: no such policy; there are {known}")));
        };
        if !found.contains(&entry.name) {
            found.push(entry.name);
        }
    }
    Ok(found)
}

/// What policies are fitted to, for each disk; of the trace the rest is left where they are fitted to its first part.
fn trained(train: &Path, arguments: &Arguments, input: &mut Input) -> anyhow::Result<Vec<Idleness>> {
    if let Some(share) = train.to_str().and_then(|text| text.parse().ok()) {
        let (first, rest) = halves(&input.disks, share)?;
        input.disks = rest;
        return Ok(first);
    }
    let other = arguments.input.read_other(train)?.disks;
    let matching = |disk: &Idleness| {
        let named = other.iter().find(|other| other.volume == disk.volume);
        // Two disks alone stand for each other, whatever they are called.
        let only = || other.first().filter(|_| other.len() == 1 && input.disks.len() == 1);
        named.or_else(only).cloned().with_context(|| format!("{}: has no volume '{}'", train.display(), disk.volume))
    };
    input.disks.iter().map(matching).collect()
}

/// Whether policies knew what they ran on.
fn fitted(report: &Report) -> String {
    match &report.train {
        Some(train) => {
            let on = match train.parse::<f64>() {
                Ok(_) => format!("policies are fitted to the first {train} of the time and run on the rest"),
                Err(_) => format!("policies are fitted to {train}"),
            };
            format!("{on}; their parameters are chosen there, all but the oracle's, and cells show what they then do: idle time used in %, and collisions in % in brackets")
        }
        None => "parameters are chosen on the trace that policies run on, and AR is fitted to it; --train takes another part".into(),
    }
}

/// The policies that were run, in the order of the table, with their names in the figure.
fn curves(points: &[OperatingPoint]) -> Vec<(&'static str, &'static str)> {
    let mut names: Vec<&str> = Vec::new();
    for point in points.iter().filter(|point| CURVES.iter().all(|(policy, _)| *policy != point.policy)) {
        if !names.contains(&point.policy) {
            names.push(point.policy);
        }
    }
    let known = CURVES.into_iter().filter(|(policy, _)| points.iter().any(|point| point.policy == *policy));
    known.chain(names.into_iter().map(|name| (name, name))).collect()
}

fn table(points: &[OperatingPoint]) -> Table {
    let (curves, trained) = (curves(points), points.iter().any(|point| point.trained.is_some()));
    // The unit is said once.
    let bare = |share| percent(share).trim_end_matches(" %").to_string();
    let mut table = Table { head: vec!["collisions".into()], rows: Vec::new() };
    table.head.extend(curves.iter().map(|(_, name)| name.to_string()));
    for rate in RATES {
        let cell = |(policy, _): &(&str, &str)| {
            chosen_within(points, policy, rate).map_or("-".into(), |point| match point.trained {
                Some(_) => format!("{} ({})", bare(point.utilised_idle), bare(point.collision_rate)),
                None if trained => bare(point.utilised_idle),
                None => percent(point.utilised_idle),
            })
        };
        let mut row = vec![percent(rate)];
        row.extend(curves.iter().map(cell));
        table.rows.push(row);
    }
    table
}

fn page(report: &Report) -> Page {
    let curve = |(policy, name): (&str, &str)| (name.to_string(), chosen(&report.points, policy));
    let chart = Chart {
        x: ("collisions per foreground request".into(), Scale::Log),
        y: ("idle time used".into(), Scale::Share),
        lines: curves(&report.points).into_iter().map(curve).collect(),
        dots: Vec::new(),
        marks: Vec::new(),
        small: false,
    };
    let section = Section {
        heading: "Idle time used against collisions (DSN 2012, figure 14)".into(),
        text: "The higher a line, the more background work a policy gets done for the collisions it causes. The Oracle knows each \
               interval's length; Lossless Waiting uses the intervals that Waiting picks, but from their beginning. What lies between \
               Lossless Waiting and the Oracle is what Waiting picks wrongly; between it and Waiting, what is lost in waiting."
            .into(),
        table: table(&report.points),
        drawings: vec![(String::new(), chart.html())],
        ..Section::default()
    };
    Page {
        title: format!("Policies on {}", report.source.trace),
        lead: format!(
            "Requests of {}, simulated on {}; {}.",
            Bytes(report.request_size_bytes),
            report.source.disk,
            fitted(report)
        ),
        sections: vec![section],
    }
}

/// What a policy does with its parameters well chosen, from few collisions to many: collisions and idle time used.
fn chosen(points: &[OperatingPoint], policy: &str) -> Vec<(f64, f64)> {
    let mut points: Vec<&OperatingPoint> = points.iter().filter(|point| point.policy == policy).collect();
    points.sort_by(|a, b| a.where_chosen().collision_rate.total_cmp(&b.where_chosen().collision_rate));
    let mut best = 0.0;
    points.retain(|point| {
        let better = point.where_chosen().utilised_idle > best;
        best = point.where_chosen().utilised_idle.max(best);
        better
    });
    points.iter().map(|point| (point.collision_rate, point.utilised_idle)).collect()
}
