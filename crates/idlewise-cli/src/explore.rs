//! `idlewise explore`: idle wait and busy period, all pairs of them.

use std::path::PathBuf;

use idlewise::idle::Idleness;
use idlewise::policy::restrained::Amount;
use idlewise::report::{HeatMap, Page, Section, Shape, Table, number, percent};
use idlewise::tune::{PairPoint, Penalty, Plane, Question};
use idlewise::{Bytes, TotalTime};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::input::{Input, Source, TraceOnDisk, formats_help};
use crate::output;
use crate::progress::Progress;
use crate::simulate::seconds;
use crate::work::WorkArguments;

/// Explore when background work may start in an idle interval, and how long it may run
///
/// For each idle wait I and busy period T, shows how much work gets done and how much it delays the foreground. Chooses the pair that
/// gets most done within a relative delay (SIGMETRICS 2009).
#[derive(clap::Args)]
#[command(after_help = formats_help())]
pub struct Arguments {
    #[command(flatten)]
    input: TraceOnDisk,

    /// Relative delay that the foreground may suffer: the added response time over the original one
    #[arg(long, value_name = "SHARE", default_value_t = 0.07)]
    relative_delay: f64,

    /// Size of each background request
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    request_size: Bytes,

    #[command(flatten)]
    work: WorkArguments,

    /// Choose the pair on this first part of the trace, such as 0.5 of its time, and show what it does on the rest
    #[arg(long, value_name = "SHARE")]
    train: Option<f64>,

    /// Write an HTML page with the two heat maps
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
    work: String,
    target: f64,
    mean_response_s: f64,
    foreground_requests: u64,
    chosen: Option<PairPoint>,
    /// With `--train`: the pair chosen on the first part, on the rest. `chosen` is then that of the rest itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    trained: Option<PairPoint>,
    no_wait: PairPoint,
    service_wait: PairPoint,
    penalties: Vec<Penalty>,
    plane: Plane,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check_all(&arguments.input.paths(), &[arguments.report.as_deref()])?;
    let usage = |text: &str| Err(UsageError(text.into()).into());
    if arguments.request_size == Bytes(0) {
        return usage("a request size of zero verifies nothing: give at least 512B");
    }
    if !(arguments.relative_delay > 0.0 && arguments.relative_delay <= 100.0) {
        return usage("--relative-delay is a share of the response time, such as 0.07");
    }
    let input = arguments.input.read_keeping(arguments.work.keep(false)?)?;
    let report = match arguments.train {
        None => arguments.explore(&input, &input.disks, None),
        Some(share) => {
            let (first, rest) = halves(&input.disks, share)?;
            arguments.explore(&input, &rest, Some(&first))
        }
    };
    if let Some(path) = &arguments.report {
        output::file(path, &page(&report).html())?;
    }
    if arguments.json {
        output::json(&report)?;
    } else {
        output::text(&text(&report))?;
    }
    Ok(Exit::Clean)
}

/// The parts of all disks before and after a share of the time.
pub fn halves(disks: &[Idleness], share: f64) -> anyhow::Result<(Vec<Idleness>, Vec<Idleness>)> {
    if !(share > 0.0 && share < 1.0) {
        return Err(UsageError("--train is a share between 0 and 1, such as 0.5".into()).into());
    }
    Ok(disks.iter().map(|disk| disk.split(share)).unzip())
}

impl Arguments {
    fn explore(&self, input: &Input, disks: &[Idleness], first: Option<&[Idleness]>) -> Report {
        let model = &input.model;
        let service = self.work.mean_service().unwrap_or_else(|| model.verify_time(self.request_size));
        let work = || self.work.work(model);
        let question = |disks| Question {
            disks,
            work: &work,
            amount: self.amount(disks, input),
            service,
            size: self.request_size,
            relative_delay: self.relative_delay,
        };
        let asked = question(disks);
        let progress = Progress::new("exploring");
        let plane = asked.plane(&|done| progress.share(done));
        drop(progress);
        let [no_wait, service_wait] = asked.practices();
        let requests: u64 = disks.iter().map(|disk| disk.requests).sum();
        let responses: TotalTime = disks.iter().map(|disk| disk.response_sum).sum();
        Report {
            source: input.source.clone(),
            work: self.work.line(),
            target: self.relative_delay,
            mean_response_s: responses.as_secs_f64() / requests.max(1) as f64,
            foreground_requests: requests,
            chosen: asked.chosen(),
            trained: first.and_then(|first| Some(asked.point(question(first).chosen()?.pair()))),
            no_wait,
            service_wait,
            penalties: asked.penalties(),
            plane,
        }
    }

