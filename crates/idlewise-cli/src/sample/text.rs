//! What `sample` prints for people.

use idlewise::Nanos;
use idlewise::report::{Table, percent};
use idlewise::sample::MOST_CLUSTERS;

use super::{Report, within};
use crate::simulate::seconds;

/// The representatives, what they say, and what the other ways would.
pub fn text(report: &Report) -> String {
    let responses = match report.response_times {
        "none" => "no response times",
        some => &format!("response times {some}"),
    };
    let head = format!(
        "{} ({}, {responses})\n{} intervals of {}, {} with requests; {}; seed {}\n",
        report.trace,
        report.format,
        report.intervals,
        seconds(report.interval_s),
        report.intervals_with_requests,
        report.features.as_ref().map_or("drawn by lot".into(), |features| format!("compared by {features}")),
        report.seed,
    );
    [head, representatives(report).to_string(), lead(report) + "\n", ways(report).to_string() + &phases(report)]
        .join("\n")
}

/// What is replayed and what that says.
pub fn lead(report: &Report) -> String {
    let replay = format!(
        "{} of {} intervals stand for the trace: {} of its time.",
        report.representatives.len(),
        report.intervals,
        percent(report.share_of_time)
    );
    let estimate = match (report.estimate_mean_response_s, report.true_mean_response_s, report.error) {
        (Some(estimate), Some(truth), Some(error)) => format!(
            "Estimated mean response time {}{}, true {}: an error of {}.",
            seconds(estimate),
            report.half_width_s.map(|half| within(half, estimate)).unwrap_or_default(),
            seconds(truth),
            percent(error)
        ),
        (None, None, _) => {
            let expected = report.expected_error.map(|error| {
                format!(" Its estimate is expected to be off by {} at most, with a confidence of 95 %.", percent(error))
            });
            let silent =
                "The trace has no response times to estimate their mean from: a replay of the plan measures them.";
            format!("{silent}{}", expected.unwrap_or_default())
        }
        _ => "The representatives' response times are not known: a replay of the plan measures them.".into(),
    };
    let end = match report.rule.is_some() && report.k == MOST_CLUSTERS {
        true => " More than so many clusters are not tried: the criterion may be better beyond.",
        false => "",
    };
    format!("{replay} {estimate}{end}")
}

/// The representatives.
pub fn representatives(report: &Report) -> Table {
    let mut table = Table::new(["interval", "begins after", "requests", "stands for", "mean response"]);
    for chosen in &report.representatives {
        table.row([
            chosen.index.to_string(),
            Nanos((chosen.begin_s * 1e9).round() as u64).exact(),
            chosen.requests.to_string(),
            format!("{:.0} ({})", chosen.weight, percent(chosen.weight / report.requests as f64)),
            optional(chosen.mean_response_s, seconds),
        ]);
    }
    table
}

/// The rules for k, and systematic sampling.
pub fn ways(report: &Report) -> Table {
    let mut table = Table::new(["way", "k or samples", "share of time", "estimate", "error"]);
    if report.way == "drawn" {
        table.row([
            "drawn".into(),
            report.k.to_string(),
            percent(report.share_of_time),
            optional(report.estimate_mean_response_s, seconds),
            optional(report.error, percent),
        ]);
    }
    for choice in &report.rules {
        table.row([
            choice.rule.name().into(),
            choice.k.to_string(),
            percent(choice.share_of_time),
            optional(choice.estimate_mean_response_s, seconds),
            optional(choice.error, percent),
        ]);
    }
    for way in &report.systematic {
        table.row([
            format!("systematic, {}", way.name),
            way.samples.to_string(),
            percent(way.share_of_time),
            optional(way.estimate_mean_response_s, seconds),
            optional(way.error, percent),
        ]);
    }
    table
}

fn phases(report: &Report) -> String {
    let Some(phases) = report.phases else { return String::new() };
    format!(
        "\nPhases in which mean response times differ by less than 10 %: {}, {} on average, at most {}.\n",
        phases.count,
        seconds(phases.mean_s),
        seconds(phases.longest_s)
    )
}

fn optional(value: Option<f64>, write: fn(f64) -> String) -> String {
    value.map_or_else(|| "-".into(), write)
}
