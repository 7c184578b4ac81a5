//! Many devices at once: each on a thread of its own, and none is the worse for another's end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context;
use idlewise::report::Table;
use idlewise::report::printable::one_line;
use idlewise::{Bytes, Nanos};
use idlewise_linux::device::Device;
use idlewise_linux::scrub::Groups;
use indicatif::MultiProgress;
use serde::Serialize;

use super::bar::{Bar, HZ};
use super::job::Job;
use super::result::Result;
use crate::exit::Exit;
use crate::output::{self, say};
use crate::{live, screen};

/// How the scrub of one device ended.
#[derive(Serialize)]
#[serde(untagged)]
enum Ended {
    Scrubbed(Box<Result>),
    NotScrubbed { device: String, state: &'static str, failure: String },
}

/// It was stopped before its turn came.
#[derive(Debug, thiserror::Error)]
#[error("{0}: stopped before its turn came")]
struct Queued(String);

/// It was told as soon as it was known, not after the last disk.
#[derive(Debug, thiserror::Error)]
#[error("{0:#}")]
struct Told(anyhow::Error);

/// How many are scrubbed at the same time, at most.
pub struct AtOnce {
    pub per_array: usize,
    pub jobs: usize,
}

/// Scrubs all of them at the same time, but for those that share an array.
pub fn run(job: &Job, paths: &[PathBuf], at_once: &AtOnce, quiet: bool, json: bool) -> anyhow::Result<Exit> {
    let bars = MultiProgress::with_draw_target(screen::target(HZ));
    let (groups, disks, jobs) = (Groups::new(at_once.per_array), Groups::new(1), Groups::new(at_once.jobs));
    let scrub = |path: &Path| -> anyhow::Result<Result> {
        let device = job.open(path)?;
        anyhow::ensure!(device.size.0 > 0, "{}: the device is empty", device.path.display());
        let mut bar = Bar::new(quiet, &device, Some(&bars));
        let part = |whole: &str| format!("another part of {whole} is being scrubbed");
        let leave = groups.enter(device.arrays(), &job.stop, &mut |array| bar.queue(&part(array)));
        let mut disk: Vec<_> = device.disks().iter().map(|(major, minor)| format!("disk {major}:{minor}")).collect();
        disk.extend(device.shared_drive());
        let disk = disks.enter(disk, &job.stop, &mut |disk| bar.queue(&part(disk)));
        // Last: who has a turn waits for nobody else.
        let turn = jobs.enter(vec!["turn".into()], &job.stop, &mut |_| {
            bar.queue("as many disks as --jobs says are being scrubbed")
        });
        if leave.is_none() || disk.is_none() || turn.is_none() {
            return Err(Queued(device.path.display().to_string()).into());
        }
        let result = job.scrub(&device, &mut bar)?;
        drop(bar);
        // Who waits weeks for the last disk wants to know of the first.
        if !json {
            bars.suspend(|| output::text_meanwhile(&(result.text() + "\n")));
        }
        Ok(result)
    };
    let paths = each_once(paths);
    let ended: Vec<(Ended, anyhow::Result<Exit>)> = thread::scope(|scope| {
        let (scrub, bars) = (&scrub, &bars);
        let told = move |error: anyhow::Error| match error.is::<Queued>() {
            true => error,
            false => {
                bars.suspend(|| say!("idlewise: {error:#}"));
                Told(error).into()
            }
        };
        let begin = |path| thread::Builder::new().spawn_scoped(scope, move || scrub(path).map_err(told));
        let jobs: Vec<_> = paths.iter().map(|path| (path, begin(path))).collect();
        jobs.into_iter()
            .map(|(path, job)| {
                let panicked = |_| Err(anyhow::anyhow!("{}: its thread panicked", path.display()));
                let no_thread = |error| Err(error).with_context(|| format!("{}: a thread for it", path.display()));
                end(path, job.map_or_else(no_thread, |job| job.join().unwrap_or_else(panicked)))
            })
            .collect()
    });
    live::work_is_over();
    drop(bars);
    screen::finish().context("standard output")?;
    if json {
        output::json(&ended.iter().map(|(ended, _)| ended).collect::<Vec<_>>())?;
    }
    Ok(together(ended.into_iter().map(|(_, exit)| exit)))
}

/// Without those that lead to a device that was named before, by another name or by another path to the disk.
fn each_once(paths: &[PathBuf]) -> Vec<PathBuf> {
    let (mut seen, mut disks) = (BTreeSet::new(), BTreeMap::new());
    let first = |path: &&PathBuf| {
        if !seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())) {
            return false;
        }
        let Some(name) = Device::name_of_all_paths(path) else { return true };
        let read = disks.entry(name).or_insert_with(|| path.to_path_buf());
        if *read != **path {
            let read = read.display();
            say!("idlewise: {}: is another path to the disk {read}, and is scrubbed by that one", path.display());
            return false;
        }
        true
    };
    paths.iter().filter(first).cloned().collect()
}

fn end(path: &Path, result: anyhow::Result<Result>) -> (Ended, anyhow::Result<Exit>) {
    match result {
        Ok(result) => {
            let exit = result.exit();
            (Ended::Scrubbed(Box::new(result)), exit)
        }
        Err(error) => {
            let (device, failure) = (path.display().to_string(), format!("{error:#}"));
            let queued = error.is::<Queued>();
            let state = if queued { "interrupted" } else { "failed" };
            let exit = if queued { Ok(Exit::Interrupted) } else { Err(error) };
            (Ended::NotScrubbed { device, state, failure }, exit)
        }
    }
}

