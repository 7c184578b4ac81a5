//! When an emulated disk is done with each request: one at a time, in an order of its own choice, or many side by side.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use idlewise::disk::{Cache, Cached, Flash, FlashGeometry, Geometry, Mechanical};
use idlewise::{Bytes, Nanos};

/// A request that others were preferred to so often is next.
const PASSED_OVER: u32 = 32;

/// Which disk's times requests take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// None at all.
    #[default]
    Instant,
    /// Those of a 15,000 rpm hard disk that chooses the nearest of so many requests at a time, as NCQ does; with 1, first come first served.
    HardDisk {
        /// Requests among which it chooses.
        queue: usize,
    },
    /// Those of one that reads ahead into a cache and buffers a write.
    CachedHardDisk,
    /// Those of a solid-state drive, so many times as long.
    Flash {
        /// How many times as long.
        slower: u64,
    },
}

/// A request as its disk knows it.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// What its answer is told by.
    pub id: u64,
    /// Since the disk was switched on.
    pub arrived: Nanos,
    /// Where it begins.
    pub offset: u64,
    /// Its length.
    pub size: u64,
    /// Whether it writes.
    pub writes: bool,
}

/// A disk at work.
pub trait Emulated: Send {
    /// A request arrived; arrivals never go back.
    fn arrive(&mut self, asked: Asked);

    /// When it is next done with one.
    fn next(&self) -> Option<Nanos>;

    /// Which one that is; asked only once that time has come.
    fn finish(&mut self) -> Option<u64>;
}

impl Timing {
    /// A disk of this size; none where no request takes any time.
    pub fn disk(self, size: Bytes) -> Option<Box<dyn Emulated>> {
        match self {
            Self::Instant => None,
            Self::HardDisk { queue } => Some(Box::new(HardDisk::new(size, queue))),
            Self::CachedHardDisk => {
                let mut disk = Cached::new(Geometry::fifteen_k(size), Cache::usual());
                Some(Box::new(AtArrival::new(move |asked| {
                    let (now, offset, size) = (asked.arrived, Bytes(asked.offset), Bytes(asked.size));
                    if asked.writes { disk.write(now, offset, size) } else { disk.read(now, offset, size) }
                })))
            }
            Self::Flash { slower } => {
                let mut disk = Flash::new(FlashGeometry::tlc(slower));
                Some(Box::new(AtArrival::new(move |asked| match asked.writes {
                    true => disk.write(asked.arrived, Bytes(asked.size)),
                    false => disk.read(asked.arrived, Bytes(asked.offset), Bytes(asked.size)),
                })))
            }
        }
    }
}

/// One arm: one request at a time.
struct HardDisk {
    mechanics: Mechanical,
    depth: usize,
    /// In order of arrival, each with how often others were preferred.
    waiting: Vec<(Asked, u32)>,
    current: Option<(u64, Nanos)>,
}

impl HardDisk {
    fn new(size: Bytes, depth: usize) -> Self {
        let mechanics = Mechanical::new(Geometry::fifteen_k(size));
        Self { mechanics, depth: depth.max(1), waiting: Vec::new(), current: None }
    }

    /// Begins with the request that is done first, unless an old one must not wait any longer.
    fn begin(&mut self) {
        let done = |asked: &Asked| self.mechanics.would_serve(asked.arrived, Bytes(asked.offset), Bytes(asked.size));
        let known = &self.waiting[..self.waiting.len().min(self.depth)];
        let old = known.iter().position(|(_, passed)| *passed >= PASSED_OVER);
        let nearest = || (0..known.len()).min_by_key(|&at| done(&known[at].0));
        let Some(chosen) = old.or_else(nearest) else { return };
        let (asked, _) = self.waiting.remove(chosen);
        self.waiting[..chosen].iter_mut().for_each(|(_, passed)| *passed += 1);
        let done = self.mechanics.serve(asked.arrived, Bytes(asked.offset), Bytes(asked.size));
        self.current = Some((asked.id, done));
    }
}

impl Emulated for HardDisk {
    fn arrive(&mut self, asked: Asked) {
        self.waiting.push((asked, 0));
        if self.current.is_none() {
            self.begin();
        }
    }

    fn next(&self) -> Option<Nanos> {
        self.current.map(|(_, done)| done)
    }

    fn finish(&mut self) -> Option<u64> {
        let (id, _) = self.current.take()?;
        self.begin();
        Some(id)
    }
}

