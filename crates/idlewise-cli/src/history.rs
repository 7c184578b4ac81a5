//! `idlewise history`: the passes that the daemon has kept.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use idlewise::Bytes;
use idlewise::report::Table;
use idlewise::report::printable::one_line;
use idlewise_linux::device::Device;
use idlewise_linux::scrub::StateFolder;
use idlewise_service::{Done, Record};
use serde::Serialize;

use crate::dates::date;
use crate::exit::Exit;
use crate::output::{self, say};
use crate::scrub::words::seconds;

/// Show the passes of a disk that the daemon has seen
#[derive(clap::Args)]
pub struct Arguments {
    /// Disk, by path or identity
    #[arg(value_name = "DISK")]
    disk: String,

    /// Print a JSON list instead of a table
    #[arg(long)]
    json: bool,

    /// Folder of what the daemon remembers [default: /var/lib/idlewise]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// A pass, as `history --json` prints it.
#[derive(Serialize)]
struct Pass {
    /// When it began, in seconds since 1970.
    started_unix_s: u64,
    /// When it ended.
    completed_unix_s: u64,
    /// When it was due.
    due_unix_s: f64,
    /// The size of the disk.
    device_bytes: u64,
    /// Blocks that could not be read, or were wrong.
    bad_blocks: u64,
    /// Foreground requests that the daemon saw meanwhile.
    foreground_requests: u64,
    /// Their mean slowdown, by the account of the scrubs; absent where there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_slowdown_s: Option<f64>,
}

impl Pass {
    fn of(done: &Done) -> Self {
        let Done { started_unix_s, completed_unix_s, due_unix_s, device_bytes, bad_blocks, cost } = *done;
        Self {
            started_unix_s,
            completed_unix_s,
            due_unix_s,
            device_bytes,
            bad_blocks,
            foreground_requests: cost.requests,
            mean_slowdown_s: (cost.requests > 0).then(|| cost.mean_s()),
        }
    }

    fn cells(&self) -> [String; 6] {
        let at = |unix_s| date(unix_s).unwrap_or_else(|| "-".into());
        let is_in_time = self.completed_unix_s as f64 <= self.due_unix_s;
        [
            at(self.started_unix_s),
            at(self.completed_unix_s),
            if is_in_time { "yes".into() } else { "no".into() },
            Bytes(self.device_bytes).to_string(),
            self.bad_blocks.to_string(),
            self.mean_slowdown_s.map_or("-".into(), seconds),
        ]
    }
}

/// Shows what was kept of a disk.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let states = StateFolder::choose(arguments.state_dir.clone());
    let (record, wrong) = Record::read(states.path());
    if let Some(wrong) = wrong {
        bail!("{wrong}");
    }
    let name = &arguments.disk;
    // A path, or what the kernel calls it.
    let place = Path::new("/dev").join(name);
    let identity = record.disks.contains_key(name).then(|| name.clone()).or_else(|| Device::identity_at(&place));
    let known = record.disks.get(identity.as_ref().unwrap_or(name));
    let known =
        known.with_context(|| format!("{name}: the daemon knows no such disk; idlewise check-config lists them"))?;
    let passes: Vec<_> = known.passes.iter().map(Pass::of).collect();
    if arguments.json {
        output::json(&passes)?;
    } else if !passes.is_empty() {
        let mut table = Table::new(["began", "ended", "in time", "of", "bad blocks", "mean slowdown"]);
        passes.iter().for_each(|pass| table.row(pass.cells()));
        output::text(&table.to_string())?;
    }
    if passes.is_empty() {
        say!("idlewise: {}: no pass is over yet", one_line(name));
        return Ok(Exit::NothingToDo);
    }
    Ok(Exit::Clean)
}
