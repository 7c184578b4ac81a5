//! `idlewise sample`: the intervals that stand for a trace.

mod page;
mod text;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use idlewise::Nanos;
use idlewise::report::percent;
use idlewise::sample::{
    Amount, Choice, Chosen, Criterion, Extractor, FEATURES, FeatureSet, Outcome, Part, Phases, RULES, Rule,
    SamplingPlan, Settings, Systematic, TraceInterval, Way, sample,
};
use idlewise::trace::{Columns, GapFinder, Provenance, Volumes};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::input::{TraceArguments, formats_help, list, say_holes};
use crate::output;
use crate::progress::Progress;
use crate::simulate::seconds;

/// Find the few intervals that stand for a trace
///
/// Replaying only these intervals estimates the mean response time of the whole trace, and says how far off that may be. They are drawn
/// by lot: the more the requests of an interval ask for, the likelier it is drawn. How long requests took is not looked at, so a trace
/// without response times does as well. With --rule intervals are clustered, and the one nearest to the middle of each cluster is taken
/// (DiskAccel, SIGMETRICS 2015); how far off that may be nobody knows.
#[derive(clap::Args)]
#[command(after_help = help())]
pub struct Arguments {
    #[command(flatten)]
    trace: TraceArguments,

    /// Write the intervals, and what each stands for, to a plan, which `idlewise replay` takes
    #[arg(short, long, value_name = "PLAN")]
    out: Option<PathBuf>,

    /// Length of an interval
    #[arg(long, value_name = "TIME", default_value = "10s")]
    interval: Nanos,

    /// Draw so many intervals at most [default: 50]
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["error", "rule", "features"])]
    intervals: Option<NonZeroUsize>,

    /// Draw as many as it is expected to take to be no further off than this share, such as 5%, with a confidence of 95 %
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with_all = ["rule", "features"])]
    error: Option<f64>,

    /// Take clusters, as many as one of the rules below chooses [default with --features: bic]
    #[arg(long, value_name = "RULE")]
    rule: Option<Rule>,

    /// Features by which intervals are clustered, from the list below, separated by commas [default with --rule: the paper's]
    #[arg(long, value_name = "NAMES")]
    features: Option<FeatureSet>,

    /// Seed of the lot, or of the clustering; the same seed gives the same plan
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Write an HTML page with the intervals over time, and the choice of clusters
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// A share such as 5% or 0.05.
fn share(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    share.filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(|| "above 0 and at most 100%, such as 5%".into())
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
    /// How intervals were chosen: `drawn` or `clusters`.
    way: &'static str,
    /// What clusters were made by; nothing where intervals are drawn.
    features: Option<FeatureSet>,
    /// How many clusters there are; nothing where intervals are drawn.
    rule: Option<Rule>,
    seed: u64,
    /// Intervals to replay.
    k: usize,
    share_of_time: f64,
    /// How far off the estimate is expected to be, as a share of it, with a confidence of 95 %, before anything is measured; of what is drawn.
    expected_error: Option<f64>,
    estimate_mean_response_s: Option<f64>,
    /// So far the estimate may be off, with a confidence of 95 %; of what is drawn.
    half_width_s: Option<f64>,
    true_mean_response_s: Option<f64>,
    error: Option<f64>,
    representatives: Vec<Shown>,
    rules: Vec<Choice>,
    systematic: Vec<Systematic>,
    phases: Option<Phases>,
    criteria: Vec<Criterion>,
}

#[derive(Serialize)]
struct Shown {
    index: u64,
    begin_s: f64,
    requests: u64,
    /// The requests that it stands for.
    weight: f64,
    /// How likely it was to be drawn; nothing of clusters.
    probability: Option<f64>,
    /// In which turn it was drawn; nothing of clusters.
    turn: Option<u32>,
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
    let settings = Settings { interval: arguments.interval, way: arguments.way(), seed: arguments.seed };
    let progress = Progress::new("clustering");
    let outcome = sample(&intervals, &settings, &|done| progress.share(done));
    drop(progress);
    let outcome = outcome.ok_or_else(|| anyhow::anyhow!("{}: has no requests", arguments.trace.name()))?;
    let plan = SamplingPlan {
        version: SamplingPlan::VERSION,
        trace: arguments.trace.name(),
        volume: volumes.first().filter(|_| !read.volume.is_empty() && volumes.len() == 1).cloned(),
        interval: settings.interval,
        seed: settings.seed,
        requests: outcome.requests,
        span,
        chosen: outcome.chosen.clone(),
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

/// How far an estimate may be off.
pub fn within(half_width_s: f64, estimate_s: f64) -> String {
    let share = half_width_s / estimate_s.max(f64::MIN_POSITIVE);
    format!(" ± {} ({}) with a confidence of 95 %", seconds(half_width_s), percent(share))
}

impl Arguments {
    fn way(&self) -> Way {
        if self.rule.is_none() && self.features.is_none() {
            let count = self.intervals.map(|count| Amount::Intervals(count.get()));
            return Way::Drawn(self.error.map(Amount::Error).or(count).unwrap_or_default());
        }
        Way::Clusters { features: self.features.clone().unwrap_or_default(), rule: self.rule.unwrap_or(Rule::Bic) }
    }
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
        let shown = |part: Part| {
            let interval = TraceInterval::find(intervals, part.index)?;
            Some(Shown {
                index: part.index,
                begin_s: part.begin.as_secs_f64(),
                requests: part.requests,
                weight: part.weight,
                probability: part.probability,
                turn: part.turn,
                mean_response_s: interval.mean_response(),
                features: FEATURES.iter().map(|feature| (feature.name, (feature.value)(interval))).collect(),
            })
        };
        let clusters = match &plan.chosen {
            Chosen::Drawn(_) => None,
            Chosen::Clusters(clusters) => Some(clusters),
        };
        let representatives: Vec<_> = plan.parts().into_iter().filter_map(shown).collect();
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
            way: if clusters.is_some() { "clusters" } else { "drawn" },
            features: clusters.map(|clusters| clusters.features.clone()),
            rule: clusters.map(|clusters| clusters.rule),
            seed: plan.seed,
            k: representatives.len(),
            share_of_time: outcome.share_of_time,
            expected_error: outcome.expected_error,
            estimate_mean_response_s: outcome.estimate_mean_response_s,
            half_width_s: outcome.half_width_s,
            true_mean_response_s: outcome.true_mean_response_s,
            error: outcome.error,
            representatives,
            systematic: outcome.systematic,
            rules: outcome.choices,
            phases: outcome.phases,
            criteria: outcome.criteria,
        }
    }
}
