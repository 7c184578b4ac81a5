//! Figure 7 of DSN 2012: response times of a recorded trace played back beside some of the scrubbers.

use std::path::Path;

use anyhow::ensure;
use idlewise::report::{Curve, Section, Table, cdf_chart};

use crate::cells::PLAIN;
use idlewise_testbed::lab::foreground::Replay;
use idlewise_testbed::lab::outcome::Outcome;
use idlewise_testbed::lab::scrubber::Scrubber;
use idlewise_testbed::lab::{Lab, Runs};

/// The demo's trace.
pub const RECORDED: &str = "testbed/traces/pgbench.csv.gz";
/// A production server's, where the folder IDLEWISE_TRACES has it.
const REAL: &str = "blkreplay_linux-mysql.load.gz";
/// What part of it is played: its beginning, in seconds. An end behind any replay.
const PART: [&str; 2] = ["600s", "3600s"];
/// How often a trace is played.
pub const PLAYS: u64 = 3;
/// How much longer than a run of a synthetic load.
pub const LONGER: u64 = 5;

/// A trace that is played.
pub struct Traced {
    /// What it is.
    pub about: &'static str,
    /// Where it is.
    path: String,
}

/// The traces that are there.
pub fn traces(lab: &Lab) -> anyhow::Result<Vec<Traced>> {
    let mut traces =
        vec![Traced { about: "PostgreSQL under pgbench, recorded on a loop device", path: RECORDED.into() }];
    let real = std::env::var_os("IDLEWISE_TRACES").map(|folder| Path::new(&folder).join(REAL));
    if let Some(real) = real.filter(|path| path.exists()) {
        let part = lab.file("real.parquet")?;
        let [from, until] = PART;
        let path = real.display().to_string();
        lab.tool.json(&["trace", "cut", &path, "--from", from, "--until", until, "--out", &part])?;
        traces.push(Traced {
            about: "a production MySQL server (blkreplay's linux-mysql, from 10 min on), places wrapped around",
            path: part,
        });
    }
    Ok(traces)
}

/// The scrubbers compared: name, I/O scheduler and scrubber.
pub fn scrubbers(schedulers: &[String]) -> [(String, String, Scrubber); 5] {
    // The heir of the paper's CFQ, if it is there.
    let heir = schedulers.iter().find(|name| *name == "bfq").map_or(PLAIN, String::as_str);
    let plain = |scrubber: Scrubber| (scrubber.label(), PLAIN.to_string(), scrubber);
    let idle = Scrubber::idle_class(false);
    [
        plain(Scrubber::None),
        (format!("{}, {heir}", idle.label()), heir.into(), idle),
        plain(Scrubber::delayed(0, false)),
        plain(Scrubber::delayed(64, false)),
        plain(Scrubber::Idlewise),
    ]
}

/// Plays a trace beside each of them, and shows what came of it.
pub fn section(lab: &mut Lab, traced: &Traced, schedulers: &[String]) -> anyhow::Result<Section> {
    let (runs, device) = (lab.settings.replays, lab.device.again()?);
    let mut outcomes = Vec::new();
    for (name, scheduler, scrubber) in scrubbers(schedulers) {
        let tool = lab.tool.clone();
        let out = lab.folder.join("replayed.csv");
        let mut replay = Replay { tool: &tool, device: &device, trace: traced.path.clone(), out, writes: true };
        let title = format!("replay, {name}, scheduler {scheduler}");
        let outcome = lab.measure(&title, &mut replay, runs, scrubber, &scheduler)?;
        ensure!(outcome.responses().next().is_some(), "nothing of the trace was played: its beginning is silent");
        outcomes.push((name, outcome));
    }
    Ok(shown(traced, runs, &outcomes))
}

fn shown(traced: &Traced, runs: Runs, outcomes: &[(String, Outcome)]) -> Section {
    let mut table = Table::new([
        "",
        "scrub, MB/s",
        "mean response",
        "runs, ms",
        "longer than alone",
        "median",
        "90 %",
        "99 %",
        "longest",
    ]);
    let mut curves = Vec::new();
    for (name, outcome) in outcomes {
        let [median, ninety, most, longest] = [0.5, 0.9, 0.99, 1.0].map(|share| outcome.percentile(share).to_string());
        let (mean, runs) = (outcome.response().milliseconds(), outcome.by_run());
        let alone = outcomes.first().filter(|(first, _)| first != name);
        let longer = alone.map_or("-".into(), |(_, alone)| outcome.runs_longer_than(alone).milliseconds());
        let rate = outcome.scrub().0 as f64 / 1e6;
        table.row([name.clone(), format!("{rate:.1}"), mean, runs, longer, median, ninety, most, longest]);
        // The legend has no room for the I/O scheduler.
        let short = name.split(',').next().unwrap_or(name);
        let label = if rate > 0.05 { format!("{short}, {rate:.1} MB/s") } else { short.into() };
        curves.push(Curve { label, samples: outcome.responses().collect() });
    }
    let chosen = outcomes.iter().find_map(|(_, outcome)| outcome.chosen());
    let chosen = chosen.map(|chosen| format!(" idlewise chose {chosen}.")).unwrap_or_default();
    Section {
        heading: format!("Figure 7: replay of {}", traced.about),
        text: format!(
            "The first {} s, open loop, {} times, in every run the same; writes are written. ± is the \
             standard error between the runs. The scrubber's throughput is in the legend.{chosen}",
            runs.seconds, runs.count
        ),
        table,
        drawings: vec![(String::new(), cdf_chart("response time", &curves))],
        ..Section::default()
    }
}
