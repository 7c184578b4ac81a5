//! A solid-state drive as its parts: dies that read and program pages, channels that they share, and a buffer for writes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::{Bytes, Nanos};

/// The constants of a solid-state drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlashGeometry {
    /// Channels, each of which moves one page at a time.
    pub channels: u32,
    /// Dies on each channel, each of which reads or programs one page at a time.
    pub dies: u32,
    /// What is read or programmed at a time.
    pub page: Bytes,
    /// Time in which a die reads a page.
    pub read: Nanos,
    /// Time in which a die programs a page.
    pub program: Nanos,
    /// Time in which a die erases a block.
    pub erase: Nanos,
    /// Pages of a block: after so many programmed pages a die erases one.
    pub block_pages: u32,
    /// Time in which a channel moves a page.
    pub transfer: Nanos,
    /// Controller time spent on every request.
    pub overhead: Nanos,
    /// Pages that its buffer for writes holds.
    pub buffer_pages: usize,
}

impl FlashGeometry {
    /// A drive of eight channels with four dies each, with the times of planar TLC flash at 400 MB/s a channel, each of them `slower`
    /// times as long: an emulation may not be fast enough for real ones.
    pub fn tlc(slower: u64) -> Self {
        let times = |micros: u64| Nanos(micros * 1_000 * slower);
        Self {
            channels: 8,
            dies: 4,
            page: Bytes::from_kib(16),
            read: times(60),
            program: times(700),
            erase: times(5_000),
            block_pages: 256,
            transfer: times(40),
            overhead: times(10),
            buffer_pages: 512,
        }
    }
}

/// The state of the drive: until when each part is busy.
///
/// A read waits for its dies and channels only. A write is done when the buffer has it, and is programmed from there, to the dies in turn.
#[derive(Clone, Debug)]
pub struct Flash {
    geometry: FlashGeometry,
    dies: Vec<u64>,
    channels: Vec<u64>,
    programmed: Vec<u32>,
    next: usize,
    /// When each page in the buffer leaves it.
    buffer: BinaryHeap<Reverse<u64>>,
}

impl Flash {
    /// A drive that nobody has used yet.
    pub fn new(geometry: FlashGeometry) -> Self {
        let (channels, dies) = (geometry.channels.max(1) as usize, (geometry.channels * geometry.dies).max(1) as usize);
        let [channels, dies] = [channels, dies].map(|count| vec![0; count]);
        Self { programmed: vec![0; dies.len()], dies, channels, geometry, next: 0, buffer: BinaryHeap::new() }
    }

    /// The time at which a read that arrives at `now` completes. Arrivals never go back.
    pub fn read(&mut self, now: Nanos, offset: Bytes, size: Bytes) -> Nanos {
        let (page, begun) = (self.geometry.page.0.max(1), now.0 + self.geometry.overhead.0);
        let (mut at, end, mut done) = (offset.0, offset.0 + size.0, begun);
        while at < end {
            let until = (at / page + 1) * page;
            let die = (at / page % self.dies.len() as u64) as usize;
            let channel = die % self.channels.len();
            let sensed = begun.max(self.dies[die]) + self.geometry.read.0;
            let share = (until.min(end) - at) as f64 / page as f64;
            let moved = sensed.max(self.channels[channel]) + (self.geometry.transfer.0 as f64 * share) as u64;
            // A die keeps the page until the channel has taken it.
            (self.dies[die], self.channels[channel]) = (moved, moved);
            (at, done) = (until, done.max(moved));
        }
        Nanos(done)
    }

    /// The time at which a write that arrives at `now` completes.
    pub fn write(&mut self, now: Nanos, size: Bytes) -> Nanos {
        let mut done = now.0 + self.geometry.overhead.0;
        for _ in 0..size.0.div_ceil(self.geometry.page.0.max(1)) {
            while self.buffer.peek().is_some_and(|left| left.0 <= done) {
                self.buffer.pop();
            }
            if self.buffer.len() >= self.geometry.buffer_pages.max(1) {
                // It takes the place of the first page that leaves.
                done = self.buffer.pop().map_or(done, |left| left.0);
            }
            let programmed = self.program(done);
            self.buffer.push(Reverse(programmed));
        }
        Nanos(done)
    }

    /// Programs a page that is in the buffer from then on: when it leaves the buffer.
    fn program(&mut self, from: u64) -> u64 {
        let die = self.next;
        self.next = (self.next + 1) % self.dies.len();
        let channel = die % self.channels.len();
        let moved = from.max(self.channels[channel]).max(self.dies[die]) + self.geometry.transfer.0;
        self.channels[channel] = moved;
        self.dies[die] = moved + self.geometry.program.0;
        let programmed = self.dies[die];
        self.programmed[die] += 1;
        if self.programmed[die] >= self.geometry.block_pages.max(1) {
            self.programmed[die] = 0;
            self.dies[die] += self.geometry.erase.0;
        }
        programmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 16 << 10;

    fn drive() -> Flash {
        Flash::new(FlashGeometry::tlc(1))
    }

    #[test]
    fn reads_of_other_dies_do_not_wait_for_each_other() {
        let mut flash = drive();
        let alone = flash.read(Nanos(0), Bytes(0), Bytes(PAGE));
        assert_eq!(alone, Nanos(110_000));
        // On another channel at the same time, and on the same die behind the first.
        assert_eq!(flash.read(Nanos(0), Bytes(PAGE), Bytes(PAGE)), alone);
        assert_eq!(flash.read(Nanos(0), Bytes(32 * PAGE), Bytes(PAGE)), Nanos(210_000));
        // A quarter of a page takes a quarter of the time on the channel.
        assert_eq!(drive().read(Nanos(0), Bytes(0), Bytes(PAGE / 4)), Nanos(80_000));
    }

    #[test]
    fn a_long_read_has_all_dies_at_work() {
        let megabyte = drive().read(Nanos(0), Bytes(0), Bytes(1 << 20));
        // 64 pages on 8 channels: eight transfers of 40 us each behind the first page, a die's second read overlapping with others.
        assert_eq!(megabyte, Nanos(10_000 + 60_000 + 8 * 40_000));
    }

    #[test]
    fn writes_are_done_when_they_are_in_the_buffer_until_it_is_full() {
        let mut flash = drive();
        let fits = flash.write(Nanos(0), Bytes(512 * PAGE));
        assert_eq!(fits, Nanos(10_000));
        // The next one waits for the first page to be programmed.
        assert_eq!(flash.write(Nanos(20_000), Bytes(PAGE)), Nanos(10_000 + 40_000 + 700_000));
        // Reads wait for what is programmed on their die: 16 pages of the buffer, or 17.
        let read = flash.read(Nanos(20_000), Bytes(PAGE), Bytes(PAGE));
        assert!(read > Nanos(15 * 740_000) && read < Nanos(18 * 740_000 + 1_300_000), "{read:?}");
    }

    #[test]
    fn a_die_erases_once_in_a_block_of_pages() {
        let geometry = FlashGeometry { channels: 1, dies: 1, buffer_pages: 1, ..FlashGeometry::tlc(1) };
        let mut flash = Flash::new(geometry);
        let written = flash.write(Nanos(0), Bytes(258 * PAGE));
        // The last waits for the 257th page, behind the erasure.
        assert_eq!(written, Nanos(10_000 + 257 * 740_000 + 5_000_000));
    }
}
