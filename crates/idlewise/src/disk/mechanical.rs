//! A hard disk as its mechanics: seek by distance, rotation by angle, transfer by zone. It drives the emulated disk.

use crate::{Bytes, Nanos, Rate};

/// The constants of a hard disk with one continuous spiral of data (perfect skew: no time is lost between tracks).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometry {
    /// Size of the disk.
    pub capacity: Bytes,
    /// Time of one rotation.
    pub rotation: Nanos,
    /// Seek to the neighbouring track.
    pub shortest_seek: Nanos,
    /// Seek across the whole disk.
    pub longest_seek: Nanos,
    /// Transfer rate at the first byte.
    pub outer_rate: Rate,
    /// Transfer rate at the last byte.
    pub inner_rate: Rate,
    /// Controller time spent on every request before the arm moves.
    pub overhead: Nanos,
}

impl Geometry {
    /// A 15,000 rpm drive of the class used in DSN 2012 (about 90 MB/s, 3.6 ms mean seek), scaled to `capacity`.
    pub fn fifteen_k(capacity: Bytes) -> Self {
        Self {
            capacity,
            rotation: Nanos::from_millis(4),
            shortest_seek: Nanos(400_000),
            longest_seek: Nanos(7_000_000),
            outer_rate: Rate(104_000_000),
            inner_rate: Rate(77_000_000),
            overhead: Nanos(100_000),
        }
    }
}

/// The state of the disk: where the head is and when it became free.
#[derive(Clone, Debug)]
pub struct Mechanical {
    geometry: Geometry,
    head: u64,
    free_at: u64,
}

impl Mechanical {
    /// A disk at rest over its first byte.
    pub fn new(geometry: Geometry) -> Self {
        Self { geometry, head: 0, free_at: 0 }
    }

    /// The time at which a request that arrives at `now` completes, first come first served. Arrivals never go back.
    ///
    /// A request that continues the one before it, and arrived before that one completed, streams on without a seek or
    /// a rotation; one that arrives later has missed its sector and waits for the platter to come round, as sequential
    /// VERIFYs do (DSN 2012, section IV-A).
    pub fn serve(&mut self, now: Nanos, offset: Bytes, size: Bytes) -> Nanos {
        let streams = offset.0 == self.head && now.0 < self.free_at;
        let start = if streams { self.free_at } else { self.positioned_at(now.0.max(self.free_at), offset.0) };
        let rate = self.rate(offset.0 + size.0 / 2);
        self.free_at = start + (size.0 as f64 / rate * 1e9) as u64;
        self.head = offset.0 + size.0;
        Nanos(self.free_at)
    }

    /// The time at which such a request would complete if it were the next.
    pub fn would_serve(&self, now: Nanos, offset: Bytes, size: Bytes) -> Nanos {
        self.clone().serve(now, offset, size)
    }

    /// When the head would stand over the byte at `offset`.
    pub(super) fn reaches(&self, now: Nanos, offset: Bytes) -> Nanos {
        Nanos(self.positioned_at(now.0.max(self.free_at), offset.0))
    }

    /// The head has read on to this place.
    pub(super) fn stands_over(&mut self, offset: Bytes) {
        self.head = offset.0;
    }

    /// When the head, free from `from` on, stands over the byte at `offset`.
    fn positioned_at(&self, from: u64, offset: u64) -> u64 {
        let on_track = from + self.geometry.overhead.0 + self.seek(self.head.abs_diff(offset));
        let rotation = self.geometry.rotation.0;
        let angle = (self.turns(offset).fract() * rotation as f64) as u64;
        on_track + (angle + rotation - on_track % rotation) % rotation
    }

    /// Seek time: short seeks grow with the square root of the distance, none at all within a track.
    fn seek(&self, distance: u64) -> u64 {
        let share = distance as f64 / self.geometry.capacity.0.max(1) as f64;
        let track = self.rate(0) * self.geometry.rotation.as_secs_f64();
        if (distance as f64) < track {
            return 0;
        }
        let (short, long) = (self.geometry.shortest_seek.0 as f64, self.geometry.longest_seek.0 as f64);
        (short + (long - short) * share.min(1.0).sqrt()) as u64
    }

    /// Bytes per second at a place: falls linearly from the first byte to the last.
    pub(super) fn rate(&self, offset: u64) -> f64 {
        let share = (offset as f64 / self.geometry.capacity.0.max(1) as f64).min(1.0);
        let (outer, inner) = (self.geometry.outer_rate.0 as f64, self.geometry.inner_rate.0 as f64);
        outer - (outer - inner) * share
    }

    /// Rotations of the spiral from the first byte to `offset`: the integral of 1 / (rate * rotation).
    fn turns(&self, offset: u64) -> f64 {
        let capacity = self.geometry.capacity.0.max(1) as f64;
        let (outer, inner) = (self.geometry.outer_rate.0 as f64, self.geometry.inner_rate.0 as f64);
        let fall = outer - inner;
        let seconds = if fall.abs() < 1.0 {
            offset as f64 / outer
        } else {
            -(capacity / fall) * (1.0 - fall / outer * offset as f64 / capacity).ln()
        };
        seconds / self.geometry.rotation.as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn disk() -> Mechanical {
        Mechanical::new(Geometry::fifteen_k(Bytes(300 * GIB)))
    }

    #[test]
    fn back_to_back_verifies_miss_a_rotation_as_in_figure_4() {
        for (kib, low, high) in [(64, 4.5, 5.1), (4096, 44.0, 53.0)] {
            let mut disk = disk();
            let size = kib << 10;
            let mut now = disk.serve(Nanos(0), Bytes(0), Bytes(size)).0;
            let begin = now;
            for k in 1..=100 {
                now = disk.serve(Nanos(now + 50_000), Bytes(k * size), Bytes(size)).0;
            }
            let mean_ms = (now - begin) as f64 / 100.0 / 1e6;
            assert!((low..high).contains(&mean_ms), "{kib} KiB: {mean_ms} ms");
        }
    }

    #[test]
    fn queued_pieces_of_one_read_stream() {
        let (mut one, mut four) = (disk(), disk());
        let whole = one.serve(Nanos(0), Bytes(GIB), Bytes(4 << 20));
        let mut last = Nanos(0);
        for k in 0..4 {
            last = four.serve(Nanos(k * 1_000), Bytes(GIB + (k << 20)), Bytes(1 << 20));
        }
        assert!(whole.0.abs_diff(last.0) < 10_000, "{whole:?} {last:?}");
    }

    #[test]
    fn random_reads_take_seek_and_half_a_rotation() {
        let mut disk = disk();
        let (mut now, mut place) = (0u64, 1u64);
        for _ in 0..2_000 {
            place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let offset = (place >> 20) % (299 * GIB) / 4096 * 4096;
            now = disk.serve(Nanos(now), Bytes(offset), Bytes(8192)).0;
        }
        let mean_ms = now as f64 / 2_000.0 / 1e6;
        // overhead 0.1 + mean of 0.4 + 6.6 sqrt(x) over random distances (8/15 of 6.6) + 2.0 + 0.09
        assert!((5.8..6.5).contains(&mean_ms), "{mean_ms} ms");
    }
}
