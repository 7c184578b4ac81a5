//! The rate of scans against request size and number of regions, in either order (DSN 2012, figure 5).

use idlewise::disk::{LARGEST_REQUEST, SMALLEST_REQUEST};
use idlewise::order::{Extent, Order, Place, Surface};
use idlewise::{Bytes, Nanos, Rate};

use super::{Probe, Watch};
use crate::scrub::ScrubError;
use crate::scrub::lane::Timed;

/// The paper's own: regions where the size varies, size where the regions do, and most regions.
const REGIONS: u64 = 128;
const SIZE: Bytes = SMALLEST_REQUEST;
const MOST_REGIONS: u64 = 512;
/// Requests that are timed in each scan, at least.
const REQUESTS: u64 = 64;

/// The rate of one scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Request size, and bytes of a visit.
    pub size: Bytes,
    /// Regions; one is the sequential order.
    pub regions: u64,
    /// Bytes verified in a second, one request after another.
    pub rate: Rate,
}

/// Rates of scans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scans {
    /// Sequential and of 128 regions, at sizes from 64 KiB (figure 5a).
    pub by_size: Vec<Scan>,
    /// Of 64 KiB, in 1 to 512 regions (figure 5b).
    pub by_regions: Vec<Scan>,
}

/// Scans a little in each way; `None` when asked to stop.
///
/// # Errors
/// If the monitor or the device fails.
pub fn scans(probe: &mut Probe, watch: Watch) -> Result<Option<Scans>, ScrubError> {
    let sizes: Vec<Bytes> = probe.sizes(SIZE.0).into_iter().filter(|&size| size <= LARGEST_REQUEST).collect();
    let regions: Vec<u64> = std::iter::successors(Some(1), |regions| Some(regions * 2))
        .take_while(|&regions| regions <= MOST_REGIONS && probe.lane.device.size.0 / regions >= 2 * SIZE.0)
        .collect();
    let mut ways: Vec<(Bytes, u64)> = Vec::new();
    ways.extend(sizes.iter().flat_map(|&size| [(size, 1), (size, REGIONS)]));
    ways.extend(regions.iter().map(|&regions| (SIZE, regions)));
    let mut rates = Vec::new();
    for (index, &(size, regions)) in ways.iter().enumerate() {
        watch(index as f64 / ways.len() as f64);
        match scan(probe, size, regions, index as u64)? {
            Rated::Stopped => return Ok(None),
            Rated::Nothing => rates.push(None),
            Rated::At(rate) => rates.push(Some(Scan { size, regions, rate })),
        }
    }
    let by_regions = rates.split_off(2 * sizes.len()).into_iter().flatten().collect();
    Ok(Some(Scans { by_size: rates.into_iter().flatten().collect(), by_regions }))
}

enum Rated {
    Stopped,
    /// No request of this size fits, or none could be verified.
    Nothing,
    At(Rate),
}

/// One scan: its requests, one after another.
fn scan(probe: &mut Probe, size: Bytes, regions: u64, index: u64) -> Result<Rated, ScrubError> {
    let surface = Surface { size: probe.lane.device.size, block: probe.lane.device.block };
    let stretches =
        if regions == 1 { sequential(surface, size, index) } else { staggered(surface, size, regions, index) };
    let (mut bytes, mut time) = (0, Nanos::ZERO);
    for Stretch { extent, counts } in stretches {
        match probe.time(extent)? {
            None => return Ok(Rated::Stopped),
            Some(Timed::Refused) => return Ok(Rated::Nothing),
            // The first after the foreground brings the head back.
            Some(Timed::Good { time: service, follows: true }) if counts => {
                bytes += extent.length.0;
                time = Nanos(time.0 + service.0);
            }
            Some(Timed::Good { .. } | Timed::Bad { .. }) => {}
        }
    }
    Ok(match bytes {
        0 => Rated::Nothing,
        _ => Rated::At(Rate((bytes as f64 / time.as_secs_f64().max(1e-9)) as u64)),
    })
}

/// A request of a scan; the first of a row only brings the head there.
struct Stretch {
    extent: Extent,
    counts: bool,
}

/// From the beginning of each of eight parts of the device on, as inner tracks are slower; a little further in each scan, so that
/// nothing comes from a cache.
fn sequential(surface: Surface, size: Bytes, index: u64) -> Vec<Stretch> {
    const PARTS: u64 = 8;
    let row = REQUESTS / PARTS + 1;
    let part = surface.size.0 / PARTS;
    let shift = (index * row * size.0).checked_rem(part.saturating_sub(row * size.0)).unwrap_or(0);
    let first = |number: u64| (number * part + shift) / u64::from(surface.block) * u64::from(surface.block);
    let request = |begin: u64, place: u64| Stretch {
        extent: Extent { offset: Bytes(begin + place * size.0), length: size },
        counts: place > 0,
    };
    let rows = (0..PARTS).flat_map(|number| (0..row).map(move |place| (number, place)));
    let all = rows.map(|(number, place)| request(first(number), place));
    all.filter(|stretch| stretch.extent.end() <= surface.size).collect()
}

/// Through all regions at least once, beginning some rounds later in each scan.
fn staggered(surface: Surface, size: Bytes, regions: u64, index: u64) -> Vec<Stretch> {
    let round = regions * size.0;
    let begin = (index * round).checked_rem(surface.size.0.saturating_sub(round)).unwrap_or(0) / round * round;
    let order = Order::staggered(regions, size).make(surface, &Place::after(begin));
    let Ok(mut order) = order else { return Vec::new() };
    let requests = REQUESTS.max(regions) + 1;
    let all = (0..requests).map_while(|place| Some(Stretch { extent: order.next(size)?, counts: place > 0 }));
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SURFACE: Surface = Surface { size: Bytes(1 << 30), block: 4096 };

    #[test]
    fn both_orders_visit_the_whole_device_and_begin_elsewhere_each_time() {
        for (index, kib) in [(0, 64), (3, 1024), (14, 4096)] {
            let size = Bytes::from_kib(kib);
            for stretches in [sequential(SURFACE, size, index), staggered(SURFACE, size, 128, index)] {
                let eighth = |stretch: &Stretch| stretch.extent.offset.0 / (SURFACE.size.0 / 8);
                let mut visited: Vec<u64> = stretches.iter().filter(|one| one.counts).map(eighth).collect();
                visited.sort_unstable();
                visited.dedup();
                assert_eq!(visited, [0, 1, 2, 3, 4, 5, 6, 7], "{kib} KiB");
                assert!(
                    stretches.iter().all(|one| one.extent.end() <= SURFACE.size && one.extent.offset.0 % 4096 == 0)
                );
            }
        }
        let first = |index| sequential(SURFACE, Bytes::from_kib(64), index)[0].extent.offset;
        assert_ne!(first(0), first(1));
    }
}
