//! The loads: synthetic ones, and stretches of traces.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use idlewise::trace::{ReadOptions, open};
use idlewise_testbed::Tool;
use idlewise_testbed::lab::closed::Closed;
use idlewise_testbed::lab::device::Device;
use idlewise_testbed::lab::foreground::{Foreground, Replay};
use idlewise_testbed::lab::load::{Load as Turns, Synthetic};

/// The demo's trace.
const RECORDED: &str = "testbed/traces/pgbench.csv.gz";

/// A load.
pub struct Load {
    /// What it is.
    pub name: &'static str,
    kind: Kind,
}

enum Kind {
    OneByOne(Turns),
    Readers(u64, Duration),
    /// The demo's trace, from its beginning.
    Recorded,
    /// A trace of the folder IDLEWISE_TRACES, from so many seconds on.
    From(&'static str, u64),
    /// The minute with the most requests in the first hour of one.
    WorstMinute(&'static str),
}

/// All of them.
pub const LOADS: [Load; 8] = [
    Load { name: "sequential, with pauses", kind: Kind::OneByOne(Turns::Sequential) },
    Load { name: "random, with pauses", kind: Kind::OneByOne(Turns::Random) },
    Load { name: "four readers", kind: Kind::Readers(4, Duration::from_millis(60)) },
    Load { name: "sixteen readers, busy", kind: Kind::Readers(16, Duration::from_millis(100)) },
    Load { name: "pgbench", kind: Kind::Recorded },
    Load { name: "MySQL, nearly saturated", kind: Kind::From("blkreplay_linux-mysql.load.gz", 600) },
    Load { name: "MS SQL, worst minute", kind: Kind::WorstMinute("blkreplay_windows-mssql.load.gz") },
    Load { name: "virtual machines, worst minute", kind: Kind::WorstMinute("cloudPhysicsIO.vscsi") },
];

fn real(name: &str) -> Option<PathBuf> {
    let path = Path::new(&std::env::var_os("IDLEWISE_TRACES")?).join(name);
    path.exists().then_some(path)
}

impl Load {
    /// Whether what it needs is on this machine.
    pub fn is_there(&self) -> bool {
        match self.kind {
            Kind::From(name, _) | Kind::WorstMinute(name) => real(name).is_some(),
            Kind::Recorded => Path::new(RECORDED).exists(),
            Kind::OneByOne(_) | Kind::Readers(..) => true,
        }
    }

    /// The foreground on a device: with its writes, or with reads in their place.
    pub fn make<'a>(
        &self,
        tool: &'a Tool,
        device: &'a Device,
        folder: &Path,
        writes: bool,
        seconds: u64,
        stop: &'a AtomicBool,
    ) -> anyhow::Result<Box<dyn Foreground + 'a>> {
        let trace = match self.kind {
            Kind::OneByOne(load) => return Ok(Box::new(Synthetic { device, load, stop })),
            Kind::Readers(readers, think) => return Ok(Box::new(Closed { device, readers, think, stop })),
            Kind::Recorded => RECORDED.to_string(),
            Kind::From(name, from) => cut(tool, name, from, seconds, folder)?,
            Kind::WorstMinute(name) => cut(tool, name, worst_minute(name)? * 60, seconds, folder)?,
        };
        Ok(Box::new(Replay { tool, device, trace, out: folder.join("replayed.csv"), writes }))
    }
}

/// A stretch of a trace, in a file of its own.
fn cut(tool: &Tool, name: &str, from: u64, seconds: u64, folder: &Path) -> anyhow::Result<String> {
    let whole = real(name).with_context(|| format!("{name} is not here"))?.display().to_string();
    let part = folder.join("stretch.parquet").display().to_string();
    let [from, until] = [from, from + seconds + 60].map(|time| format!("{time}s"));
    tool.json(&["trace", "cut", &whole, "--from", &from, "--until", &until, "--out", &part])?;
    Ok(part)
}

/// Which minute of its first hour has the most requests.
fn worst_minute(name: &str) -> anyhow::Result<u64> {
    let columns = open(&[real(name).context("it is here")?], &ReadOptions::default())?.columns;
    let mut minutes = [0u64; 60];
    let first = columns.requests().next().map_or(0, |request| request.arrival.0);
    for request in columns.requests() {
        let minute = (request.arrival.0 - first) / 60_000_000_000;
        if let Some(count) = minutes.get_mut(minute as usize) {
            *count += 1;
        }
    }
    Ok((0..60).max_by_key(|&minute| minutes[minute as usize]).unwrap_or(0))
}
