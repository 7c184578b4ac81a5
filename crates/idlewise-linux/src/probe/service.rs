//! How long a verify takes at each size (DSN 2012, figure 4).

use idlewise::disk::{Access, DiskModel, Interference, Point, SMALLEST_REQUEST};
use idlewise::order::Extent;
use idlewise::{Bytes, Nanos, Rate};

use super::{Interfered, Probe, Watch, mean, median};
use crate::scrub::ScrubError;
use crate::scrub::lane::Timed;

/// Requests of each size and kind that count.
const ROUNDS: usize = 16;
/// Attempts, where the foreground keeps coming between.
const TRIES: usize = 48;
/// Scans begin at a multiple of this.
const ALIGNED: u64 = 1 << 20;

/// Service times at one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// The size.
    pub size: Bytes,
    /// Median of requests that follow one another.
    pub sequential: Nanos,
    /// Mean of requests at random places, which the head has to be moved to.
    pub moved: Nanos,
}

/// Service times from the smallest size to the largest that the device takes; `None` when asked to stop.
///
/// # Errors
/// If the monitor or the device fails.
pub fn service(probe: &mut Probe, watch: Watch) -> Result<Option<Vec<Service>>, ScrubError> {
    let sizes = probe.sizes(0);
    let mut place = probe.lane.device.size.0 / 10 / ALIGNED * ALIGNED;
    let mut found = Vec::new();
    for (index, &size) in sizes.iter().enumerate() {
        let share = |done: f64| (index as f64 + done) / sizes.len() as f64;
        watch(share(0.0));
        let Some(mut sequential) = times(probe, true, &mut |probe| {
            if place + size.0 > probe.lane.device.size.0 {
                place = 0;
            }
            place += size.0;
            Extent { offset: Bytes(place - size.0), length: size }
        })?
        else {
            return Ok(None);
        };
        watch(share(0.5));
        let Some(moved) = times(probe, false, &mut |probe| probe.anywhere(size))? else { return Ok(None) };
        if sequential.is_empty() || moved.is_empty() {
            break;
        }
        found.push(Service { size, sequential: median(&mut sequential), moved: mean(&moved) });
    }
    Ok(Some(found))
}

/// Times of requests at the places given; of those alone that follow another at once, if they shall. None if the device takes
/// none so long.
fn times(
    probe: &mut Probe,
    following: bool,
    next: &mut dyn FnMut(&mut Probe) -> Extent,
) -> Result<Option<Vec<Nanos>>, ScrubError> {
    let (mut good, mut others) = (Vec::new(), Vec::new());
    for attempt in 0..TRIES {
        if good.len() == ROUNDS {
            break;
        }
        let extent = next(probe);
        match probe.time(extent)? {
            None => return Ok(None),
            Some(Timed::Refused) => return Ok(Some(Vec::new())),
            Some(Timed::Bad { .. }) => {}
            // The first brings the head there.
            Some(Timed::Good { time, follows }) if following && (attempt == 0 || !follows) => others.push(time),
            Some(Timed::Good { time, .. }) => good.push(time),
        }
    }
    Ok(Some(if good.is_empty() { others } else { good }))
}

/// The model that tuning and simulation take: verifies as they follow one another, foreground requests as at random places.
/// Writes are not measured, but taken to be as slow as reads. Where interference was not measured, it is taken to be full.
pub fn disk_model(name: &str, found: &[Service], interfered: &[Interfered]) -> Option<DiskModel> {
    let mut model = DiskModel { name: name.into(), verify: Vec::new(), read: None, write: None };
    for one in found.iter().filter(|one| one.size >= SMALLEST_REQUEST) {
        // A curve never falls; on a very fast disk the clock's noise may say so.
        let time = one.sequential.max(model.verify.last().map_or(Nanos(1), |point| point.time));
        let measured =
            interfered.iter().find(|of| of.size == one.size).or(interfered.last().filter(|last| last.size < one.size));
        let interference = measured.map_or(Interference::FULL, Interfered::interference);
        model.verify.push(Point { size: one.size, time, interference });
    }
    let (first, last) = (found.first()?, found.last()?);
    // Where noise hides that larger requests take longer, the largest one's whole time is that of its bytes.
    let (bytes, time) = match last.moved > first.moved {
        true => (last.size.0 - first.size.0, last.moved.since(first.moved)),
        false => (last.size.0, last.moved),
    };
    let rate = Rate(((bytes as f64 / time.as_secs_f64().max(1e-9)) as u64).max(1));
    let access = Access { position: first.moved.since(rate.time_for(first.size)), rate };
    (model.read, model.write) = (Some(access), Some(access));
    (model.verify.len() >= 2).then_some(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_never_falls_and_its_access_goes_through_the_ends() {
        let one = |kib, sequential, moved| Service {
            size: Bytes::from_kib(kib),
            sequential: Nanos(sequential),
            moved: Nanos(moved),
        };
        let found =
            [one(1, 50, 4_000_000), one(64, 100, 4_500_000), one(128, 90, 5_000_000), one(1025, 300, 14_485_760)];
        let model = disk_model("x", &found, &[]).unwrap();
        let times: Vec<u64> = model.verify.iter().map(|point| point.time.0).collect();
        assert_eq!(times, [100, 100, 300]);
        let read = model.read.unwrap();
        // 1 MiB in 10.48576 ms.
        assert_eq!(read.rate, Rate(100_000_000));
        assert_eq!(read.time(Bytes::from_kib(1)), Nanos(4_000_000));
        assert!(disk_model("x", &found[..2], &[]).is_none());
    }
}
