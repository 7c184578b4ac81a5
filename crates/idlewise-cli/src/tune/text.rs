//! A tuned plan as text for people.

use idlewise::report::Table;
use idlewise::{Bytes, Nanos, Rate};

use super::{Named, Report, Row, StepSeconds, words};
use crate::reliability::years;
use crate::simulate::seconds;

/// The plan and the baselines, under what the columns are.
pub fn table(report: &Report) -> Table {
    let asks_p99 = report.goal.p99_slowdown_s.is_some();
    let head = ["", "size", "wait", "rate", "mean"].into_iter().chain(asks_p99.then_some("p99")).chain(["max", "pass"]);
    let mut table = Table { head: head.map(String::from).collect(), rows: Vec::new() };
    let mut add = |name: &str, row: &Row| {
        let summary = &row.summary;
        let mut cells = vec![
            name.into(),
            Bytes(row.request_size_bytes).to_string(),
            seconds(row.idle_wait_s),
            Rate(summary.throughput_bytes_per_s as u64).to_string(),
            seconds(summary.mean_slowdown_s),
        ];
        cells.extend(asks_p99.then(|| seconds(row.slowdown_p99_s)));
        cells.extend([seconds(summary.max_slowdown_s), pass(row)]);
        table.rows.push(cells);
    };
    add(if report.steps.is_empty() { "plan" } else { "first step" }, &report.chosen);
    if let Some(exact) = &report.exact {
        add("rest's plan", exact);
    }
    for Named { name, row } in &report.baselines {
        let name = match *name {
            name if name.starts_with("fixed-delay") => "fixed delay",
            name if name.starts_with("back-to-back") => "back to back",
            name if name.starts_with("cfq-idle") => "idle class",
            name => name,
        };
        add(name, row);
    }
    table
}

/// What the columns of the table are.
pub fn columns(report: &Report) -> String {
    let p99 = if report.goal.p99_slowdown_s.is_some() { ", p99" } else { "" };
    let delays = "a fixed delay waits between requests";
    format!("mean{p99}, max: slowdown; pass: over {} (--capacity); {delays}", Bytes(report.capacity_bytes).decimal())
}

/// How long a pass takes.
pub fn pass(row: &Row) -> String {
    row.full_pass_s.map_or("never".into(), seconds)
}

/// What was asked for, of every volume.
pub fn lead_of_all(report: &Report) -> String {
    let Some(asked) = &report.gentlest_for else { return lead(report) };
    let rest = report.goal.p99_slowdown_s.map(|p99| format!("p99 slowdown {}, ", seconds(p99))).unwrap_or_default();
    let max = seconds(report.goal.max_slowdown_s);
    format!("goal: {asked}, {rest}max slowdown {max}; simulated on {}{}", report.source.disk, on_the_rest(report))
}

/// What was asked for.
pub fn lead(report: &Report) -> String {
    format!(
        "goal: {}mean slowdown {}, {}max slowdown {}; simulated on {}{}",
        report.gentlest_for.as_ref().map(|asked| format!("{asked}, which takes a ")).unwrap_or_default(),
        seconds(report.goal.mean_slowdown_s),
        report.goal.p99_slowdown_s.map(|p99| format!("p99 slowdown {}, ", seconds(p99))).unwrap_or_default(),
        seconds(report.goal.max_slowdown_s),
        report.source.disk,
        on_the_rest(report),
    )
}

fn on_the_rest(report: &Report) -> &'static str {
    match report.exact {
        Some(_) => "; tuned on the first part of the trace, shown on the rest (rest's plan: tuned on the rest itself)",
        None => "",
    }
}

/// All of it.
pub fn text(report: &Report) -> String {
    let mut text = format!("{}{}\n\n", report.source.line(), lead(report));
    if !report.steps.is_empty() {
        text += &format!("{}\n", steps_table(&report.steps));
    }
    text += &format!("{}\n", words(report));
    text += &format!("\n{}\n{}", columns(report), table(report));
    if let Some(path) = &report.written {
        text += &format!("\nThe plan is in {path}: `idlewise scrub DEVICE --plan {path}` follows it.\n");
        if !report.any_moment {
            text += "It keeps its goal for foreground requests at the recorded moments; with --any-moment also at others.\n";
        }
    } else if report.goal_needed_s.is_none() {
        let safe = if report.any_moment { "" } else { "--any-moment " };
        text += &format!(
            "\nTo follow a plan, write it with {safe}--out plan.toml and run `idlewise scrub DEVICE --plan plan.toml`.\n"
        );
    }
    if let Some(mttdl_s) = report.mttdl_s {
        text += &format!(
            "\nPasses of this length give data in two copies a mean time to data loss of {} (`idlewise reliability --help` has the \
             model).\n",
            years(mttdl_s)
        );
    }
    if let Some(needed) = report.goal_needed_s {
        text += &format!(
            "\nThe goal allows no background work on this trace: a mean slowdown of {} would.\n",
            seconds(needed)
        );
    }
    if !report.warnings.is_empty() {
        text += "\n";
    }
    for warning in &report.warnings {
        text += &format!("Note: {warning}.\n");
    }
    text
}

/// The plan in a sentence, why it is so, and what steps were worth.
pub fn words(report: &Report) -> String {
    let plan = if report.steps.is_empty() {
        format!(
            "Plan: once the disk has been idle for {}, issue requests of {} back to back.",
            // Exact, as a little more or less may cost much more.
            Nanos((report.chosen.idle_wait_s * 1e9).round() as u64).exact(),
            Bytes(report.chosen.request_size_bytes),
        )
    } else {
        let context = report.steps_border_s.map(|border| {
            format!(
                " Intervals up to the mean of {} are short, others long; after each kind it does something else.",
                seconds(border)
            )
        });
        format!("Plan: the steps, by the time that the disk has been idle.{}", context.unwrap_or_default())
    };
    let verdict = report.validation.as_ref().map(words::validated).unwrap_or_default();
    [plan, report.reasons.clone(), verdict].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
}

fn steps_table(steps: &[StepSeconds]) -> Table {
    let mut table = Table::new(["after an interval", "idle for", "requests of"]);
    let context = steps.iter().any(|step| step.after == "long");
    for step in steps {
        let size = step.request_size_bytes.map_or("wait".into(), |size| Bytes(size).to_string());
        table.row([if context { step.after } else { "of any length" }.into(), seconds(step.from_s), size]);
    }
    table
}
