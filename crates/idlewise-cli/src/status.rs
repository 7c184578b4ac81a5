//! `idlewise status`: how the passes over each device stand, from their checkpoints; needs no privilege.

mod forget;
mod names;
mod runs;
mod text;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use anyhow::Context;
use idlewise::report::printable::one_line;
use idlewise::{Bytes, Nanos};
use idlewise_linux::device::{Device, Devices, Member};
use idlewise_linux::metadata_at;
use idlewise_linux::scrub::{Doing, Listed, Note, Outdated, Pass, RunSoFar, State, StateFolder, notes};
use serde::Serialize;

use crate::bad::{Bad, Of, next_step};
use crate::control::{LookedAfter, To, Told, is_down, told};
use crate::dates::{date, unix_now};
use crate::exit::Exit;
use crate::output::{self, say};
use crate::scrub::content::Content;

/// Show how the scrubs of this machine's devices stand, running or not. Needs no privilege, but for --forget
///
/// With a DEVICE, it also lists its unreadable blocks. For monitoring, the exit code says the worst of all that is shown: 1 a
/// scrub has failed, its disk does not answer or its checkpoint cannot be read, 3 there are unreadable blocks, 5 overdue by --older-than, 0 none of
/// these; 2 if nothing has been scrubbed yet.
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these devices, by their path or identity, and their unreadable blocks [default: all, without the blocks]
    #[arg(value_name = "DEVICE")]
    devices: Vec<String>,

    /// Exit with 5 if the last complete pass over any of them is older than this, such as 35d, or there is none
    #[arg(long, value_name = "TIME")]
    older_than: Option<Nanos>,

    /// Show what `idlewise run` holds at the moment, instead of scrubs; exit code 2 if that is nothing
    #[arg(long, conflicts_with_all = ["devices", "older_than", "forget", "state_dir"])]
    runs: bool,

    /// Forget these devices: remove what is known of them, such as of disks that are gone. Their logs of repairs stay
    #[arg(long, requires = "devices", conflicts_with_all = ["json", "older_than"])]
    forget: bool,

    /// Folder of the checkpoints [default: /var/lib/idlewise and ~/.local/state/idlewise]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    #[command(flatten)]
    daemon: To,

    /// Print a JSON list instead of a table
    #[arg(long)]
    json: bool,
}

/// The fields of `status --json`.
#[derive(Serialize)]
struct Status {
    device: String,
    identity: String,
    /// `running`, `complete`, `interrupted`, `killed`, `failed`; `paused` or `waiting` where the daemon has ended the scrub until later;
    /// `outdated` where the device that is called so now is another one, or has more or lies elsewhere than when it was read, and `doubtful`
    /// where nobody knows whether it is the one that was read.
    state: &'static str,
    /// Its last scrub has failed, whatever became of the device since.
    #[serde(skip)]
    failed: bool,
    /// Why it is outdated or doubtful.
    #[serde(skip_serializing_if = "Option::is_none")]
    outdated: Option<String>,
    doing: Option<String>,
    order: &'static str,
    /// Read in this pass, without what `--skip-free` passed over.
    verified_bytes: u64,
    device_bytes: u64,
    block_bytes: u32,
    rate_bytes_per_s: Option<f64>,
    left_s: Option<f64>,
    errors: Vec<Bad>,
    /// What to do about the errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_step: Option<String>,
    started_unix_s: u64,
    saved_unix_s: u64,
    completed_unix_s: Option<u64>,
    /// What the owners of the data said in this pass, where they were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Content>,
    /// How much of the last whole pass could not be compared with what the owners of the data keep of it, until this pass is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_compared_before: Option<NotCompared>,
    /// With `--older-than`.
    #[serde(skip_serializing_if = "Option::is_none")]
    overdue: Option<bool>,
    /// What the daemon waits for before it goes on with it, where one runs and looks after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<String>,
    /// When the daemon wants its next pass to be over.
    #[serde(skip_serializing_if = "Option::is_none")]
    due_unix_s: Option<f64>,
    run: Option<RunSoFar>,
}

