//! The page of `tune --report`: throughput against slowdown (DSN 2012, figure 15 and table III).

use idlewise::report::{Chart, Page, Scale, Section, Table};
use idlewise::tune::{Arrivals, FrontierPoint, upper_edge};
use idlewise::{Bytes, Rate};

use crate::simulate::seconds;

/// Mean slowdowns at which the table looks, in seconds.
const GOALS: [f64; 5] = [0.000_25, 0.000_5, 0.001, 0.002, 0.004];

/// The page; `plan` is the table that the command prints, `point` the plan's slowdown and throughput.
pub fn page(
    title: String,
    lead: String,
    words: String,
    plan: Table,
    frontier: &[FrontierPoint],
    point: (f64, f64),
    arrivals: Arrivals,
) -> Page {
    let in_megabytes = |points: Vec<(f64, f64)>| points.into_iter().map(|(x, y)| (x, y / 1e6)).collect();
    let chart = Chart {
        x: ("mean slowdown".into(), Scale::LogSeconds),
        y: ("throughput, MB/s".into(), Scale::Linear),
        lines: curves(frontier).into_iter().map(|(name, points)| (name, in_megabytes(points))).collect(),
        dots: vec![("the plan".into(), in_megabytes(vec![point]))],
        marks: Vec::new(),
        small: false,
    };
    let choice =
        Section { heading: "The plan and what is usual".into(), text: words, table: plan, ..Section::default() };
    let safe = match arrivals {
        Arrivals::Recorded => "",
        Arrivals::AnyMoment => {
            " Slowdowns are those that a goal must allow for foreground requests at other moments than recorded (--any-moment)."
        }
    };
    let figure = Section {
        heading: "Throughput against slowdown (DSN 2012, figure 15)".into(),
        text: "Each line is what one way of choosing sizes reaches with its wait well chosen; of growing sizes the best growth \
               of those tried. The larger the slowdown that is allowed, the larger the best size."
            .to_string()
            + safe,
        table: table(frontier),
        drawings: vec![(String::new(), chart.html())],
        ..Section::default()
    };
    Page { title, lead, sections: vec![choice, figure] }
}

/// A name and the upper edge of each size and each way of growing.
fn curves(frontier: &[FrontierPoint]) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut names: Vec<String> = frontier.iter().map(name).collect();
    names.dedup();
    let mut seen = Vec::new();
    names.retain(|name| !seen.contains(name) && (seen.push(name.clone()), true).1);
    let curve = |wanted: &String| {
        let edge = upper_edge(frontier.iter().filter(|point| name(point) == *wanted).cloned());
        edge.iter().map(|point| (point.mean_slowdown_s, point.throughput_bytes_per_s)).collect()
    };
    names.iter().map(|name| (name.clone(), curve(name))).collect()
}

fn name(point: &FrontierPoint) -> String {
    match point.policy {
        "fixed" => Bytes(point.request_size_bytes).to_string(),
        grown => grown.into(),
    }
}

fn table(frontier: &[FrontierPoint]) -> Table {
    let mut table = Table { head: vec!["mean slowdown up to".into()], rows: Vec::new() };
    let curves = curves(frontier);
    table.head.extend(curves.iter().map(|(name, _)| name.clone()));
    for goal in GOALS {
        let best = |points: &[(f64, f64)]| {
            let within = points.iter().filter(|point| point.0 <= goal).map(|point| point.1);
            within.max_by(f64::total_cmp).map_or("-".into(), |rate| Rate(rate as u64).to_string())
        };
        let mut row = vec![seconds(goal)];
        row.extend(curves.iter().map(|(_, points)| best(points)));
        table.rows.push(row);
    }
    table
}
