//! `simulate --service`: weeks of the daemon, whose foreground is a trace.

use std::path::PathBuf;

use idlewise::report::Table;
use idlewise::tune::Goal;
use idlewise::{Bytes, Nanos, Rate};
use idlewise_linux::device::Kind;
use idlewise_service::play::{Disk, Foreground, Pass, Played, play};
use idlewise_service::{Config, Wish};
use serde::Serialize;

use super::seconds;
use crate::exit::{Exit, UsageError};
use crate::input::{Source, TraceOnDisk};
use crate::output;
use crate::policy::OPTIONS;
use crate::progress::Progress;

const DAY_S: f64 = 86_400.0;

/// Options of `simulate --service`.
#[derive(clap::Args)]
pub struct ServiceArguments {
    /// Instead of one policy, weeks of `idlewise daemon`: when it verifies each disk, whether in time, and what that costs. The trace is
    /// played over and over
    #[arg(long, help_heading = HEADING,
        conflicts_with_all = ["policy", "plan", OPTIONS, "WorkArguments", "run", "grid", "by_volume", "report"])]
    pub service: bool,

    /// With --service: how many disks there are. Volumes of the trace are used several times if need be [default: one for each volume]
    #[arg(long, help_heading = HEADING, value_name = "N", requires = "service")]
    disks: Option<usize>,

    /// With --service: for how many days
    #[arg(long, help_heading = HEADING, value_name = "D", requires = "service", default_value = "60",
        value_parser = clap::value_parser!(u32).range(1..=3660))]
    days: u32,

    /// With --service: size of each disk
    #[arg(long, help_heading = HEADING, value_name = "SIZE", requires = "service", default_value = "10TB")]
    disk_size: Bytes,

    /// With --service: configuration of the daemon. Disks are called as their volumes; the second one of a volume ends in -2. Without
    /// it every disk gets the defaults, with the goal of a hard disk
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "service")]
    config: Option<PathBuf>,
}

const HEADING: &str = "The service";

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    source: Source,
    /// Days that were played.
    days: u32,
    /// Size of each disk.
    disk_bytes: u64,
    /// A disk each.
    disks: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    /// Its name.
    disk: String,
    /// After so many hours its foreground comes again.
    foreground_hours: u64,
    /// It is to be verified once in this time.
    verify_every_s: f64,
    /// The mean slowdown of its goal.
    goal_mean_slowdown_s: f64,
    /// How many passes ended, or should have.
    passes_due: usize,
    /// How many of these ended in time.
    passes_in_time: usize,
    /// By how much the latest of them was late; below zero where all were in time. Absent where none was due.
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_s: Option<f64>,
    /// The passes that ended.
    passes: Vec<Ended>,
    /// Bytes verified.
    verified_bytes: u64,
    /// Time in which it was being verified.
    ran_s: f64,
    /// Mean slowdown of the foreground requests of that time. Absent where there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_slowdown_s: Option<f64>,
    /// Mean slowdown of all foreground requests.
    mean_slowdown_of_all_s: f64,
    /// The longest slowdown.
    max_slowdown_s: f64,
    /// The largest mean slowdown that was allowed, when it was behind.
    largest_allowed_s: f64,
}

#[derive(Serialize)]
struct Ended {
    /// When it began, in seconds since the beginning.
    began_s: f64,
    /// When it ended.
    ended_s: f64,
    /// When it had to.
    due_s: f64,
    /// Mean slowdown of the foreground requests meanwhile.
    mean_slowdown_s: f64,
}

