//! What a disk is like: its service times, the rate of scans in either order, whether a verify reads the medium (DSN 2012,
//! figures 1, 4 and 5), and how much of a verify a foreground read waits for. Read-only, and in the disk's idle times.

mod cache;
mod interference;
mod scans;
mod service;

pub use cache::{Cache, Repeat, cache};
pub use interference::{Interfered, Last, interference};
pub use scans::{Scan, Scans, scans};
pub use service::{Service, disk_model, service};

use std::sync::atomic::AtomicBool;

use idlewise::order::Extent;
use idlewise::{Bytes, Nanos, TotalTime};

use crate::device::Device;
use crate::device::verify::Verifier;
use crate::monitor::Monitor;
use crate::scrub::ScrubError;
use crate::scrub::lane::{Lane, Timed};

/// Smallest size tried, where blocks are no larger.
const SMALLEST: u64 = 1 << 10;
/// Largest size tried, on devices that are large enough.
pub const LARGEST: Bytes = Bytes(16 << 20);
/// A request is at most this part of the device.
const PART: u64 = 8;
/// Seed of the places that the head is moved to.
const SEED: u64 = 0x1d1e_3153;

/// Measures one device.
pub struct Probe<'a> {
    lane: Lane<'a>,
    random: u64,
    /// Stretches in which something could not be read.
    unreadable: Vec<Extent>,
}

/// Told the share done.
pub type Watch<'w> = &'w mut dyn FnMut(f64);

impl<'a> Probe<'a> {
    /// Begins to watch the foreground of `device`; `stop` ends whatever it does within one request.
    pub fn new(
        device: &'a Device,
        verifier: Box<dyn Verifier>,
        monitor: Box<dyn Monitor>,
        stop: &'a AtomicBool,
    ) -> Self {
        Self { lane: Lane::new(device, verifier, monitor, stop), random: SEED, unreadable: Vec::new() }
    }

    /// Name of the verifier.
    pub fn verifier(&self) -> &'static str {
        self.lane.verifier.name()
    }

    fn block(&self) -> u64 {
        u64::from(self.lane.device.block)
    }

    /// The sizes that are tried on this device: powers of two.
    fn sizes(&self, from: u64) -> Vec<Bytes> {
        let largest = LARGEST.0.min(self.lane.device.size.0 / PART);
        let doubled = |size: &u64| Some(size * 2).filter(|&size| size <= largest);
        std::iter::successors(Some(from.max(SMALLEST).max(self.block())), doubled).map(Bytes).collect()
    }

    /// A place for a request of `size`, anywhere on the device.
    fn anywhere(&mut self, size: Bytes) -> Extent {
        // Knuth's MMIX generator: its upper bits are random enough for a place.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let places = (self.lane.device.size.0.saturating_sub(size.0) / self.block()).max(1);
        Extent { offset: Bytes((self.random >> 16) % places * self.block()), length: size }
    }

    /// The time of one request; `None` when asked to stop.
    fn time(&mut self, extent: Extent) -> Result<Option<Timed>, ScrubError> {
        let timed = self.lane.timed(extent, Nanos::ZERO, &mut |_| ())?;
        if timed == Some(Timed::Bad { unreadable: true }) {
            self.unreadable.push(extent);
        }
        Ok(timed)
    }
}

/// The mean of some times.
fn mean(times: &[Nanos]) -> Nanos {
    times.iter().copied().sum::<TotalTime>().mean(times.len() as u64)
}

/// Their median; zero of none.
fn median(times: &mut [Nanos]) -> Nanos {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
