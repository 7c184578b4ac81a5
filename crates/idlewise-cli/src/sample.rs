//! `idlewise sample`: the intervals that stand for a trace.

mod page;
mod text;

use std::collections::BTreeMap;
use std::path::PathBuf;

use idlewise::Nanos;
use idlewise::sample::{
    Choice, Criterion, Extractor, FEATURES, FeatureSet, Outcome, Phases, RULES, Representative, Rule, SamplingPlan,
    Settings, Systematic, TraceInterval, sample,
};
use idlewise::trace::{Columns, GapFinder, Provenance, Volumes};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::input::{TraceArguments, formats_help, list, say_holes};
use crate::output;
use crate::progress::Progress;

/// Find the few intervals that stand for a trace
///
/// Replaying only these intervals estimates the mean response time of the whole trace. Intervals are clustered by what their requests
/// ask for, not by how long the requests took (DiskAccel, SIGMETRICS 2015).
#[derive(clap::Args)]
#[command(after_help = help())]
pub struct Arguments {
    #[command(flatten)]
    trace: TraceArguments,

    /// Write the representatives and their weights to a plan, which `idlewise replay` takes
    #[arg(short, long, value_name = "PLAN")]
    out: Option<PathBuf>,

    /// Length of an interval
    #[arg(long, value_name = "TIME", default_value = "10s")]
    interval: Nanos,

    /// Features by which intervals are compared, from the list below, separated by commas
    #[arg(long, value_name = "NAMES", default_value = FeatureSet::PAPERS)]
    features: FeatureSet,

    /// How to choose the number of clusters: one of the rules below
    #[arg(long, value_name = "RULE", default_value = "bic")]
    rule: Rule,

    /// Seed of the clustering; the same seed gives the same plan
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Write an HTML page with the choice of clusters and the intervals over time
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

fn help() -> String {
    let features = list("Features of an interval", FEATURES.iter().map(|feature| (feature.name, feature.about)));
    let rules = list("Rules", RULES.iter().map(|rule| (rule.name(), rule.about())));
    let volumes = "With several volumes an interval holds the requests of all of them at that time, and each volume is a disk of its \
                   own: places on different volumes are never near or the same. --volume looks at one.";
    format!("{features}\n\n{rules}\n\n{volumes}\n\n{}", formats_help())
}

/// What the command prints.
#[derive(Serialize)]
struct Report {
    trace: String,
    format: &'static str,
    volumes: Vec<String>,
    bad_records: u64,
    /// `recorded`, `partly recorded` or `none`.
    response_times: &'static str,
    requests: u64,
    span_s: f64,
    interval_s: f64,
    /// From the first arrival to the last, with those that have no requests.
    intervals: u64,
    intervals_with_requests: usize,
    features: FeatureSet,
    rule: Rule,
    seed: u64,
    k: usize,
    share_of_time: f64,
    estimate_mean_response_s: Option<f64>,
    true_mean_response_s: Option<f64>,
    error: Option<f64>,
    representatives: Vec<Chosen>,
    rules: Vec<Choice>,
    systematic: Vec<Systematic>,
    phases: Option<Phases>,
    criteria: Vec<Criterion>,
}

#[derive(Serialize)]
struct Chosen {
    index: u64,
    begin_s: f64,
    requests: u64,
    weight: u64,
    mean_response_s: Option<f64>,
    /// Every feature, by its name.
    features: BTreeMap<&'static str, f64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check_all(&arguments.trace.traces, &[arguments.out.as_deref(), arguments.report.as_deref()])?;
    if arguments.interval == Nanos::ZERO {
        return Err(UsageError("--interval is longer than zero, such as 10s".into()).into());
    }
    let one = matches!(&arguments.trace.traces[..], [path] if path.as_os_str() != "-");
    if arguments.out.is_some() && !one {
        return Err(UsageError(
            "a plan names one file or folder: merge traces with `idlewise trace merge` first".into(),
        )
        .into());
    }
    let begin = |_: &Provenance| {
        Ok((Extractor::new(arguments.interval), GapFinder::default(), Nanos::ZERO, Volumes::default()))
    };
    type Taken = (Extractor, GapFinder, Nanos, Volumes);
    let take = |(extractor, gaps, last, volumes): &mut Taken, columns: Columns, _: &Provenance| {
        extractor.requests(&columns);
        columns.arrival.iter().for_each(|&arrival| gaps.arrival(arrival));
        *last = columns.arrival.last().copied().unwrap_or(*last);
        *volumes = columns.volumes.clone();
        Ok(())
    };
    let read = &arguments.trace.read;
    let ((extractor, gaps, span, volumes), provenance) =
        read.stream(&arguments.trace.traces, read.options(), begin, take)?;
    say_holes(&gaps, &arguments.trace.traces);
    let intervals = extractor.finish();