/// Runs `simulate --service`.
pub fn run(input: &TraceOnDisk, arguments: &ServiceArguments, json: bool) -> anyhow::Result<Exit> {
    let &ServiceArguments { disks: count, days, disk_size, .. } = arguments;
    if disk_size == Bytes(0) || count == Some(0) {
        return Err(UsageError("--disk-size and --disks must be above zero".into()).into());
    }
    let config = arguments.config.as_deref().map(Config::read).transpose()?.unwrap_or_default();
    let input = input.read()?;
    let count = count.unwrap_or(input.disks.len());
    let progress = Progress::new("simulating");
    let (mut rows, volumes) = (Vec::new(), input.disks.len());
    let usual = Kind::HardDisk.goal();
    for (at, idleness) in input.disks.into_iter().enumerate() {
        // Disks of one volume share what was computed for it, as long as their goals are the same.
        let mut shared: Option<(Goal, Foreground)> = None;
        for number in (at..count).step_by(volumes) {
            let copy = number / volumes;
            let identity =
                if copy == 0 { idleness.volume.clone() } else { format!("{}-{}", idleness.volume, copy + 1) };
            let wish = config.of(&identity, std::path::Path::new(&identity)).0;
            if wish.ignore {
                continue;
            }
            let disk = Disk::new(identity, disk_size, wish, (usual.mean_slowdown, usual.max_slowdown));
            let goal = disk.goal();
            let foreground = match shared.take().filter(|(of, _)| *of == goal) {
                Some((_, foreground)) => foreground,
                None => Foreground::new(idleness.clone(), input.model.clone(), goal),
            };
            let foreground = &mut shared.insert((goal, foreground)).1;
            let played = play(&disk, foreground, days)?;
            rows.push((number, Row::new(&disk, foreground.hours(), &played)));
            progress.share(rows.len() as f64 / count as f64);
        }
    }
    drop(progress);
    rows.sort_by_key(|(number, _)| *number);
    let disks = rows.into_iter().map(|(_, row)| row).collect();
    let report = Report { source: input.source, days, disk_bytes: disk_size.0, disks };
    if json {
        output::json(&report)?;
    } else {
        output::text(&report.text())?;
    }
    Ok(if report.disks.is_empty() { Exit::NothingToDo } else { Exit::Clean })
}

impl Row {
    fn new(disk: &Disk, foreground_hours: u64, played: &Played) -> Self {
        let Wish { verify_every, .. } = disk.wish;
        let ended = |pass: &Pass| Ended {
            began_s: pass.began_s,
            ended_s: pass.ended_s,
            due_s: pass.due_s,
            mean_slowdown_s: pass.cost.mean_s(),
        };
        Self {
            disk: disk.identity.clone(),
            foreground_hours,
            verify_every_s: verify_every.as_secs_f64(),
            goal_mean_slowdown_s: disk.mean_s,
            passes_due: played.due(),
            passes_in_time: played.in_time(),
            latest_s: played.latest_s(),
            passes: played.passes.iter().map(ended).collect(),
            verified_bytes: played.verified as u64,
            ran_s: played.ran_s,
            mean_slowdown_s: (played.cost.requests > 0).then(|| played.cost.mean_s()),
            mean_slowdown_of_all_s: played.mean_of_all_s(),
            max_slowdown_s: played.longest_s,
            largest_allowed_s: played.most_s,
        }
    }

    fn cells(&self) -> [String; 9] {
        let late = |late: f64| if late > 0.0 { days(late) } else { "-".into() };
        let rate = if self.ran_s > 0.0 { self.verified_bytes as f64 / self.ran_s } else { 0.0 };
        [
            self.disk.clone(),
            days(self.verify_every_s),
            format!("{} of {}", self.passes_in_time, self.passes_due),
            self.latest_s.map_or("-".into(), late),
            Rate(rate as u64).to_string(),
            self.mean_slowdown_s.map_or("-".into(), seconds),
            seconds(self.mean_slowdown_of_all_s),
            seconds(self.max_slowdown_s),
            seconds(self.largest_allowed_s),
        ]
    }
}

impl Report {
    fn text(&self) -> String {
        let head = ["disk", "every", "in time", "latest", "rate", "slowdown", "of all", "max", "allowed"];
        let mut table = Table::new(head);
        self.disks.iter().for_each(|disk| table.row(disk.cells()));
        let (in_time, due) =
            self.disks.iter().fold((0, 0), |sum, disk| (sum.0 + disk.passes_in_time, sum.1 + disk.passes_due));
        format!(
            "{}{} days of the service, simulated on {}; disks of {}\nin time: passes, of those that were due; latest: how late the latest \
             was; rate, slowdown: mean while it was verified\nof all: mean slowdown of all requests; allowed: the largest mean slowdown \
             that was allowed\n\n{table}\n{in_time} of {due} passes in time\n",
            self.source.line(),
            self.days,
            self.source.disk,
            Bytes(self.disk_bytes),
        )
    }
}

fn days(seconds: f64) -> String {
    if seconds < DAY_S { Nanos((seconds * 1e9) as u64).to_string() } else { format!("{:.1}d", seconds / DAY_S) }
}
