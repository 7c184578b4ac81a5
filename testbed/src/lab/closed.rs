//! Several readers at once, each of which waits for its answer: how a benchmark, or a server with a few workers, uses a disk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use idlewise::Bytes;
use idlewise::order::Extent;

use super::device::{Buffer, Device, SECTOR};
use super::foreground::{Foreground, Played};
use super::random::Random;

const REQUEST: Bytes = Bytes::from_kib(16);

/// Readers of random places on a device.
pub struct Closed<'a> {
    /// Where.
    pub device: &'a Device,
    /// How many.
    pub readers: u64,
    /// Mean time between an answer and the reader's next request.
    pub think: Duration,
    /// Asked to end early.
    pub stop: &'a AtomicBool,
}

impl Closed<'_> {
    fn reader(&self, seconds: u64, seed: u64) -> anyhow::Result<Vec<f64>> {
        let (device, mut buffer, mut random) = (self.device.again()?, Buffer::new(REQUEST), Random::new(seed));
        // The same requests however long they take: as many as there would be on a disk that takes 10 ms.
        let count = (seconds as f64 / (self.think.as_secs_f64() + 0.01)) as u64;
        let mut responses = Vec::with_capacity(count as usize);
        for _ in 0..count {
            ensure!(!self.stop.load(Ordering::Relaxed), "interrupted");
            thread::sleep(random.exponential(self.think));
            let offset = Bytes(random.below((device.size.0 - REQUEST.0) / SECTOR) * SECTOR);
            let issued = Instant::now();
            device.read(&mut buffer, Extent { offset, length: REQUEST })?;
            responses.push(issued.elapsed().as_secs_f64());
        }
        Ok(responses)
    }
}

impl Foreground for Closed<'_> {
    /// The same seed gives the same places and think times of each reader, whatever the scrubber does; responses are in turns, one of each.
    fn play(&mut self, seconds: u64, seed: u64) -> anyhow::Result<Played> {
        let began = Instant::now();
        let this = &*self;
        let all = thread::scope(|scope| {
            let start = |reader| scope.spawn(move || this.reader(seconds, seed.wrapping_add(reader << 32)));
            let threads: Vec<_> = (0..self.readers).map(start).collect();
            let join = |thread: thread::ScopedJoinHandle<_>| thread.join().map_err(|_| anyhow!("a reader panicked"))?;
            threads.into_iter().map(join).collect::<anyhow::Result<Vec<_>>>()
        })?;
        let turns = all.iter().map(Vec::len).max().unwrap_or(0);
        let responses: Vec<f64> =
            (0..turns).flat_map(|turn| all.iter().filter_map(move |one| one.get(turn).copied())).collect();
        let bytes = responses.len() as u64 * REQUEST.0;
        Ok(Played { responses, elapsed: began.elapsed().as_secs_f64(), bytes, read: bytes })
    }
}
