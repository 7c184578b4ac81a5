//! The scrubbers that are compared: readers that keep a fixed delay or rate, whatever the foreground does, and idlewise.

use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};
use idlewise::order::{Order, Place, Surface};
use idlewise::{Bytes, Rate};
use rustix::thread::gettid;

use super::device::{Buffer, Device, SECTOR};
use super::load::REQUEST;
use super::random::Random;

/// Regions of the staggered order.
pub const REGIONS: u64 = 128;

/// Which scrubber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scrubber {
    /// None: the foreground alone.
    None,
    /// A reader that does not look at the foreground.
    Reader {
        /// Size of each request.
        size: Bytes,
        /// When the next one is issued.
        pace: Pace,
        /// Whether its thread is in the idle I/O priority class.
        idle_class: bool,
        /// Whether it visits the disk in the staggered order.
        staggered: bool,
    },
    /// `idlewise scrub` with a goal.
    Idlewise,
}

/// When a reader issues its next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// So many milliseconds after the one before it is done.
    Delay(u64),
    /// As soon as it is below this rate on average.
    Rate(Rate),
}

impl Scrubber {
    /// Back to back in the idle class.
    pub fn idle_class(staggered: bool) -> Self {
        Self::Reader { size: REQUEST, pace: Pace::Delay(0), idle_class: true, staggered }
    }

    /// With default priority.
    pub fn delayed(delay: u64, staggered: bool) -> Self {
        Self::Reader { size: REQUEST, pace: Pace::Delay(delay), idle_class: false, staggered }
    }

    /// Its name; the order is named beside it.
    pub fn label(self) -> String {
        match self {
            Self::None => "no scrubber".into(),
            Self::Reader { idle_class: true, .. } => "idle class".into(),
            Self::Reader { pace: Pace::Delay(delay), .. } => format!("delay {delay} ms"),
            Self::Reader { pace: Pace::Rate(rate), .. } => format!("fixed rate of {rate}"),
            Self::Idlewise => "idlewise".into(),
        }
    }

    /// Its order.
    pub fn order(self) -> &'static str {
        match self {
            Self::None => "-",
            Self::Reader { staggered: true, .. } => "staggered",
            _ => "sequential",
        }
    }
}

/// A reader at work on a thread of its own, until it is dropped.
pub struct Reader {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Reader {
    /// Starts the one that `scrubber` is, if it is one, at a random place of its course, the same for the same seed.
    pub fn start(device: &Device, scrubber: Scrubber, seed: u64) -> anyhow::Result<Option<Self>> {
        let Scrubber::Reader { size, pace, idle_class, staggered } = scrubber else { return Ok(None) };
        let device = device.again()?;
        let order = if staggered { Order::staggered(REGIONS, size) } else { Order::SEQUENTIAL };
        // Another sequence than that of the foreground with this seed.
        let mut random = Random::new(!seed);
        let place = random.below(device.size.0 / size.0) * size.0;
        let delay = if let Pace::Delay(delay) = pace { Duration::from_millis(delay) } else { Duration::ZERO };
        let first = Duration::from_nanos(random.below(delay.as_nanos() as u64 + 1));
        let (stop, stopped) = channel();
        let (ready, is_ready) = channel();
        let thread = thread::spawn(move || {
            if idle_class {
                into_idle_class()?;
            }
            // Nobody waits for it any more only if starting it was given up.
            let _ = ready.send(());
            // Somewhere within its delay, as if it had been at work before.
            if stopped.recv_timeout(first) != Err(RecvTimeoutError::Timeout) {
                return Ok(());
            }
            scrub(&device, order, place, size, pace, &stopped)
        });
        let started = Self { stop: Some(stop), thread: Some(thread) };
        if is_ready.recv().is_ok() {
            return Ok(Some(started));
        }
        started.finish()?;
        bail!("the scrubber ended before it began")
    }

    /// Stops it, and says what was in its way.
    pub fn finish(mut self) -> anyhow::Result<()> {
        self.join().unwrap_or(Ok(()))
    }

    fn join(&mut self) -> Option<anyhow::Result<()>> {
        drop(self.stop.take());
        let ended = self.thread.take()?.join();
        Some(ended.unwrap_or_else(|_| Err(anyhow!("the scrubber's thread panicked"))))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Whoever did not finish it has an error of their own to tell.
        let _ = self.join();
    }
}

/// Puts the calling thread into the idle I/O priority class: its reads are issued from this thread.
fn into_idle_class() -> anyhow::Result<()> {
    let thread = gettid().as_raw_nonzero().to_string();
    let status = Command::new("ionice").args(["-c", "3", "-p", &thread]).status().context("ionice (util-linux)")?;
    ensure!(status.success(), "ionice could not put the scrubber into the idle class");
    Ok(())
}

/// Reads request after request until told to stop.
fn scrub(device: &Device, order: Order, from: u64, size: Bytes, pace: Pace, stop: &Receiver<()>) -> anyhow::Result<()> {
    let surface = Surface { size: device.size, block: SECTOR as u32 };
    let make = |place: &Place| order.make(surface, place).map_err(|problem| anyhow!("{problem}"));
    let mut course = make(&Place::after(from))?;
    let mut buffer = Buffer::new(size);
    let (began, mut read) = (Instant::now(), 0.0);
    loop {
        let Some(extent) = course.next(size) else {
            course = make(&Place::default())?;
            continue;
        };
        device.read(&mut buffer, extent)?;
        read += extent.length.0 as f64;
        let wait = match pace {
            Pace::Delay(delay) => Duration::from_millis(delay),
            Pace::Rate(rate) => Duration::from_secs_f64(read / rate.0.max(1) as f64).saturating_sub(began.elapsed()),
        };
        if stop.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
            return Ok(());
        }
    }
}