/// What was not compared.
#[derive(Serialize)]
struct NotCompared {
    /// How much.
    bytes: u64,
    /// Why not.
    why: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    if arguments.runs {
        return runs::show(arguments.json);
    }
    // The default one is made by the first scrub; one that was named should be there.
    if let Some(folder) = arguments.state_dir.as_ref().filter(|folder| *folder != StateFolder::choose(None).path()) {
        let shown = || folder.display().to_string();
        anyhow::ensure!(metadata_at(folder).with_context(shown)?.is_some(), "{}: there is no such folder", shown());
    }
    let folders = StateFolder::readable(arguments.state_dir.clone());
    if arguments.forget {
        return forget::forget(&folders, &arguments.devices);
    }
    let (mut all, notes, devices) = (Vec::new(), notes(&folders), Devices::present());
    let mut unreadable = false;
    let mut cannot_read = |error| {
        unreadable = true;
        say!("idlewise: {error}");
    };
    for folder in folders {
        // One that cannot be read hides no other.
        let listed = folder.list().unwrap_or_else(|error| {
            cannot_read(error);
            Vec::new()
        });
        let by_members: Vec<&Pass> = listed.iter().filter_map(|one| one.pass.as_ref().ok()).collect();
        let by_members = by_members.into_iter().filter(|pass| pass.identity.ends_with(Device::BY_MEMBERS));
        let by_members: HashMap<&str, &Pass> = by_members.map(|pass| (Device::itself(&pass.identity), pass)).collect();
        // Whether an array that could not be compared for a while, and was read as one disk, has been compared as a whole since.
        let is_over = |pass: &Pass| by_members.get(&*pass.identity).is_some_and(|other| pass.is_compared_by(other));
        let over: Vec<bool> = listed.iter().map(|one| one.pass.as_ref().is_ok_and(is_over)).collect();
        for (Listed { pass, running, stopped }, _) in listed.into_iter().zip(over).filter(|(_, over)| !over) {
            match pass {
                Ok(mut pass) => {
                    // What its scrub reads, it knows.
                    let outdated = pass.outdated(&devices.called(Device::itself(&pass.identity)));
                    let outdated = outdated.filter(|_| !running);
                    // Of the device that is there, or of all of it, there was none.
                    let is_sure = outdated.as_ref().is_some_and(|outdated| outdated.surely);
                    pass.completed_unix_s = pass.completed_unix_s.filter(|_| !is_sure);
                    let one = Status::new(pass, (running, stopped), &notes, arguments.older_than);
                    all.push(one.but(outdated));
                }
                Err(error) => cannot_read(error),
            }
        }
    }
    // It may look after others than those whose checkpoints were named.
    let Told { disks: mut looked_after, problem, untold } =
        if arguments.state_dir.is_none() { told(&arguments.daemon) } else { Told::default() };
    for one in &mut all {
        if let Some(LookedAfter { state, why, due_unix_s, .. }) = looked_after.remove(&one.identity) {
            (one.waits, one.due_unix_s) = (Some(why).filter(|why| !why.is_empty()), Some(due_unix_s));
            // A scrub that it has ended was not interrupted.
            if let Some(state) = ["paused", "waiting"].into_iter().find(|known| *known == state)
                && ["running", "interrupted"].contains(&one.state)
            {
                (one.state, one.doing, one.left_s) = (state, None, None);
            }
        }
    }
    if let Some(problem) = problem {
        say!("idlewise: the daemon goes on with its configuration as it was before: {problem}");
    }
    if let Some(why) = untold {
        say!("idlewise: the daemon's messages reach nobody: {why}");
    }
    let is = |one: &Status, name: &String| names::is_meant(name, &one.device, &one.identity);
    if let Some(unknown) = arguments.devices.iter().find(|name| !all.iter().any(|one| is(one, name))) {
        return Err(never_scrubbed(unknown));
    }
    all.retain(|one| arguments.devices.is_empty() || arguments.devices.iter().any(|name| is(one, name)));
    // Those who ask for devices, or for other checkpoints than the usual, ask for scrubs.
    let asks_for_all = arguments.devices.is_empty() && arguments.state_dir.is_none();
    let runs = if asks_for_all { not_begun(&looked_after) + &runs::lines() } else { String::new() };
    if asks_for_all && StateFolder::choose(None).path().join("schedule.state").exists() && is_down(&arguments.daemon) {
        say!("idlewise: the daemon has looked after disks here, and does not run: systemctl start idlewised");
    }
    if arguments.json {
        output::json_list(&all)?;
    } else {
        if !all.is_empty() {
            text::print(&all, !arguments.devices.is_empty())?;
        }
        if !runs.is_empty() {
            output::text(&runs)?;
        }
    }
    if all.is_empty() && runs.is_empty() && !unreadable {
        say!("idlewise: nothing has been scrubbed yet");
        return Ok(Exit::NothingToDo);
    }
    Ok(if unreadable { Exit::CouldNotRun } else { exit(&all) })
}

/// Disks that the daemon looks after and of which no pass has begun.
fn not_begun(looked_after: &BTreeMap<String, LookedAfter>) -> String {
    let line = |one: &LookedAfter| {
        let due = date(one.due_unix_s as u64).map_or(String::new(), |due| format!("; due {due}"));
        format!("{}: not verified yet; daemon: {}{due}\n", one_line(&one.device), one_line(&one.why))
    };
    looked_after.values().map(line).collect()
}

fn never_scrubbed(name: &str) -> anyhow::Error {
    anyhow::anyhow!("{name}: has not been scrubbed under this name; status alone lists all that were")
}

