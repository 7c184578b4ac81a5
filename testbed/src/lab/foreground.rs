//! What runs in the foreground, and what came of it.

use std::path::PathBuf;

use super::device::Device;
use crate::Tool;
use anyhow::ensure;
use idlewise::trace::{Op, ReadOptions, open};

/// A foreground that can be played again and again.
pub trait Foreground {
    /// Plays it for about so long; the same seed is the same foreground.
    fn play(&mut self, seconds: u64, seed: u64) -> anyhow::Result<Played>;
}

/// One run of a foreground.
pub struct Played {
    /// Every response time in seconds, in the order of the requests.
    pub responses: Vec<f64>,
    /// Seconds from its beginning to its end.
    pub elapsed: f64,
    /// Bytes that it moved.
    pub bytes: u64,
    /// Of them, read: what the device's counters hold of it.
    pub read: u64,
}

/// A trace, each request at its recorded time: from its beginning, in every run.
pub struct Replay<'a> {
    /// The command that plays it.
    pub tool: &'a Tool,
    /// Where.
    pub device: &'a Device,
    /// The trace.
    pub trace: String,
    /// For what was measured; replaced in each run.
    pub out: PathBuf,
    /// Whether its writes write, or else read.
    pub writes: bool,
}

impl Foreground for Replay<'_> {
    fn play(&mut self, seconds: u64, _: u64) -> anyhow::Result<Played> {
        let (time, out) = (format!("{seconds}s"), self.out.display().to_string());
        let mut arguments = vec!["replay", &self.trace, self.device.name()?, "--for", &time, "--out", &out];
        arguments.extend(self.writes.then_some("--allow-writes"));
        let began = std::time::Instant::now();
        let said = self.tool.json(&arguments)?;
        let elapsed = began.elapsed().as_secs_f64();
        ensure!(said["failed"] == 0, "the emulated disk failed, or the replay was interrupted");
        let columns = open(std::slice::from_ref(&self.out), &ReadOptions::default())?.columns;
        let sum = |reads: bool| {
            let is_read = |op| op == Op::Read || !self.writes;
            columns.requests().filter(|r| !reads || is_read(r.op)).map(|r| u64::from(r.length)).sum::<u64>()
        };
        let services = columns.requests().filter_map(|request| request.service());
        let responses = services.map(|time| time.as_secs_f64()).collect();
        Ok(Played { responses, elapsed, bytes: sum(false), read: sum(true) })
    }
}
