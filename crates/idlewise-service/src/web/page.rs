//! The page: all disks at a glance, and one disk.

use askama::Template;
use idlewise::Bytes;
use idlewise::report::printable::one_line;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::charts::{self, Ahead, Cell, Slowed, Week, time};
use super::http::{Response, escaped};
use crate::overview::{Overview, Seen};
use crate::record::{Cost, Done, Paused};

/// What the page looks like.
pub const STYLE: &str = include_str!("../../templates/style.css");
/// What keeps it up to date.
pub const SCRIPT: &str = include_str!("../../templates/live.js");

const HTML: &str = "text/html; charset=utf-8";
/// So many places are listed.
const PLACES: usize = 100;

#[derive(Template)]
#[template(path = "all.html")]
struct All {
    version: &'static str,
    now: String,
    notices: Vec<String>,
    disks: Vec<Card>,
}

#[derive(Template)]
#[template(path = "one.html")]
struct One {
    version: &'static str,
    now: String,
    disk: Card,
    errors: Vec<(u64, u64, String)>,
    /// Of these, in thousandths of the disk.
    places: Vec<u64>,
    more: usize,
    not_compared: Option<String>,
    map: Vec<Cell>,
    ahead: Option<Ahead>,
    slowed: Option<Slowed>,
    week: Option<Week>,
    passes: Vec<Pass>,
}

/// A disk in words.
struct Card {
    name: String,
    device: String,
    identity: String,
    link: String,
    state: &'static str,
    /// `well`, `warn` or `bad`.
    level: &'static str,
    why: String,
    promille: u64,
    verified: String,
    size: String,
    completed: String,
    due: String,
    expected: String,
    slowdown: String,
    last: String,
    bad: String,
}

struct Pass {
    began: String,
    ended: String,
    in_time: &'static str,
    bad: u64,
    slowdown: String,
}

/// All disks.
pub fn all(overview: &Overview) -> Response {
    let Overview { version, unix_s, paused, config, disks, refused, untold } = overview;
    let not_yet = (*unix_s == 0.0).then(|| "The disks have not been looked at yet.".to_string());
    let mut notices: Vec<String> =
        not_yet.into_iter().chain(paused.iter().map(|paused| format!("All disks are {}.", in_words(paused)))).collect();
    notices.extend(config.problem.iter().map(|problem| format!("The configuration is as before: {problem}")));
    notices.extend(untold.iter().map(|why| format!("Nobody is told of anything: {}", one_line(why))));
    notices.extend(refused.iter().map(|why| one_line(why).into_owned()));
    let disks = disks.iter().map(|disk| Card::of(disk, *unix_s)).collect();
    html(&All { version, now: date(*unix_s), notices, disks })
}

/// One disk, by any of its names.
pub fn one(overview: &Overview, name: &str) -> Response {
    let Some(disk) = overview.disks.iter().find(|disk| disk.is_called(name)) else {
        return Response::error(404, "no disk here is called so");
    };
    let block = u64::from(disk.block_bytes.unwrap_or(512));
    let blocks = (disk.device_bytes / block).max(1);
    let place = |lba: u64| (u128::from(lba) * 1000 / u128::from(blocks)).min(997) as u64;
    let mut places: Vec<u64> = disk.errors.iter().map(|run| place(run.lba)).collect();
    places.dedup();
    html(&One {
        version: overview.version,
        now: date(overview.unix_s),
        errors: disk.errors.iter().take(PLACES).map(|run| (run.lba, run.blocks, run.kind.to_string())).collect(),
        places,
        more: disk.errors.len().saturating_sub(PLACES),
        not_compared: disk
            .not_compared
            .as_ref()
            .map(|(bytes, why)| format!("{} were not compared in the last pass: {why}", Bytes(*bytes))),
        map: charts::map(&disk.shares),
        ahead: charts::ahead(disk, overview.unix_s, date),
        slowed: charts::slowed(disk),
        week: charts::week(&disk.hours_bytes_per_s),
        passes: disk.passes.iter().rev().map(Pass::of).collect(),
        disk: Card::of(disk, overview.unix_s),
    })
}

