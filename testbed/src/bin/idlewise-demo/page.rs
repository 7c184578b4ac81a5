//! What the demo found, as a table, in two sentences and as a page.

use idlewise::Nanos;
use idlewise::report::{Curve, Page, Section, Table, cdf_chart};
use idlewise_testbed::lab::WARM_UP;
use idlewise_testbed::lab::outcome::Outcome;

use crate::Row;

/// Every scrubber; the first row is the foreground alone.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(["", "scrub rate", "mean response", "99 %", "added, mean", "added, longest"]);
    for row in rows {
        let outcome = &row.outcome;
        let added = rows.first().filter(|alone| alone.name != row.name).map(|alone| added(outcome, &alone.outcome));
        let [mean, longest] = added.map_or(["-".into(), "-".into()], |added| added.map(milliseconds));
        let rate = if added.is_some() { outcome.scrub().to_string() } else { "-".into() };
        let response = milliseconds(outcome.response().value);
        table.row([row.name.clone(), rate, response, outcome.percentile(0.99).to_string(), mean, longest]);
    }
    table
}

/// Whether idlewise kept its goal, by the same requests with and without it, and what its own account says.
pub fn verdict(rows: &[Row]) -> String {
    let said = rows.iter().find_map(|row| Some((row, row.outcome.said.as_ref()?)));
    let (Some(alone), Some((row, said))) = (rows.first(), said) else { return String::new() };
    let [mean, longest] = added(&row.outcome, &alone.outcome);
    let kept = |kept: bool| if kept { "kept" } else { "NOT kept" };
    let own = |name: &str| said["measured"][name].as_f64().map_or("unknown".into(), milliseconds);
    format!(
        "The goal: mean slowdown at most 1 ms: {}; longest at most 50 ms: {}. By the same requests with and without\n\
         idlewise; two runs without a scrubber differ by 0.1 ms or so. By idlewise's own account, which began {WARM_UP} s\n\
         earlier, the mean was {} and the longest {}.",
        kept(mean <= GOAL_MEAN),
        kept(longest <= GOAL_LONGEST),
        own("mean_slowdown_s"),
        own("max_slowdown_s"),
    )
}

/// The goal that idlewise is given (`lab::GOAL`), in seconds.
const GOAL_MEAN: f64 = 0.001;
const GOAL_LONGEST: f64 = 0.05;

/// How much longer the same requests took, in seconds: on average, and the one that suffered most.
fn added(outcome: &Outcome, alone: &Outcome) -> [f64; 2] {
    let each = outcome.responses().zip(alone.responses()).map(|(with, without)| with - without);
    [outcome.longer_than(alone).value, each.fold(0.0, f64::max)]
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

/// The page's HTML.
pub fn html(rows: &[Row]) -> String {
    let curve = |row: &Row| Curve { label: row.name.clone(), samples: row.outcome.responses().collect() };
    let curves: Vec<Curve> = rows.iter().map(curve).collect();
    let mut percentiles = Table::new(["", "median", "90 %", "99 %", "longest"]);
    for row in rows {
        let [median, ninety, most, longest] =
            [0.5, 0.9, 0.99, 1.0].map(|share| Nanos::to_string(&row.outcome.percentile(share)));
        percentiles.row([row.name.clone(), median, ninety, most, longest]);
    }
    let cost = Section {
        heading: "What each scrubber got done, and what it cost".into(),
        text: verdict(rows),
        table: table(rows),
        ..Section::default()
    };
    let responses = Section {
        heading: "Response times of the foreground".into(),
        text: "The closer a line is to the one without a scrubber, the less the foreground notices.".into(),
        table: percentiles,
        drawings: vec![(String::new(), cdf_chart("response time", &curves))],
        ..Section::default()
    };
    Page {
        title: "idlewise: a scrub that fits into the gaps".into(),
        lead: "PostgreSQL under pgbench, played on an emulated 15,000 rpm hard disk: alone, and with each scrubber."
            .into(),
        sections: vec![cost, responses],
    }
    .html()
}