    let volumes = read.chosen(&volumes);
    if let (Some(_), [_, _, ..]) = (&arguments.out, &volumes[..]) {
        let why = "a plan is of one volume, as a replay is: choose one with --volume";
        return Err(UsageError(format!("{}: {why}", arguments.trace.name())).into());
    }
    let settings = Settings {
        interval: arguments.interval,
        features: arguments.features.clone(),
        rule: arguments.rule,
        seed: arguments.seed,
    };
    let progress = Progress::new("clustering");
    let outcome = sample(&intervals, &settings, &|done| progress.share(done));
    drop(progress);
    let outcome = outcome.ok_or_else(|| anyhow::anyhow!("{}: has no requests", arguments.trace.name()))?;
    let plan = SamplingPlan {
        version: SamplingPlan::VERSION,
        trace: arguments.trace.name(),
        volume: volumes.first().filter(|_| !read.volume.is_empty() && volumes.len() == 1).cloned(),
        interval: settings.interval,
        features: settings.features,
        rule: settings.rule,
        seed: settings.seed,
        requests: outcome.requests,
        span,
        representatives: outcome.representatives.clone(),
    };
    let report = Report::new(&plan, &provenance, volumes, &intervals, outcome);
    if let Some(path) = &arguments.out {
        output::file(path, &plan.to_toml())?;
    }
    if let Some(path) = &arguments.report {
        output::file(path, &page::page(&report, &intervals).html())?;
    }
    if arguments.json {
        output::json(&report)?;
    } else {
        output::text(&text::text(&report))?;
    }
    Ok(Exit::Clean)
}

impl Report {
    fn new(
        plan: &SamplingPlan,
        provenance: &Provenance,
        volumes: Vec<String>,
        intervals: &[TraceInterval],
        outcome: Outcome,
    ) -> Self {
        let responses: u64 = intervals.iter().map(|interval| interval.responses).sum();
        let chosen = |representative: &Representative| {
            let interval = representative.interval(intervals)?;
            Some(Chosen {
                index: representative.index,
                begin_s: representative.begin.as_secs_f64(),
                requests: representative.requests,
                weight: representative.weight,
                mean_response_s: interval.mean_response(),
                features: FEATURES.iter().map(|feature| (feature.name, (feature.value)(interval))).collect(),
            })
        };
        Self {
            trace: plan.trace.clone(),
            format: provenance.format,
            volumes,
            bad_records: provenance.bad_records,
            response_times: match responses {
                0 => "none",
                all if all == outcome.requests => "recorded",
                _ => "partly recorded",
            },
            requests: outcome.requests,
            span_s: plan.span.as_secs_f64(),
            interval_s: plan.interval.as_secs_f64(),
            intervals: outcome.intervals,
            intervals_with_requests: intervals.len(),
            features: plan.features.clone(),
            rule: plan.rule,
            seed: plan.seed,
            k: outcome.chosen.k,
            share_of_time: outcome.chosen.share_of_time,
            estimate_mean_response_s: outcome.chosen.estimate_mean_response_s,
            true_mean_response_s: outcome.true_mean_response_s,
            error: outcome.chosen.error,
            representatives: outcome.representatives.iter().filter_map(chosen).collect(),
            systematic: outcome.systematic,
            rules: outcome.choices,
            phases: outcome.phases,
            criteria: outcome.criteria,
        }
    }
}
