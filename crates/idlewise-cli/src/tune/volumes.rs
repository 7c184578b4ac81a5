//! `tune --by-volume`: a row for each volume.

use idlewise::report::Table;
use idlewise::{Bytes, Rate};

use super::{Report, text};
use crate::csv::{cell, csv};
use crate::simulate::seconds;

/// The plans of all volumes, in the order of their names.
pub fn table(reports: &[Report]) -> Table {
    let asks_p99 = asks_p99(reports);
    let head = ["volume", "size", "wait", "rate", "mean"].into_iter().chain(asks_p99.then_some("p99"));
    let mut table = Table { head: head.chain(["max", "pass"]).map(String::from).collect(), rows: Vec::new() };
    for report in reports {
        let (row, summary) = (&report.chosen, &report.chosen.summary);
        let mut cells = vec![
            report.volume.clone().unwrap_or_default() + if notes(report) > 0 { " *" } else { "" },
            Bytes(row.request_size_bytes).to_string() + if report.steps.is_empty() { "" } else { " +" },
            seconds(row.idle_wait_s),
            Rate(summary.throughput_bytes_per_s as u64).to_string(),
            seconds(summary.mean_slowdown_s),
        ];
        cells.extend(asks_p99.then(|| seconds(row.slowdown_p99_s)));
        cells.extend([seconds(summary.max_slowdown_s), text::pass(row)]);
        table.rows.push(cells);
    }
    table
}

fn asks_p99(reports: &[Report]) -> bool {
    reports.iter().any(|report| report.goal.p99_slowdown_s.is_some())
}

/// What there is to be careful about.
fn notes(report: &Report) -> usize {
    report.warnings.len() + usize::from(report.goal_needed_s.is_some())
}

/// All of it.
pub fn text(reports: &[Report]) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let p99 = if asks_p99(reports) { ", p99" } else { "" };
    let capacity = Bytes(first.capacity_bytes).decimal();
    let columns = format!("mean{p99}, max: slowdown; pass: over {capacity}");
    let mut text = format!("{}{}\n\n{columns}\n{}", first.source.line(), text::lead_of_all(first), table(reports));
    if reports.iter().any(|report| !report.steps.is_empty()) {
        text += "\n+: the first of several steps; --json has all.\n";
    }
    if reports.iter().any(|report| notes(report) > 0) {
        text += "\n*: there are notes; --volume NAME or --json shows them, and why the plan is so.\n";
    }
    text
}

/// A line for each volume.
pub fn as_csv(reports: &[Report]) -> String {
    const HEAD: [&str; 15] = [
        "volume",
        "request_size_bytes",
        "idle_wait_s",
        "scrubbed_bytes",
        "throughput_bytes_per_s",
        "mean_slowdown_s",
        "slowdown_p99_s",
        "max_slowdown_s",
        "collisions",
        "collision_rate",
        "utilised_idle",
        "full_pass_s",
        "goal_mean_slowdown_s",
        "goal_p99_slowdown_s",
        "goal_max_slowdown_s",
    ];
    let row = |report: &Report| {
        let (row, s, goal) = (&report.chosen, &report.chosen.summary, &report.goal);
        vec![
            report.volume.clone().unwrap_or_default(),
            row.request_size_bytes.to_string(),
            row.idle_wait_s.to_string(),
            s.scrubbed_bytes.to_string(),
            s.throughput_bytes_per_s.to_string(),
            s.mean_slowdown_s.to_string(),
            row.slowdown_p99_s.to_string(),
            s.max_slowdown_s.to_string(),
            s.collisions.to_string(),
            s.collision_rate.to_string(),
            s.utilised_idle.to_string(),
            cell(row.full_pass_s),
            goal.mean_slowdown_s.to_string(),
            cell(goal.p99_slowdown_s),
            goal.max_slowdown_s.to_string(),
        ]
    };
    csv(&HEAD, reports.iter().map(row))
}
