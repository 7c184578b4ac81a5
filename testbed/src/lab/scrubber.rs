//! The scrubbers that are compared: those of DSN 2012, which wait for nothing but a fixed time, and idlewise.

use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use idlewise::order::{Order, Place, Surface};
use rustix::thread::gettid;

use crate::device::{Buffer, Device, SECTOR};
use crate::load::REQUEST;
use crate::random::Random;

/// Regions of the staggered order.
pub const REGIONS: u64 = 128;

/// Which scrubber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scrubber {
    /// None: the foreground alone.
    None,
    /// Requests of 64 KiB, each so long after the one before it is done.
    Fixed {
        /// How long, in milliseconds.
        delay: u64,
        /// Whether its thread is in the idle I/O priority class.
        idle_class: bool,
        /// Whether it visits the disk in the staggered order.
        staggered: bool,
    },
    /// `idlewise scrub` with a goal.
    Idlewise,
}

impl Scrubber {
    /// Back to back in the idle class.
    pub fn idle_class(staggered: bool) -> Self {
        Self::Fixed { delay: 0, idle_class: true, staggered }
    }

    /// With default priority.
    pub fn delayed(delay: u64, staggered: bool) -> Self {
        Self::Fixed { delay, idle_class: false, staggered }
    }

    /// Its name; the order is named beside it.
    pub fn label(self) -> String {
        match self {
            Self::None => "no scrubber".into(),
            Self::Fixed { idle_class: true, .. } => "idle class".into(),
            Self::Fixed { delay, .. } => format!("delay {delay} ms"),
            Self::Idlewise => "idlewise".into(),
        }
    }

    /// Its order.
    pub fn order(self) -> &'static str {
        match self {
            Self::None => "-",
            Self::Fixed { staggered: true, .. } => "staggered",
            _ => "sequential",
        }
    }
}

/// A scrubber with fixed delays at work on a thread of its own, until it is dropped.
pub struct Fixed {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Fixed {
    /// Starts it at a random place of its course, the same for the same seed.
    pub fn start(device: &Device, delay: u64, idle_class: bool, staggered: bool, seed: u64) -> anyhow::Result<Self> {
        let device = device.again()?;
        let order = if staggered { Order::staggered(REGIONS, REQUEST) } else { Order::SEQUENTIAL };
        // Another sequence than that of the foreground with this seed.
        let mut random = Random::new(!seed);
        let place = random.below(device.size.0 / REQUEST.0) * REQUEST.0;
        let delay = Duration::from_millis(delay);
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
            scrub(&device, order, place, delay, &stopped)
        });
        let started = Self { stop: Some(stop), thread: Some(thread) };
        if is_ready.recv().is_ok() {
            return Ok(started);
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

impl Drop for Fixed {
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
fn scrub(device: &Device, order: Order, from: u64, delay: Duration, stop: &Receiver<()>) -> anyhow::Result<()> {
    let surface = Surface { size: device.size, block: SECTOR as u32 };
    let make = |place: &Place| order.make(surface, place).map_err(|problem| anyhow!("{problem}"));
    let mut course = make(&Place::after(from))?;
    let mut buffer = Buffer::new(REQUEST);
    loop {
        let Some(extent) = course.next(REQUEST) else {
            course = make(&Place::default())?;
            continue;
        };
        device.read(&mut buffer, extent.offset)?;
        if stop.recv_timeout(delay) != Err(RecvTimeoutError::Timeout) {
            return Ok(());
        }
    }
}
