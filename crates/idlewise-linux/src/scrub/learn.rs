//! What a scrub without a plan learns first: how idle the disk is, and how long its requests take.

use idlewise::disk::{DiskModel, Point};
use idlewise::order::Extent;
use idlewise::{Bytes, Nanos};

use super::Doing;
use super::engine::ScrubError;
use super::lane::{Lane, TICK};
use crate::device::verify::Fault;
use crate::monitor::now;

/// The sizes measured.
const SIZES: [Bytes; 7] = {
    const fn kib(kib: u64) -> Bytes {
        Bytes::from_kib(kib)
    }
    [kib(64), kib(128), kib(256), kib(512), kib(1024), kib(2048), kib(4096)]
};
/// Largest of them.
pub const LARGEST: Bytes = SIZES[6];
/// Requests of each size whose times count; one before them brings the head there.
const ROUNDS: usize = 9;
/// Calibration begins at a multiple of this.
const ALIGNED: u64 = 1 << 20;
/// The disk must have been idle for as long before each.
const QUIET: Nanos = Nanos::from_millis(20);

/// Watches what is learnt; told what is being done and the share done.
pub type Watch<'a> = &'a mut dyn FnMut(Doing, f64);

/// Watches the foreground for a while; stops early when asked to.
pub(super) fn observe(lane: &mut Lane, time: Nanos, watch: Watch) -> Result<(), ScrubError> {
    let began = now();
    loop {
        let elapsed = now().since(began);
        if elapsed >= time || lane.stopped() {
            return Ok(());
        }
        watch(Doing::Observing, elapsed.0 as f64 / time.0.max(1) as f64);
        lane.poll(TICK)?;
    }
}

/// Measures the disk's verify curve: for each size the median of some requests that follow one another, as in a scan,
/// from a tenth into the device. Each waits until the disk is idle; a request disturbed by foreground work does not
/// count. `None` when asked to stop.
pub(super) fn curve(lane: &mut Lane, name: &str, watch: Watch) -> Result<Option<DiskModel>, ScrubError> {
    let mut verify: Vec<Point> = Vec::new();
    let mut place = lane.device.size.0 / 10 / ALIGNED * ALIGNED;
    for (index, size) in SIZES.into_iter().enumerate() {
        let mut times = Vec::new();
        let mut in_place = false;
        while times.len() < ROUNDS {
            let done = (index as f64 + times.len() as f64 / ROUNDS as f64) / SIZES.len() as f64;
            watch(Doing::Calibrating, done);
            if lane.stopped() {
                return Ok(None);
            }
            match lane.idle_since() {
                Some(since) if now().since(since) >= QUIET => {}
                _ => {
                    in_place = false;
                    lane.poll(std::time::Duration::from_nanos(QUIET.0))?;
                    continue;
                }
            }
            if place + size.0 > lane.device.size.0 {
                place = 0;
                in_place = false;
            }
            let extent = Extent { offset: Bytes(place), length: Bytes(size.0.min(lane.device.size.0)) };
            let before = lane.foreground.measured().collisions;
            let (result, time) = lane.verify(extent, &mut |_, _| ())?;
            place += size.0;
            match result {
                Err(Fault::Device(problem)) => return Err(ScrubError::Device(problem)),
                Ok(()) if in_place && lane.foreground.measured().collisions == before => times.push(time),
                _ => {}
            }
            in_place = result.is_ok();
        }
        times.sort_unstable();
        // A curve never falls; on a very fast disk the clock's noise may say so.
        let time = times[ROUNDS / 2].max(verify.last().map_or(Nanos(1), |point| point.time));
        verify.push(Point { size, time });
    }
    Ok(Some(DiskModel { name: name.into(), verify, read: None, write: None }))
}