    /// Work for each interval of all disks together.
    fn amount(&self, disks: &[Idleness], input: &Input) -> Amount {
        let intervals: usize = disks.iter().map(|disk| disk.intervals.len()).sum();
        let mut all = None;
        for disk in disks {
            let Amount::Finite { work, job } = self.work.amount(disk, &input.model, self.request_size) else {
                return Amount::Infinite;
            };
            let before = all.map_or(0.0, |(work, _)| work);
            all = Some((before + work * disk.intervals.len() as f64 / intervals.max(1) as f64, job));
        }
        all.map_or(Amount::Infinite, |(work, job)| Amount::Finite { work, job })
    }
}

/// What marks each of the pairs worth a mark.
fn marked(report: &Report) -> Vec<(Shape, &'static str, PairPoint)> {
    let mut marked =
        vec![(Shape::Square, "no wait", report.no_wait), (Shape::Circle, "wait a request", report.service_wait)];
    let chosen = if report.trained.is_some() { "best on the rest" } else { "chosen" };
    marked.extend(report.chosen.map(|point| (Shape::Diamond, chosen, point)));
    marked.extend(report.trained.map(|point| (Shape::Triangle, "chosen before", point)));
    marked.reverse();
    marked
}

fn table(report: &Report) -> Table {
    let marked = marked(report);
    let lost = marked.iter().any(|(_, _, point)| point.lost > 0);
    let head = ["", "wait I", "period T", "delay", "completed", "per request"].into_iter();
    let mut table = Table { head: head.chain(lost.then_some("lost")).map(String::from).collect(), rows: Vec::new() };
    for (_, name, point) in marked {
        let mut row = vec![
            name.to_string(),
            seconds(point.idle_wait_s),
            point.busy_period_s.map_or("no end".into(), seconds),
            percent(point.relative_delay),
            point.completed.to_string(),
            number(point.completed as f64 / report.foreground_requests.max(1) as f64),
        ];
        row.extend(lost.then(|| point.lost.to_string()));
        table.rows.push(row);
    }
    table
}

fn penalties(report: &Report) -> Table {
    let mut table = Table::new(["penalty / foreground service", "E", "wait I", "I + T", "intervals used"]);
    for penalty in &report.penalties {
        table.row([
            format!("{}", penalty.of_foreground_service),
            percent(penalty.delaying),
            seconds(penalty.idle_wait_s),
            penalty.end_s.map_or("no end".into(), seconds),
            percent(penalty.utilised),
        ]);
    }
    table
}

fn text(report: &Report) -> String {
    let mut text = format!(
        "{}background work: {}; the foreground may be delayed by {} of its mean response of {}; simulated on {}\n\
         delay: relative delay; per request: completed for each foreground request\n\n{}",
        report.source.line(),
        report.work,
        percent(report.target),
        seconds(report.mean_response_s),
        report.source.disk,
        table(report)
    );
    match report.trained.or(report.chosen) {
        None => text += "\nThere is no pair to choose: the trace has no idle intervals.\n",
        Some(chosen) if chosen.completed == 0 => {
            text +=
                "\nThe chosen pair does no work on this trace: allow a larger relative delay, or smaller requests.\n";
        }
        Some(chosen) => {
            let end = chosen
                .busy_period_s
                .map_or("until the foreground comes".into(), |period| format!("for {} at most", seconds(period)));
            text +=
                &format!("\nWait until the disk has been idle for {}, then work {end}.", seconds(chosen.idle_wait_s));
            if chosen.probability < 1.0 {
                text += &format!(
                    " Do so in {} of the intervals only: in all of them a request is too long for the target.",
                    percent(chosen.probability)
                );
            }
            text += "\n";
        }
    }
    if report.trained.is_some() {
        text += "The pair was chosen before, on the first part of the trace; all numbers are of the rest.\n";
    }
    text += &format!(
        "\nHow the choice depends on what a collision costs; E is the share of idle intervals that may delay the \
         foreground:\n\n{}",
        penalties(report)
    );
    text
}

