//! `idlewise simulate`: one policy with given parameters on a trace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use idlewise::disk::DiskModel;
use idlewise::disk::SMALLEST_REQUEST;
use idlewise::idle::Idleness;
use idlewise::policy::{Budget, POLICIES, Parameters, Policy, Setting, build};
use idlewise::report::{Chart, Page, Scale, Section, Table};
use idlewise::simulate::{self, Lane, Run, Summary, Tally};
use idlewise::{Bytes, Cdh, Nanos, Rate};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::input::{Source, TraceOnDisk, formats_help, list, plan_file};
use crate::output;
use crate::work::WorkArguments;

/// Simulate one policy on a trace: what it would scrub, and what it would cost the foreground
#[derive(clap::Args)]
#[command(after_help = policies_and_formats())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceOnDisk,

    /// Policy, one of those listed below
    #[arg(long, default_value = "waiting", value_name = "NAME")]
    policy: String,

    /// Run a plan as `idlewise tune --out` writes it, instead of a policy with parameters
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "policy", "idle_wait", "request_size", "delay", "threshold", "longest", "growth", "increment", "swap_at", "largest_size",
        "busy_period", "relative_delay", "mean_slowdown", "max_slowdown",
    ])]
    plan: Option<PathBuf>,

    /// Idle time before the first background request, such as 100ms
    #[arg(long, value_name = "TIME")]
    idle_wait: Option<Nanos>,

    /// Longest time that background work runs in one idle interval, such as 40ms (restrained)
    #[arg(long, value_name = "TIME")]
    busy_period: Option<Nanos>,

    /// Added over original mean response time of the foreground, such as 0.07 (monitoring, body, tail, tail-bursty)
    #[arg(long, value_name = "SHARE")]
    relative_delay: Option<f64>,

    /// Mean slowdown to tune for (adaptive)
    #[arg(long, value_name = "TIME")]
    mean_slowdown: Option<Nanos>,

    /// Service time that no request exceeds (adaptive)
    #[arg(long, value_name = "TIME")]
    max_slowdown: Option<Nanos>,

    /// Size of each background request, such as 512KiB
    #[arg(long, value_name = "SIZE")]
    request_size: Option<Bytes>,

    /// Time from one background request to the next, such as 16ms
    #[arg(long, value_name = "TIME")]
    delay: Option<Nanos>,

    /// Predicted length that an interval must exceed (ar, ar-waiting)
    #[arg(long, value_name = "TIME")]
    threshold: Option<Nanos>,

    /// Share of the intervals to use, the longest, such as 0.1 (oracle)
    #[arg(long, value_name = "SHARE")]
    longest: Option<f64>,

    /// Factor from one request size to the next (exponential, linear)
    #[arg(long, value_name = "FACTOR")]
    growth: Option<f64>,

    /// What each request is larger than that (linear)
    #[arg(long, value_name = "SIZE")]
    increment: Option<Bytes>,

    /// Idle time from which on requests are as large as they may be (swapping)
    #[arg(long, value_name = "TIME")]
    swap_at: Option<Nanos>,

    /// Size that no growing request exceeds [default: 4MiB]
    #[arg(long, value_name = "SIZE")]
    largest_size: Option<Bytes>,

    /// Hold the policy, whichever it is, within this mean slowdown: it pauses while its account is overdrawn
    #[arg(long, value_name = "TIME")]
    budget: Option<Nanos>,

    #[command(flatten)]
    work: WorkArguments,

    /// Say what it does to each volume too
    #[arg(long)]
    by_volume: bool,

    /// Write a page with the foreground's response times with and without the background work: one HTML file
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
    policy: String,
    /// The options that were given, as text.
    parameters: BTreeMap<&'static str, String>,
    #[serde(flatten)]
    row: Row,
    /// Each disk for itself, with `--by-volume`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volumes: Vec<Volume>,
}

#[derive(Serialize)]
struct Volume {
    volume: String,
    #[serde(flatten)]
    row: Row,
}

/// What happened on one disk or on all.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    summary: Summary,
    slowdown_p90_s: f64,
    slowdown_p99_s: f64,
    slowdown_p999_s: f64,
    /// Where the work is one job a WRITE.
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<JobCounts>,
}

#[derive(Clone, Serialize)]
struct JobCounts {
    came: u64,
    completed: u64,
    lost: u64,
    mean_response_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    parity: Option<Parity>,
}

/// Of updates of parity.
#[derive(Clone, Serialize)]
struct Parity {
    /// Updates that took up to so long, in shares of WRITEs.
    update_p50_s: f64,
    update_p90_s: f64,
    update_p99_s: f64,
    /// Shares of the updates for which one WRITE, two, and so on had made their segment dirty.
    writes_before_update: Vec<f64>,
    completed_share: f64,
    /// Foreground and background together.
    utilisation: f64,
}

