//! `idlewise simulate`: one policy with given parameters on a trace.

mod grid;
mod overruns;
mod service;

use std::collections::BTreeMap;
use std::path::PathBuf;

use idlewise::disk::SMALLEST_REQUEST;
use idlewise::idle::Idleness;
use idlewise::policy::{Entry, POLICIES, REQUEST_SIZE, Setting};
use idlewise::report::{Chart, Page, Scale, Section, Table, percent};
use idlewise::simulate::{self, Command, Lane, Run, Summary, Tally, Work};
use idlewise::{Bytes, Cdh, Nanos, Rate};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::input::{Source, TraceOnDisk};
use crate::output::{self, TERMINAL};
use crate::policy::{OPTIONS, PolicyArguments, policies_and_formats};
use crate::work::WorkArguments;

/// Simulate one policy on a trace: what it would scrub, and how much it would slow the foreground down
#[derive(clap::Args)]
#[command(after_help = policies_and_formats())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceOnDisk,

    #[command(flatten)]
    policy: PolicyArguments,

    #[command(flatten)]
    work: WorkArguments,

    /// A command that `idlewise run` holds, instead of a scrub: the JSON file that its --json wrote, or how long foreground requests wait
    /// until it is held, such as 8ms, or 2ms,5ms,40ms if each is as likely
    #[arg(long, help_heading = "Background work", value_name = "FILE|TIMES", conflicts_with = "WorkArguments")]
    run: Option<String>,

    /// With --run: time until it is at work, each time it goes on, such as 500ms for md's check
    #[arg(long, help_heading = "Background work", value_name = "TIME", requires = "run")]
    opening: Option<Nanos>,

    /// With --run: it works in pieces that take so long, such as 2s for btrfs's scrub. One that is cut in its first half is done again; else
    /// the foreground waits for its end
    #[arg(long, help_heading = "Background work", value_name = "TIME", requires = "run")]
    piece: Option<Nanos>,

    /// Instead of one policy, waiting with each of these sizes and each of these waits, such as 64KiB,256KiB,1MiB 10ms..1s. A range
    /// of waits has its ends, and 1, 2 and 5 times the powers of ten between them
    #[arg(long, num_args = 2, value_names = ["SIZES", "WAITS"],
        conflicts_with_all = ["policy", "plan", OPTIONS, "WorkArguments", "run", "by_volume", "report"])]
    grid: Option<Vec<String>>,

    /// With --grid: print CSV instead of a table
    #[arg(long, requires = "grid", conflicts_with = "json")]
    csv: bool,

    #[command(flatten)]
    service: service::ServiceArguments,

    /// Show each volume as well
    #[arg(long)]
    by_volume: bool,

    /// Write an HTML page with the response times of foreground requests, with and without the background work
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
    #[serde(skip)]
    is_of_a_command: bool,
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
    /// Idle time that was used, of all disks together: with `--run`, for how long the command ran.
    ran_s: f64,
    /// With `--run`: how long it was at work for what need not be done again, with what `--opening` and `--piece` say.
    #[serde(skip_serializing_if = "Option::is_none")]
    useful_s: Option<f64>,
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
    /// Updates completed, in shares of WRITEs: DSN 2008's completed ratio. Less than 1 also where one update does for several.
    completed_ratio: f64,
    /// Shares of the updates for which one WRITE, two, and so on had made their segment dirty.
    writes_before_update: Vec<f64>,
    /// WRITEs whose segment was brought up to date.
    completed_share: f64,
    /// Foreground and background together.
    utilisation: f64,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    // A policy conflicts with --grid, and then clap does not ask for it.
    if arguments.csv && arguments.grid.is_none() {
        return Err(UsageError("--csv needs --grid: one policy is printed as a table, or with --json".into()).into());
    }
    if arguments.service.service {
        return service::run(&arguments.input, &arguments.service, arguments.json);
    }
    if let Some(asked) = &arguments.grid {
        return grid::run(&arguments.input, asked, arguments.json, arguments.csv);
    }
    let given = arguments.policy.plan_path().into_iter().chain(arguments.run.as_deref().and_then(overruns::file));
    let inputs: Vec<_> = arguments.input.paths().into_iter().chain(given).collect();
    output::check_all(&inputs, &[arguments.report.as_deref()])?;
    let overruns = arguments.run.as_deref().map(overruns::read).transpose()?;
    let chosen = match overruns {
        Some(_) => arguments.policy.chosen_without_sizes("waiting")?,
        None => arguments.policy.chosen("waiting")?,
    };
    if overruns.is_some() && POLICIES.get(chosen.name()).is_some_and(Entry::ends_by_itself) {
        let name = chosen.name();
        return Err(UsageError(format!("--run knows no end but the foreground's coming: {name} has another")).into());
    }
    let input = arguments.input.read_keeping(arguments.work.keep(arguments.report.is_some())?)?;
    let model = &input.model;
    let lane = |disk: &Idleness| {
        let amount = arguments.work.amount(
            disk,
            model,
            arguments.policy.parameters().size(REQUEST_SIZE).unwrap_or(SMALLEST_REQUEST),
        );
        let service = overruns.as_deref().map(Command::mean).or(arguments.work.mean_service());
        let setting = Setting { past: disk, model, service, amount };
        let (opening, piece) = (arguments.opening.unwrap_or(Nanos::ZERO), arguments.piece.unwrap_or(Nanos::ZERO));
        let command = |overruns| Command::new(overruns).opening(opening).in_pieces(piece);
        let work = overruns.clone().map(|overruns| Box::new(command(overruns)) as Box<dyn Work>);
        vec![Lane::new(chosen.build(&setting), work.unwrap_or_else(|| arguments.work.work(model)))]
    };
    let all = simulate::run(&input.disks, lane);
    let of_one = |disk: &Idleness| {
        let disks = std::slice::from_ref(disk);
        Volume { volume: disk.volume.clone(), row: arguments.row(&simulate::run(disks, lane), disks) }
    };
    let report = Report {
        policy: chosen.name().into(),
        is_of_a_command: overruns.is_some(),
        parameters: arguments.policy.given(),
        row: arguments.row(&all, &input.disks),
        volumes: input.disks.iter().filter(|_| arguments.by_volume).map(of_one).collect(),
        source: input.source,
    };
    let title = format!(
        "{}policy {}{}, simulated on {}; background work: {}\npercentiles are at most 1/24 too high\n\n",
        report.source.line(),
        report.policy,
        report.parameters.iter().map(|(option, value)| format!(" --{option} {value}")).collect::<String>(),
        report.source.disk,
        match &overruns {
            Some(overruns) => format!("a command, held {} late on average", Command::mean(overruns)),
            None => arguments.work.line(),
        }
    );
    if let Some(path) = &arguments.report {
        output::file(path, &page(&report, &title, &all).html())?;
    }
    if arguments.json {
        output::json(&report)?;
    } else {
        output::text(&(title + &table(&report).folded(TERMINAL)))?;
    }
    Ok(Exit::Clean)
}

