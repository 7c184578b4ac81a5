//! `idlewise status`: how the passes over each device stand, from their checkpoints; needs no privilege.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use idlewise::report::Table;
use idlewise::{Bytes, Nanos, Rate};
use idlewise_linux::scrub::{BadBlocks, Listed, Note, Pass, RunSoFar, State, StateFolder, notes};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::{self, say};

/// Show how the scrubs of this machine's devices stand, running or not. Needs no privilege
#[derive(clap::Args)]
pub struct Arguments {
    /// Only these devices, by the path they were scrubbed under [default: all]
    devices: Vec<String>,

    /// Folder of the checkpoints [default: /var/lib/idlewise and ~/.local/state/idlewise]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,

    /// Print a JSON list instead of a table
    #[arg(long)]
    json: bool,
}

/// The fields of `status --json`.
#[derive(Serialize)]
struct Status {
    device: String,
    identity: String,
    /// `running`, `complete`, `interrupted`, `killed`, `failed`.
    state: &'static str,
    doing: Option<String>,
    order: &'static str,
    verified_bytes: u64,
    device_bytes: u64,
    rate_bytes_per_s: Option<f64>,
    left_s: Option<f64>,
    errors: Vec<BadBlocks>,
    started_unix_s: u64,
    saved_unix_s: u64,
    completed_unix_s: Option<u64>,
    run: Option<RunSoFar>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    // The default one is made by the first scrub; one that was named should be there.
    if let Some(folder) = arguments.state_dir.as_ref().filter(|folder| *folder != StateFolder::choose(None).path()) {
        folder.metadata().with_context(|| folder.display().to_string())?;
    }
    let folders = StateFolder::readable(arguments.state_dir.clone());
    let (mut all, notes) = (Vec::new(), notes(&folders));
    for folder in folders {
        // One that cannot be read hides no other.
        let listed = folder.list().unwrap_or_else(|error| {
            say!("idlewise: {error}");
            Vec::new()
        });
        for Listed { pass, running } in listed {
            match pass {
                Ok(pass) => all.push(Status::new(pass, running, &notes)),
                Err(error) => say!("idlewise: {error}"),
            }
        }
    }
    let wanted = |name: &String| arguments.devices.is_empty() || arguments.devices.contains(name);
    if let Some(unknown) = arguments.devices.iter().find(|name| all.iter().all(|one| one.device != **name)) {
        anyhow::bail!("{unknown}: has not been scrubbed under this name; status alone lists all that were");
    }
    all.retain(|one| wanted(&one.device));
    if arguments.json {
        output::json(&all)?;
    } else if !all.is_empty() {
        output::text(&table(&all).to_string())?;
    }
    if all.is_empty() {
        say!("idlewise: nothing has been scrubbed yet");
        return Ok(Exit::NothingToDo);
    }
    Ok(Exit::Clean)
}

impl Status {
    /// Of a checkpoint, and of the note of the scrub that is at it, which is newer.
    fn new(mut pass: Pass, running: bool, notes: &[Note]) -> Self {
        let of_pass = |note: &&Note| note.identity == pass.identity && Some(&note.process) == pass.process.as_ref();
        let mut verified = pass.verified().0;
        if let Some(note) = notes.iter().find(of_pass).filter(|note| running && !note.run.doing.is_empty()) {
            (verified, pass.run) = (note.verified_bytes.max(verified), Some(note.run.clone()));
        }
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
        let errors = pass.known_errors();
        Self {
            state,
            doing: pass.run.as_ref().filter(|_| state == "running").map(|run| run.doing.clone()),
            order: pass.order.label(),
            verified_bytes: verified,
            device_bytes: pass.device_bytes,
            rate_bytes_per_s: rate,
            left_s: rate.filter(|&rate| rate > 0.0 && state == "running").map(|rate| left as f64 / rate),
            device: pass.device,
            identity: pass.identity,
            errors,
            started_unix_s: pass.started_unix_s,
            saved_unix_s: pass.saved_unix_s,
            completed_unix_s: pass.completed_unix_s,
            run: pass.run,
        }
    }
}

fn table(all: &[Status]) -> Table {
    let head = ["device", "state", "verified", "of", "rate", "left", "bad blocks", "mean slowdown", "last complete"];
    let mut table = Table::new(head);
    let time = |seconds: f64| Nanos((seconds * 1e9) as u64).to_string();
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".into());
    for one in all {
        let name = if one.device.is_empty() { &one.identity } else { &one.device };
        let state = one.doing.as_ref().map_or(one.state.to_string(), |doing| format!("{} ({doing})", one.state));
        let slowed = one.run.as_ref().filter(|run| run.foreground_requests > 0);
        table.row([
            name.clone(),
            state,
            Bytes(one.verified_bytes).to_string(),
            Bytes(one.device_bytes).to_string(),
            or_none(one.rate_bytes_per_s.map(|rate| Rate(rate as u64).to_string())),
            or_none(one.left_s.map(time)),
            one.errors.iter().map(|bad| bad.blocks).sum::<u64>().to_string(),
            or_none(slowed.map(|run| time(run.mean_slowdown_s))),
            or_none(one.completed_unix_s.map(|at| format!("{} ago", time(unix_now().saturating_sub(at) as f64)))),
        ]);
    }
    table
}

fn unix_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