fn policies_and_formats() -> String {
    let policies = list("Policies", POLICIES.iter().map(|entry| (entry.name, entry.about)));
    format!("{policies}\n\n{}", formats_help())
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check_all(&arguments.input.paths(), &[arguments.report.as_deref()])?;
    let parameters = arguments.parameters();
    let plan = arguments.plan.as_deref().map(plan_file).transpose()?;
    let build = |setting: &Setting| match &plan {
        Some(plan) => Ok(within(arguments.budget, plan.schedule().policy())),
        None => build(&arguments.policy, &parameters, setting).map_err(|error| UsageError(error.to_string())),
    };
    let (nothing, any) = (Idleness::default(), DiskModel::ultrastar_15k450());
    build(&Setting::scrub(&nothing, &any))?;
    let input = arguments.input.read_keeping(arguments.work.keep(arguments.report.is_some())?)?;
    let model = &input.model;
    let lane = |disk: &Idleness| {
        let amount = arguments.work.amount(disk, model, arguments.request_size.unwrap_or(SMALLEST_REQUEST));
        let setting = Setting { past: disk, model, service: arguments.work.mean_service(), amount };
        let policy = build(&setting).expect("built a moment ago");
        vec![Lane { policy, work: arguments.work.work(model) }]
    };
    let all = simulate::run(&input.disks, lane);
    let of_one = |disk: &Idleness| {
        let disks = std::slice::from_ref(disk);
        Volume { volume: disk.volume.clone(), row: arguments.row(&simulate::run(disks, lane), disks) }
    };
    let report = Report {
        policy: arguments.plan.as_ref().map_or(arguments.policy.clone(), |path| format!("plan {}", path.display())),
        parameters: arguments.given(),
        row: arguments.row(&all, &input.disks),
        volumes: input.disks.iter().filter(|_| arguments.by_volume).map(of_one).collect(),
        source: input.source,
    };
    let title = format!(
        "{}policy {}{}, simulated on {}; background work: {}\n\n",
        report.source.line(),
        report.policy,
        report.parameters.iter().map(|(option, value)| format!(" --{option} {value}")).collect::<String>(),
        report.source.disk,
        arguments.work.line()
    );
    if let Some(path) = &arguments.report {
        output::file(path, &page(&report, &title, &all).html())?;
    }
    if arguments.json {
        output::json(&report)?;
    } else {
        output::text(&(title + &table(&report).to_string()))?;
    }
    Ok(Exit::Clean)
}

fn within(budget: Option<Nanos>, policy: Box<dyn Policy>) -> Box<dyn Policy> {
    match budget {
        Some(target) => Box::new(Budget::new(policy, target)),
        None => policy,
    }
}

impl Arguments {
    fn row(&self, run: &Run, disks: &[Idleness]) -> Row {
        let requests = disks.iter().map(|disk| disk.requests).sum();
        let quantile = |share| run.slowdown_quantile(share, requests).as_secs_f64();
        let tally = run.tallies.first().copied().unwrap_or_default();
        let mean_response_s = tally.response_sum as f64 / 1e9 / tally.completed.max(1) as f64;
        let Tally { came, completed, lost, .. } = tally;
        Row {
            summary: Summary::new(&run.outcome, disks),
            slowdown_p90_s: quantile(0.9),
            slowdown_p99_s: quantile(0.99),
            slowdown_p999_s: quantile(0.999),
            jobs: self.work.per_write().then(|| JobCounts {
                came,
                completed,
                lost,
                mean_response_s,
                parity: self.work.parity.then(|| Parity::new(run, disks, tally)),
            }),
        }
    }

    fn given(&self) -> BTreeMap<&'static str, String> {
        let time = |time: Option<Nanos>| time.map(|time| time.exact());
        let size = |size: Option<Bytes>| size.map(|size| size.to_string());
        let number = |number: Option<f64>| number.map(|number| number.to_string());
        let all = [
            ("idle-wait", time(self.idle_wait)),
            ("busy-period", time(self.busy_period)),
            ("relative-delay", number(self.relative_delay)),
            ("mean-slowdown", time(self.mean_slowdown)),
            ("max-slowdown", time(self.max_slowdown)),
            ("request-size", size(self.request_size)),
            ("delay", time(self.delay)),
            ("threshold", time(self.threshold)),
            ("longest", number(self.longest)),
            ("growth", number(self.growth)),
            ("increment", size(self.increment)),
            ("swap-at", time(self.swap_at)),
            ("largest-size", size(self.largest_size)),
            ("budget", time(self.budget)),
        ];
        all.into_iter().filter_map(|(option, value)| Some((option, value?))).collect()
    }

    fn parameters(&self) -> Parameters {
        Parameters {
            request_size: self.request_size,
            idle_wait: self.idle_wait,
            delay: self.delay,
            threshold: self.threshold,
            longest: self.longest,
            growth: self.growth,
            increment: self.increment,
            swap_at: self.swap_at,
            largest_size: self.largest_size,
            budget: self.budget,
            busy_period: self.busy_period,
            relative_delay: self.relative_delay,
            mean_slowdown: self.mean_slowdown,
            max_slowdown: self.max_slowdown,
        }
    }
}

