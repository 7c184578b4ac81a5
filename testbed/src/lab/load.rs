//! The synthetic foreground loads of DSN 2012, section IV-B: one request at a time, with think time before each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use idlewise::Bytes;
use idlewise::order::Extent;

use super::device::{Buffer, Device, SECTOR};
use super::foreground::{Foreground, Played};
use super::random::Random;

/// Size of every request, of the foreground and of the scrubbers.
pub const REQUEST: Bytes = Bytes::from_kib(64);
/// What the sequential load reads from one place on.
pub const CHUNK: Bytes = Bytes(8 << 20);
/// Mean think time.
pub const THINK: Duration = Duration::from_millis(100);
/// Think time and the response of an undisturbed disk: how long a request takes its turn, about.
const TURN: Duration = Duration::from_millis(105);

/// How many requests take so many seconds.
pub fn requests(seconds: u64) -> usize {
    (Duration::from_secs(seconds).as_secs_f64() / TURN.as_secs_f64()).round().max(1.0) as usize
}

/// Which load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// 8 MiB from a random place on, then from another.
    Sequential,
    /// A random place for every request.
    Random,
}

impl Load {
    /// Its name.
    pub fn label(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::Random => "random",
        }
    }

    /// The think time before each request of a run on a disk of this size, and its place.
    pub fn turns(self, size: Bytes, seconds: u64, seed: u64) -> Vec<(Duration, Bytes)> {
        let mut random = Random::new(seed);
        let chunk = if self == Self::Sequential { CHUNK } else { REQUEST };
        let (mut place, mut left) = (0, 0);
        let turn = |_| {
            if left == 0 {
                (place, left) = (random.below((size.0 - chunk.0) / SECTOR) * SECTOR, chunk.0);
            }
            let turn = (random.exponential(THINK), Bytes(place));
            (place, left) = (place + REQUEST.0, left - REQUEST.0);
            turn
        };
        (0..requests(seconds)).map(turn).collect()
    }
}

/// A load on a device.
pub struct Synthetic<'a> {
    /// Where.
    pub device: &'a Device,
    /// Which.
    pub load: Load,
    /// Asked to end early.
    pub stop: &'a AtomicBool,
}

impl Foreground for Synthetic<'_> {
    /// The same seed gives the same places, think times and number of requests, whatever the scrubber does.
    fn play(&mut self, seconds: u64, seed: u64) -> anyhow::Result<Played> {
        let turns = self.load.turns(self.device.size, seconds, seed);
        let mut buffer = Buffer::new(REQUEST);
        let mut responses = Vec::with_capacity(turns.len());
        let began = Instant::now();
        for (think, place) in &turns {
            ensure!(!self.stop.load(Ordering::Relaxed), "interrupted");
            thread::sleep(*think);
            let issued = Instant::now();
            self.device.read(&mut buffer, Extent { offset: *place, length: REQUEST })?;
            responses.push(issued.elapsed().as_secs_f64());
        }
        let bytes = turns.len() as u64 * REQUEST.0;
        Ok(Played { responses, elapsed: began.elapsed().as_secs_f64(), bytes, read: bytes })
    }
}