impl Pass {
    fn of(done: &Done) -> Self {
        let Done { started_unix_s, completed_unix_s, due_unix_s, bad_blocks, cost, .. } = *done;
        Self {
            began: date(started_unix_s as f64),
            ended: date(completed_unix_s as f64),
            in_time: if completed_unix_s as f64 <= due_unix_s { "yes" } else { "no" },
            bad: bad_blocks,
            slowdown: if cost.requests == 0 { "no requests".into() } else { time(cost.mean_s()) },
        }
    }
}

impl Card {
    fn of(disk: &Seen, now: f64) -> Self {
        let bad = disk.bad();
        let new = bad.saturating_sub(disk.acknowledged_blocks);
        let is_late = ["behind", "overdue"].contains(&disk.standing);
        let level = match () {
            () if ["failed", "missing"].contains(&disk.state) || new > 0 || disk.standing == "overdue" => "bad",
            () if is_late || disk.state == "paused" || bad > 0 || disk.not_compared.is_some() => "warn",
            () => "well",
        };
        let goal = time(disk.goal_mean_slowdown_s);
        let measured = disk.run.as_ref().filter(|run| run.foreground_requests > 0);
        let of = |at: f64| format!("{}, {}", date(at), away(at - now));
        Self {
            name: disk.name().into(),
            device: one_line(&disk.device).into_owned(),
            identity: one_line(&disk.identity).into_owned(),
            link: escaped(&disk.identity),
            state: disk.state,
            level,
            why: one_line(&disk.why).into_owned(),
            promille: (u128::from(disk.verified_bytes) * 1000 / u128::from(disk.device_bytes.max(1))) as u64,
            verified: Bytes(disk.verified_bytes).to_string(),
            size: Bytes(disk.device_bytes).to_string(),
            completed: disk.completed_unix_s.map_or("never".into(), |at| of(at as f64)),
            due: match disk.standing {
                "behind" | "overdue" => format!("{}: {}", of(disk.due_unix_s), disk.standing),
                _ => of(disk.due_unix_s),
            },
            expected: disk.expected_end_unix_s.filter(|_| disk.state != "complete").map_or(
                "-".into(),
                |[at, early, late]| {
                    let late = if late.is_finite() { date(late) } else { "never".into() };
                    format!("{} ({} to {late}, nine times of ten)", date(at), date(early))
                },
            ),
            slowdown: match measured {
                Some(run) => format!("{} mean, {goal} allowed", time(run.mean_slowdown_s)),
                None => format!("{goal} mean allowed"),
            },
            last: [("day", disk.last_day), ("week", disk.last_week)]
                .map(|(time, cost)| in_the_last(time, cost))
                .join(", "),
            bad: match (bad, new) {
                (0, _) => "0".into(),
                (bad, 0) => format!("{bad}, acknowledged"),
                (bad, new) => format!("{bad}, {new} of them new"),
            },
        }
    }
}

/// The mean slowdown in a time.
fn in_the_last(word: &str, cost: Cost) -> String {
    if cost.requests == 0 { format!("no requests last {word}") } else { format!("{} last {word}", time(cost.mean_s())) }
}

/// That something is paused, until when, and why.
pub fn in_words(paused: &Paused) -> String {
    let until =
        paused.until_unix_s.map_or("until somebody resumes it".into(), |until| format!("until {}", date(until)));
    let why = if paused.why.is_empty() { String::new() } else { format!(": {}", paused.why) };
    format!("paused {until}{why}")
}

fn html(page: &impl Template) -> Response {
    match page.render() {
        Ok(text) => Response::ok(HTML, text),
        Err(error) => Response::error(500, error),
    }
}

/// How far away a moment is.
fn away(seconds: f64) -> String {
    let (number, unit) = match seconds.abs() {
        less if less < 90.0 => return "now".into(),
        less if less < 5400.0 => (less / 60.0, "minutes"),
        less if less < 172_800.0 => (less / 3600.0, "hours"),
        more => (more / 86_400.0, "days"),
    };
    if seconds < 0.0 { format!("{number:.0} {unit} ago") } else { format!("in {number:.0} {unit}") }
}

/// Where the machine is.
pub fn date(unix_s: f64) -> String {
    let zoned = Timestamp::from_second(unix_s as i64).map(|time| time.to_zoned(TimeZone::system()));
    zoned.map_or("-".into(), |zoned| zoned.strftime("%Y-%m-%d %H:%M").to_string())
}