/// Figures 6 and 7, and figure 4 as a table.
fn page(report: &Report) -> Page {
    let plane = &report.plane;
    let most = plane.points.iter().map(|point| point.completed).max().unwrap_or(0).max(1) as f64;
    let delays: Vec<f64> = plane.points.iter().map(|point| point.relative_delay.max(1e-6).log10()).collect();
    let (low, high) = delays.iter().fold((f64::MAX, f64::MIN), |(l, h), &delay| (l.min(delay), h.max(delay)));
    let beyond: Vec<bool> = plane.points.iter().map(|point| point.relative_delay > report.target).collect();
    let map = |cells: Vec<f64>, scale: [String; 2], beyond: Vec<bool>| {
        let drawn = HeatMap {
            x: ("idle wait I".into(), plane.idle_waits_s.iter().map(|&wait| seconds(wait)).collect()),
            y: (
                "busy period T".into(),
                plane.busy_periods_s.iter().map(|period| period.map_or("no end".into(), seconds)).collect(),
            ),
            cells,
            scale,
            beyond,
            beyond_what: format!("beyond the target of {}", percent(report.target)),
            marks: marked(report).iter().rev().map(|&(shape, _, point)| mark(plane, shape, &point)).collect(),
        };
        drawn.html()
    };
    let cells = delays.iter().map(|delay| (delay - low) / (high - low).max(1e-9)).collect();
    let [least, longest] = [low, high].map(|end| percent(10f64.powf(end)));
    let ends = [least, format!("{longest}, logarithmic")];
    let delay = map(cells, ends, beyond.clone());
    let cells = plane.points.iter().map(|point| point.completed as f64 / most).collect();
    let ends = [0.0, most].map(|end| format!("{end} requests"));
    let work = map(cells, ends, vec![false; beyond.len()]);
    let maps = Section {
        heading: "Every idle wait and busy period (SIGMETRICS 2009, figures 6 and 7)".into(),
        text: "How much the foreground is delayed, relative to its response times, and how many background requests complete. The \
               diamond is the pair that the framework chooses, a triangle the one that it chose on the first part. The square works \
               without a wait. The circle waits as long as a request takes. In the table, the delay is relative, and \"per request\" is the work \
               completed for each foreground request."
            .into(),
        table: table(report),
        drawings: vec![("foreground delay".into(), delay), ("background work".into(), work)],
        ..Section::default()
    };
    let figure_4 = Section {
        heading: "What a collision costs (SIGMETRICS 2009, figure 4)".into(),
        text: "The dearer a collision, the longer the wait and the fewer intervals are used. The penalty is in mean service \
               times of the foreground."
            .into(),
        table: penalties(report),
        ..Section::default()
    };
    Page {
        title: format!("Idle wait and busy period on {}", report.source.trace),
        lead: format!("Background work: {}. Simulated on {}.", report.work, report.source.disk),
        sections: vec![maps, figure_4],
    }
}

/// Where a pair is between the columns and rows of the plane.
fn mark(plane: &Plane, shape: Shape, point: &PairPoint) -> (Shape, f64, f64) {
    let x = place(&plane.idle_waits_s, point.idle_wait_s);
    let periods: Vec<f64> = plane.busy_periods_s.iter().copied().flatten().collect();
    (shape, x, point.busy_period_s.map_or(periods.len() as f64, |period| place(&periods, period)))
}

fn place(values: &[f64], value: f64) -> f64 {
    let above = values.partition_point(|&other| other <= value);
    let (Some(low), Some(high)) = (above.checked_sub(1).map(|k| values[k]), values.get(above)) else {
        return above.saturating_sub(1) as f64;
    };
    (above - 1) as f64 + (value - low) / (high - low)
}