/// One exit for all: what could not run counts most, then errors found, then interruptions.
fn together(exits: impl Iterator<Item = anyhow::Result<Exit>>) -> Exit {
    let rank = |exit: &Exit| match exit {
        Exit::CouldNotRun => 5,
        Exit::ErrorsFound => 4,
        Exit::Interrupted => 3,
        Exit::Overdue => 2,
        Exit::Clean => 1,
        Exit::NothingToDo => 0,
    };
    let told = exits.map(|exit| {
        exit.unwrap_or_else(|error| {
            if !error.is::<Told>() {
                say!("idlewise: {error:#}");
            }
            Exit::CouldNotRun
        })
    });
    told.max_by_key(rank).unwrap_or(Exit::NothingToDo)
}

/// What would be done with a device.
#[derive(Serialize)]
struct Prospect {
    device: String,
    identity: String,
    device_bytes: u64,
    verifier: &'static str,
    /// Whose checksums the data are compared with.
    content: Vec<&'static str>,
    order: &'static str,
    resumed_at_bytes: u64,
    /// Of the first request in an idle interval; null where it is chosen from what is seen.
    request_size_bytes: Option<u64>,
    /// Idle time before it; null where it is chosen from what is seen.
    idle_wait_s: Option<f64>,
    arrays: Vec<String>,
    /// Null where the pace is given without a goal.
    mean_slowdown_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_slowdown_s: Option<f64>,
    max_slowdown_s: Option<f64>,
    /// The goal in words.
    #[serde(skip)]
    goal: Option<String>,
}

/// Says what would be scrubbed, and how.
pub fn dry_run(job: &Job, paths: &[PathBuf], all: bool, json: bool) -> anyhow::Result<Exit> {
    // One disk fails as its scrub would.
    if let ([path], false) = (paths, all) {
        show(&[prospect(job, path)?], json)?;
        return Ok(Exit::Clean);
    }
    let mut prospects = Vec::new();
    let mut exits = Vec::new();
    for path in &each_once(paths) {
        match prospect(job, path) {
            Ok(prospect) => prospects.push(prospect),
            Err(error) => exits.push(Err(error)),
        }
    }
    show(&prospects, json)?;
    exits.push(Ok(Exit::Clean));
    Ok(together(exits.into_iter()))
}

fn show(prospects: &[Prospect], json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(&prospects);
    }
    let Some(first) = prospects.first() else { return Ok(()) };
    let asks_p99 = first.p99_slowdown_s.is_some();
    let head = ["device", "size", "from", "by", "part of", "mean"].into_iter();
    let head = head.chain(asks_p99.then_some("p99")).chain(["max"]);
    let mut table = Table { head: head.map(String::from).collect(), rows: Vec::new() };
    let (mut identities, mut goals) = (String::new(), BTreeSet::new());
    for one in prospects {
        let (size, from) = (Bytes(one.device_bytes), Bytes(one.resumed_at_bytes));
        let arrays = if one.arrays.is_empty() { "-".into() } else { one.arrays.join(", ") };
        let mut row = vec![one.device.clone(), size.to_string(), from.to_string(), one.verifier.into(), arrays];
        row.push(seconds(one.mean_slowdown_s));
        row.extend(asks_p99.then(|| seconds(one.p99_slowdown_s)));
        row.push(seconds(one.max_slowdown_s));
        table.rows.push(row);
        identities += &format!("{}: {}\n", one_line(&one.device), one_line(&one.identity));
        goals.extend(one.goal.iter().map(|goal| format!("{goal}\n")));
    }
    let p99 = if asks_p99 { ", p99" } else { "" };
    let pace = match first.request_size_bytes.zip(first.idle_wait_s) {
        Some((size, wait)) => {
            format!("requests of {} after {} of idle time", Bytes(size), seconds(Some(wait)))
        }
        None => "request size and idle wait are chosen from what is seen".into(),
    };
    let goals: String = goals.into_iter().collect();
    let order = first.order;
    output::text(&format!("order: {order}; mean{p99}, max: allowed slowdown\n{pace}\n{goals}\n{table}\n{identities}"))
}

fn prospect(job: &Job, path: &Path) -> anyhow::Result<Prospect> {
    let device: Device = job.open(path)?;
    let (way, goal) = (job.way(&device)?, job.goal(&device));
    job.check_goal(goal).with_context(|| device.path.display().to_string())?;
    let pass = if job.restart { None } else { job.states.unfinished(&device, job.order)? };
    let pace = job.first_request();
    let in_time = match job.wanted.finish_within {
        Some(_) => "; the mean is chosen from what is seen, for the pass to end in time",
        None => "",
    };
    Ok(Prospect {
        device: device.path.display().to_string(),
        identity: device.identity.clone(),
        device_bytes: device.size.0,
        verifier: way.verifier.name(),
        content: way.found.names(),
        order: job.order.label(),
        resumed_at_bytes: pass.map_or(0, |pass| pass.verified().0),
        request_size_bytes: pace.map(|(size, _)| size.0),
        idle_wait_s: pace.map(|(_, wait)| wait.as_secs_f64()),
        arrays: device.arrays(),
        goal: goal.filter(|_| pace.is_none()).map(|_| job.wanted.line(device.kind()) + in_time),
        mean_slowdown_s: goal.map(|goal| goal.mean_slowdown.as_secs_f64()),
        p99_slowdown_s: goal.and_then(|goal| goal.p99_slowdown).map(Nanos::as_secs_f64),
        max_slowdown_s: goal.map(|goal| goal.max_slowdown.as_secs_f64()),
    })
}

fn seconds(seconds: Option<f64>) -> String {
    seconds.map_or("-".into(), |seconds| Nanos((seconds * 1e9).round() as u64).to_string())
}