/// When a request is done is known when it arrives: whatever is done is answered.
struct AtArrival<F> {
    serve: F,
    pending: BinaryHeap<Reverse<(Nanos, u64)>>,
}

impl<F: FnMut(Asked) -> Nanos + Send> AtArrival<F> {
    fn new(serve: F) -> Self {
        Self { serve, pending: BinaryHeap::new() }
    }
}

impl<F: FnMut(Asked) -> Nanos + Send> Emulated for AtArrival<F> {
    fn arrive(&mut self, asked: Asked) {
        let done = (self.serve)(asked);
        self.pending.push(Reverse((done, asked.id)));
    }

    fn next(&self) -> Option<Nanos> {
        self.pending.peek().map(|Reverse((done, _))| *done)
    }

    fn finish(&mut self) -> Option<u64> {
        self.pending.pop().map(|Reverse((_, id))| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes(8 << 30);

    /// In which order requests at these places are answered that arrive together, and when the last is.
    fn answered(timing: Timing, places: &[u64]) -> (Vec<u64>, Nanos) {
        let mut disk = timing.disk(SIZE).unwrap();
        for (id, &place) in (0..).zip(places) {
            disk.arrive(Asked { id, arrived: Nanos(0), offset: place, size: 4096, writes: false });
        }
        let (mut order, mut last) = (Vec::new(), Nanos(0));
        while let Some(done) = disk.next() {
            assert!(done >= last);
            last = done;
            order.push(disk.finish().unwrap());
        }
        (order, last)
    }

    fn places(count: u64) -> Vec<u64> {
        (0..count).map(|k| k * 7_919 % 1_021 * ((8 << 30) / 1_021) / 4096 * 4096).collect()
    }

    #[test]
    fn a_queue_of_one_is_first_come_first_served_and_a_long_one_saves_time() {
        let places = places(200);
        let (order, fifo) = answered(Timing::HardDisk { queue: 1 }, &places);
        assert_eq!(order, (0..200).collect::<Vec<_>>());
        let (order, queued) = answered(Timing::HardDisk { queue: 32 }, &places);
        assert_ne!(order, (0..200).collect::<Vec<_>>());
        assert!(queued.0 * 3 < fifo.0 * 2, "{queued:?} {fifo:?}");
    }

    /// It is next when 32 have been preferred, though always a nearer one comes.
    #[test]
    fn no_request_waits_for_ever() {
        let mut disk = Timing::HardDisk { queue: 32 }.disk(SIZE).unwrap();
        let near = |id, arrived| Asked { id, arrived, offset: id * 4096, size: 4096, writes: false };
        disk.arrive(near(1, Nanos(0)));
        disk.arrive(Asked { id: 0, arrived: Nanos(0), offset: 7 << 30, size: 4096, writes: false });
        let mut order = Vec::new();
        for id in 2..60 {
            disk.arrive(near(id, disk.next().unwrap()));
            order.push(disk.finish().unwrap());
        }
        assert_eq!(order.iter().position(|id| *id == 0), Some(33), "{order:?}");
    }

    #[test]
    fn a_solid_state_drive_serves_side_by_side() {
        let places: Vec<u64> = (0..32).map(|die| die << 14).collect();
        let (_, last) = answered(Timing::Flash { slower: 20 }, &places);
        let (_, one) = answered(Timing::Flash { slower: 20 }, &places[..1]);
        assert!(last.0 < 2 * one.0, "{last:?} {one:?}");
    }

    /// 0.5 ms and the transfer of what was read ahead; 0.6 ms and the transfer of a write.
    #[test]
    fn a_cache_answers_faster_than_the_platter() {
        let mut disk = Timing::CachedHardDisk.disk(SIZE).unwrap();
        let mut time = |id: u64, offset, writes| {
            let arrived = Nanos::from_millis(50 * id);
            disk.arrive(Asked { id, arrived, offset, size: 30_000, writes });
            let done = disk.next().unwrap();
            assert_eq!(disk.finish(), Some(id));
            done.since(arrived)
        };
        let first = time(0, 1 << 30, false);
        assert!(first > Nanos::from_micros(600), "{first:?}");
        assert_eq!(time(1, (1 << 30) + 30_000, false), Nanos::from_micros(600));
        assert_eq!(time(2, 1 << 20, true), Nanos::from_micros(700));
    }
}