impl Arguments {
    fn row(&self, run: &Run, disks: &[Idleness]) -> Row {
        let requests = disks.iter().map(|disk| disk.requests).sum();
        let quantile = |of_thousand| run.slowdown_quantile(of_thousand, requests).as_secs_f64();
        let tally = run.tallies.first().copied().unwrap_or_default();
        let mean_response_s = tally.response_sum.as_secs_f64() / tally.completed.max(1) as f64;
        let Tally { came, completed, lost, .. } = tally;
        Row {
            summary: Summary::new(&run.outcome, disks),
            slowdown_p90_s: quantile(900),
            slowdown_p99_s: quantile(990),
            slowdown_p999_s: quantile(999),
            ran_s: run.outcome.used_idle.as_secs_f64(),
            useful_s: self.run.as_ref().map(|_| run.details.first().map_or(0.0, |detail| detail.useful.as_secs_f64())),
            jobs: self.work.per_write().then(|| JobCounts {
                came,
                completed,
                lost,
                mean_response_s,
                parity: self.work.parity.then(|| Parity::new(run, tally)),
            }),
        }
    }
}

impl Parity {
    fn new(run: &Run, tally: Tally) -> Self {
        let detail = run.details.first().cloned().unwrap_or_default();
        let quantile = |share| detail.times.quantile(share).as_secs_f64();
        let updates: u64 = detail.hits.iter().sum();
        Self {
            update_p50_s: quantile(0.5),
            update_p90_s: quantile(0.9),
            update_p99_s: quantile(0.99),
            completed_ratio: updates as f64 / tally.came.max(1) as f64,
            writes_before_update: detail.hits.iter().map(|&hits| hits as f64 / updates.max(1) as f64).collect(),
            completed_share: tally.completed as f64 / tally.came.max(1) as f64,
            utilisation: run.utilisation(),
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
    let share = percent;
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
            for (at, name) in ["updates after 1 WRITE", "  after 2", "  after 3"].into_iter().enumerate() {
                row(name, &|r| parity(r, &|p| p.writes_before_update.get(at).map_or("-".into(), |&s| share(s))));
            }
            row("disk busy in all", &|r| parity(r, &|p| share(p.utilisation)));
        }
    } else if report.is_of_a_command {
        row("command ran for", &|r| seconds(r.ran_s));
        row("  usefully", &|r| seconds(r.useful_s.unwrap_or(0.0)));
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
        dots: Vec::new(),
        marks: Vec::new(),
        small: false,
    };
    // Of requests that are not delayed the histogram knows nothing.
    let delayed = run.slowdowns.count() as f64 / run.foreground.requests.max(1) as f64;
    let slowed = beyond(&run.slowdowns).into_iter().map(|(time, share)| (time, delayed * share));
    let slowdowns = Chart {
        x: ("slowdown".into(), Scale::LogSeconds),
        y: ("share of requests that are slowed by more".into(), Scale::Log),
        lines: vec![(String::new(), slowed.collect())],
        dots: Vec::new(),
        marks: vec![0.01],
        small: false,
    };
    let slowed = Section {
        heading: "Slowdowns of the foreground".into(),
        text: "The share of all foreground requests that are slowed by more than a time. At the dashed line it is 1 %: there is the 99th \
               percentile."
            .into(),
        table: table(report),
        drawings: vec![(String::new(), slowdowns.html())],
        ..Section::default()
    };
    let section = Section {
        heading: "Response times of the foreground (SIGMETRICS 2009, figure 8)".into(),
        text: "The share of the foreground's requests that take longer than a time. Where the lines meet, background work \
               is not felt."
            .into(),
        drawings: vec![(String::new(), chart.html())],
        ..Section::default()
    };
    Page {
        title: format!("Policy {} on {}", report.policy, report.source.trace),
        lead: lead.trim().replace('\n', "; "),
        sections: vec![slowed, section],
    }
}

/// Seconds as people read them.
pub fn seconds(value: f64) -> String {
    Nanos((value * 1e9).round() as u64).to_string()
}