/// The worst of all.
fn exit(all: &[Status]) -> Exit {
    let any = |is: fn(&Status) -> bool| all.iter().any(is);
    match () {
        // A disk that does not answer is as good as failed until it does.
        () if any(|one| one.failed || one.doing.as_deref() == Some(Doing::HUNG)) => Exit::CouldNotRun,
        () if any(|one| !one.errors.is_empty()) => Exit::ErrorsFound,
        // What was not compared may be wrong, also while the next pass is at it.
        () if any(|one| one.content.as_ref().and_then(Content::silent).is_some()) => Exit::CouldNotRun,
        () if any(|one| one.not_compared_before.is_some()) => Exit::CouldNotRun,
        () if any(|one| one.overdue == Some(true)) => Exit::Overdue,
        () => Exit::Clean,
    }
}

impl Status {
    /// The same, if what is known is not true of the device that is there now.
    fn but(self, outdated: Option<Outdated>) -> Self {
        let state = match outdated {
            Some(Outdated { surely: true, .. }) => "outdated",
            // What is not over is not called verified.
            Some(_) if self.state == "complete" => "doubtful",
            _ => self.state,
        };
        Self { state, outdated: outdated.map(|outdated| outdated.why), ..self }
    }

    /// Of a checkpoint, and of the note of the scrub that is at it, which is newer.
    fn new(mut pass: Pass, (running, stopped): (bool, bool), notes: &[Note], older_than: Option<Nanos>) -> Self {
        let of_pass = |note: &&Note| note.identity == pass.identity && Some(&note.process) == pass.process.as_ref();
        let mut verified = pass.verified().0;
        let note = running.then(|| notes.iter().find(of_pass)).flatten();
        if let Some(note) = note.filter(|note| !note.run.doing.is_empty()) {
            (verified, pass.run) = (note.verified_bytes.max(verified), Some(note.run.clone()));
        }
        pass.run.iter_mut().filter(|_| stopped).for_each(|run| run.doing = Doing::STOPPED.into());
        let state = match (pass.state, running) {
            (State::Running, true) => "running",
            (State::Running, false) => "killed",
            (State::Complete, _) => "complete",
            (State::Interrupted, _) => "interrupted",
            (State::Failed, _) => "failed",
        };
        let rate = pass.run.as_ref().filter(|run| run.elapsed_s > 0.0);
        let rate = rate.map(|run| run.verified_bytes as f64 / run.elapsed_s);
        let left = pass.device_bytes.saturating_sub(verified);
        let skipped = pass.content.as_ref().map_or(0, |content| content.skipped_bytes);
        let start = pass.marks.as_ref().map_or(0, |marks| marks.start_bytes);
        let by_members = pass.identity.ends_with(Device::BY_MEMBERS);
        let errors = Bad::list(&pass.known_errors(), pass.block_bytes, (start, by_members), pass.content.as_ref());
        // Nobody knows how long a request that hangs will. Pauses for the goal are in the rate so far.
        let stands = |run: &RunSoFar| [Doing::HUNG, Doing::STOPPED].contains(&run.doing.as_str());
        let goes_on = state == "running" && !pass.run.as_ref().is_some_and(stands);
        let owners = pass.content.as_ref().map_or(&[][..], |content| &content.owners);
        let step =
            |member: Option<&Member>| next_step(&Of { device: &pass.device, member, by_members, owners }, &errors);
        let overdue = |limit: Nanos| pass.completed_unix_s.is_none_or(|at| age(at) > limit.as_secs_f64());
        let before = pass.not_compared().filter(|_| !pass.over());
        Self {
            not_compared_before: before.map(|(bytes, why)| NotCompared { bytes: bytes.0, why: why.into() }),
            state,
            failed: state == "failed",
            outdated: None,
            doing: pass.run.as_ref().filter(|_| state == "running").map(|run| run.doing.clone()),
            order: pass.order.label(),
            verified_bytes: verified.saturating_sub(skipped),
            device_bytes: pass.device_bytes,
            block_bytes: pass.block_bytes,
            rate_bytes_per_s: rate,
            left_s: rate.filter(|&rate| rate > 0.0 && goes_on).map(|rate| left as f64 / rate),
            next_step: (!errors.is_empty()).then(|| step(pass.member_of.as_ref())),
            overdue: older_than.map(overdue),
            device: pass.device,
            identity: pass.identity,
            errors,
            started_unix_s: pass.started_unix_s,
            saved_unix_s: pass.saved_unix_s,
            completed_unix_s: pass.completed_unix_s,
            content: pass.content.as_ref().map(|so_far| Content::new(so_far, Bytes(verified))),
            waits: None,
            due_unix_s: None,
            run: pass.run,
        }
    }
}

/// A time that is later than now by more seconds was told by a clock that was wrong.
const AHEAD: u64 = 86_400;

/// Seconds since then; none where it is yet to come, and all where nobody knows how many.
fn age(unix_s: u64) -> f64 {
    let now = unix_now();
    if unix_s > now.saturating_add(AHEAD) { f64::INFINITY } else { now.saturating_sub(unix_s) as f64 }
}
