//! Measuring what a scrubber does to a foreground on the emulated disk, with progress.

pub mod closed;
pub mod device;
pub mod foreground;
pub mod found;
pub mod load;
mod markdown;
pub mod mounted;
pub mod outcome;
mod random;
pub mod scrubber;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use device::Device;
use foreground::Foreground;
pub use markdown::markdown;
use outcome::{Outcome, Run};
use scrubber::{Reader, Scrubber};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::{Running, Tool};

/// What idlewise is asked for.
pub const GOAL: [&str; 6] = ["--mean-slowdown", "1ms", "--max-slowdown", "50ms", "--observe", "10s"];
/// The foreground runs for so long before idlewise is measured: while it observes, and a little more.
pub const WARM_UP: u64 = 12;

/// How a scrubber is measured beside a foreground.
#[derive(Clone, Copy, Debug)]
pub struct Runs {
    /// How often.
    pub count: u64,
    /// How long each time.
    pub seconds: u64,
}

impl Runs {
    /// Seconds in all.
    fn duration(self, scrubber: Scrubber) -> u64 {
        self.count * self.seconds + if scrubber == Scrubber::Idlewise { WARM_UP } else { 0 }
    }
}

/// How long, how often and with which random numbers.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Runs of synthetic loads.
    pub synthetic: Runs,
    /// Runs of replays.
    pub replays: Runs,
    /// Seed of everything random; each run has the next one.
    pub seed: u64,
}

/// A flag that is set when whoever runs this asks it to end.
pub fn stop_flag() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// Does the work of each, so many at a time and in their order; none is begun any more once one has failed, or it is asked to end.
pub fn side_by_side<T: Sync>(
    all: &[T],
    at_once: usize,
    stop: &AtomicBool,
    work: impl Fn(&T) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let some = || {
        while let Some(one) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            ensure!(!stop.load(Ordering::Relaxed), "interrupted");
            work(one).inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    thread::scope(|threads| {
        let threads: Vec<_> = (0..at_once).map(|_| threads.spawn(some)).collect();
        let ended = threads.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.collect::<Vec<anyhow::Result<()>>>().into_iter().collect()
    })
}

/// The kernel's version, such as 6.12.
pub fn kernel() -> anyhow::Result<String> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(kernel.split('.').take(2).collect::<Vec<_>>().join("."))
}

/// The device and all that is needed to measure on it.
pub struct Lab {
    /// The command.
    pub tool: Tool,
    /// The emulated disk.
    pub device: Device,
    /// Where results go.
    pub folder: PathBuf,
    /// How to measure.
    pub settings: Settings,
    /// Set when asked to end early.
    pub stop: Arc<AtomicBool>,
    began: Instant,
    planned: u64,
    done: u64,
}

impl Lab {
    /// Makes one; measurements are announced by [`Lab::plan`].
    pub fn new(tool: Tool, device: Device, folder: PathBuf, settings: Settings, stop: Arc<AtomicBool>) -> Self {
        Self { tool, device, folder, settings, stop, began: Instant::now(), planned: 0, done: 0 }
    }

    /// Announces a measurement, so that the time left is known.
    pub fn plan(&mut self, scrubber: Scrubber, runs: Runs) {
        self.planned += runs.duration(scrubber);
    }

    /// The time left, if all goes on as so far.
    fn left(&self) -> Duration {
        let pace = if self.done == 0 { 1.0 } else { self.began.elapsed().as_secs_f64() / self.done as f64 };
        Duration::from_secs_f64((self.planned - self.done) as f64 * pace)
    }

    /// Runs a foreground some times beside a scrubber.
    pub fn measure(
        &mut self,
        name: &str,
        foreground: &mut dyn Foreground,
        runs: Runs,
        scrubber: Scrubber,
        scheduler: &str,
    ) -> anyhow::Result<Outcome> {
        if self.done == 0 {
            self.began = Instant::now();
        }
        let left = self.left().as_secs();
        println!("[{}:{:02} left] {name}", left / 60, left % 60);
        self.device.set_scheduler(scheduler)?;
        let idlewise = (scrubber == Scrubber::Idlewise).then(|| self.idlewise()).transpose()?;
        if idlewise.is_some() {
            // A seed of its own: what it learns from is not what it is measured with.
            foreground.play(WARM_UP, self.settings.seed + runs.count)?;
        }
        let mut measured = Vec::new();
        for seed in (self.settings.seed..).take(runs.count as usize) {
            ensure!(!self.stop.load(Ordering::Relaxed), "interrupted");
            let reader = Reader::start(&self.device, scrubber, seed)?;
            let before = self.device.bytes_read()?;
            let played = foreground.play(runs.seconds, seed)?;
            let scrubbed = (self.device.bytes_read()? - before).saturating_sub(played.read);
            measured.push(Run { played, scrubbed });
            reader.map_or(Ok(()), Reader::finish)?;
        }
        let said = idlewise.map(|running| running.interrupt().and_then(|()| running.finish())).transpose()?;
        self.done += runs.duration(scrubber);
        let outcome = Outcome { runs: measured, said };
        println!("    mean response time {}, scrub {}", outcome.response().of_runs(runs.count), outcome.scrub());
        Ok(outcome)
    }

    fn idlewise(&self) -> anyhow::Result<Running> {
        let (model, state) = (self.file("disk.toml")?, self.file("state")?);
        let quiet = ["--disk", &model, "--state-dir", &state, "--restart", "--quiet", "--json"];
        self.tool.start(&[&["scrub", self.device.name()?], &GOAL[..], &quiet].concat())
    }

    /// Path of a file among the results.
    pub fn file(&self, name: &str) -> anyhow::Result<String> {
        Ok(self.folder.join(name).to_str().context("the folder's path is text")?.to_string())
    }
}
