//! `tune --by-volume`: a row for each volume.

use idlewise::report::{Table, percent};
use idlewise::{Bytes, Rate};

use super::{Report, text};
use crate::csv::{cell, csv};
use crate::simulate::seconds;

/// The plans of all volumes, in the order of their names.
pub fn table(reports: &[Report]) -> Table {
    let asks_p99 = reports.iter().any(|report| report.goal.p99_slowdown_s.is_some());
    // A goal that is looked for differs from volume to volume.
    let looked_for = reports.iter().any(|report| report.gentlest_for.is_some());
    let head = ["volume", "size", "idle wait", "throughput"].into_iter();
    let head = head.chain(looked_for.then_some("mean goal")).chain(["mean slowdown"]);
    let head = head.chain(asks_p99.then_some("p99 slowdown")).chain(["max slowdown", "collisions", "idle used"]);
    let mut table = Table { head: head.map(String::from).collect(), rows: Vec::new() };
    table.head.extend([text::pass_over(reports), "notes".into()]);
    for report in reports {
        let (row, summary) = (&report.chosen, &report.chosen.summary);
        let mut cells = vec![
            report.volume.clone().unwrap_or_default(),
            Bytes(row.request_size_bytes).to_string() + if report.steps.is_empty() { "" } else { " first" },
            seconds(row.idle_wait_s),
            Rate(summary.throughput_bytes_per_s as u64).to_string(),
        ];
        cells.extend(looked_for.then(|| seconds(report.goal.mean_slowdown_s)));
        cells.push(seconds(summary.mean_slowdown_s));
        cells.extend(asks_p99.then(|| seconds(row.slowdown_p99_s)));
        cells.extend([
            seconds(summary.max_slowdown_s),
            summary.collisions.to_string(),
            percent(summary.utilised_idle),
            text::pass(row),
            notes(report).to_string(),
        ]);
        table.rows.push(cells);
    }
    table
}

/// What there is to be careful about.
fn notes(report: &Report) -> usize {
    report.warnings.len() + usize::from(report.goal_needed_s.is_some())
}

/// All of it.
pub fn text(reports: &[Report]) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let mut text = format!("{}{}\n\n{}", first.source.line(), text::lead_of_all(first), table(reports));
    if reports.iter().any(|report| notes(report) > 0) {
        text += "\nWhat the notes of a volume are, and why its plan is so: the same with --volume NAME, or --json.\n";
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