impl Parity {
    fn new(run: &Run, disks: &[Idleness], tally: Tally) -> Self {
        let detail = run.details.first().cloned().unwrap_or_default();
        let quantile = |share| detail.times.quantile(share).as_secs_f64();
        let updates: u64 = detail.hits.iter().sum();
        let span: u128 = disks.iter().map(|disk| u128::from(disk.end.since(disk.begin).0)).sum();
        let idle: u128 = disks.iter().map(|disk| u128::from(disk.idle().0)).sum();
        Self {
            update_p50_s: quantile(0.5),
            update_p90_s: quantile(0.9),
            update_p99_s: quantile(0.99),
            writes_before_update: detail.hits.iter().map(|&hits| hits as f64 / updates.max(1) as f64).collect(),
            completed_share: tally.completed as f64 / tally.came.max(1) as f64,
            utilisation: (span - idle + run.outcome.used_idle) as f64 / span.max(1) as f64,
        }
    }
}

/// A column for all, and one for each volume if asked for.
fn table(report: &Report) -> Table {
    let mut columns = vec![("all", &report.row)];
    columns.extend(report.volumes.iter().map(|volume| (volume.volume.as_str(), &volume.row)));
    let mut table = Table { head: Vec::new(), rows: Vec::new() };
    if !report.volumes.is_empty() {
        table.head = std::iter::once("").chain(columns.iter().map(|(name, _)| *name)).map(String::from).collect();
    }
    let mut row = |name: &str, cell: &dyn Fn(&Row) -> String| {
        let cells = columns.iter().map(|(_, row)| cell(row));
        table.rows.push(std::iter::once(name.to_string()).chain(cells).collect());
    };
    let share = |value: f64| format!("{:.2} %", value * 100.0);
    if let Some(of_all) = &report.row.jobs {
        let jobs = |r: &Row, cell: &dyn Fn(&JobCounts) -> String| r.jobs.as_ref().map_or_else(String::new, cell);
        row("jobs completed", &|r| jobs(r, &|j| format!("{} of {}", j.completed, j.came)));
        row("  each after", &|r| jobs(r, &|j| seconds(j.mean_response_s)));
        if of_all.lost > 0 {
            row("  lost", &|r| jobs(r, &|j| share(j.lost as f64 / j.came.max(1) as f64)));
        }
        if of_all.parity.is_some() {
            let parity = |r: &Row, cell: &dyn Fn(&Parity) -> String| {
                jobs(r, &|j| j.parity.as_ref().map_or_else(String::new, cell))
            };
            row("  90 % of them", &|r| parity(r, &|p| seconds(p.update_p90_s)));
            row("  99 %", &|r| parity(r, &|p| seconds(p.update_p99_s)));
            row("updates after 1, 2, 3 WRITEs", &|r| {
                parity(r, &|p| p.writes_before_update.iter().take(3).map(|&s| share(s)).collect::<Vec<_>>().join(", "))
            });
            row("disk busy in all", &|r| parity(r, &|p| share(p.utilisation)));
        }
    } else {
        row("scrubbed", &|r| Bytes(r.summary.scrubbed_bytes).to_string());
        row("throughput", &|r| Rate(r.summary.throughput_bytes_per_s as u64).to_string());
    }
    row("mean slowdown", &|r| seconds(r.summary.mean_slowdown_s));
    row("  90 % of requests", &|r| seconds(r.slowdown_p90_s));
    row("  99 %", &|r| seconds(r.slowdown_p99_s));
    row("  99.9 %", &|r| seconds(r.slowdown_p999_s));
    row("max slowdown", &|r| seconds(r.summary.max_slowdown_s));
    row("background requests", &|r| r.summary.background_requests.to_string());
    row("collisions", &|r| r.summary.collisions.to_string());
    row("  per foreground request", &|r| share(r.summary.collision_rate));
    row("idle time used", &|r| share(r.summary.utilised_idle));
    if report.row.summary.relative_delay.is_some() {
        row("relative delay", &|r| r.summary.relative_delay.map_or("-".into(), share));
    }
    table
}

/// Figure 8 of SIGMETRICS 2009.
fn page(report: &Report, lead: &str, run: &Run) -> Page {
    let beyond = |times: &Cdh| {
        let pairs = times.pairs();
        pairs.into_iter().map(|(time, share)| (time.as_secs_f64(), 1.0 - share)).collect::<Vec<_>>()
    };
    let chart = Chart {
        x: ("response time".into(), Scale::LogSeconds),
        y: ("share of requests that take longer".into(), Scale::Log),
        lines: vec![
            ("without background work".into(), beyond(&run.responses_alone)),
            ("with it".into(), beyond(&run.responses)),
        ],
        marks: Vec::new(),
        small: false,
    };
    let section = Section {
        heading: "Response times of the foreground (SIGMETRICS 2009, figure 8)".into(),
        text: "The share of the foreground's requests that take longer than a time. Where the lines meet, background work \
               is not felt."
            .into(),
        table: table(report),
        drawings: vec![(String::new(), chart.svg())],
        ..Section::default()
    };
    Page {
        title: format!("Policy {} on {}", report.policy, report.source.trace),
        lead: lead.trim().replace('\n', "; "),
        sections: vec![section],
    }
}

/// Seconds as people read them.
pub fn seconds(value: f64) -> String {
    Nanos((value * 1e9).round() as u64).to_string()
}
