//! The rate of scans against request size and number of regions, in either order (DSN 2012, figure 5).

use idlewise::disk::{LARGEST_REQUEST, SMALLEST_REQUEST};
use idlewise::order::{Order, Place, ScanOrder, Surface};
use idlewise::{Bytes, Nanos, Rate};

use super::{Probe, Watch};
use crate::scrub::ScrubError;
use crate::scrub::lane::Timed;

/// The paper's own: regions where the size varies, size where the regions do, and most regions.
const REGIONS: u64 = 128;
const SIZE: Bytes = SMALLEST_REQUEST;
const MOST_REGIONS: u64 = 512;
/// Requests that are timed in each scan.
const REQUESTS: usize = 64;

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

/// One scan; each begins where none before has been, so that nothing comes from a cache.
fn scan(probe: &mut Probe, size: Bytes, regions: u64, index: u64) -> Result<Rated, ScrubError> {
    let surface = Surface { size: probe.lane.device.size, block: probe.lane.device.block };
    let Some(mut order) = order(surface, size, regions, index) else { return Ok(Rated::Nothing) };
    let (mut bytes, mut time) = (0, Nanos::ZERO);
    for request in 0..=REQUESTS {
        let Some(extent) = order.next(size) else { break };
        match probe.time(extent)? {
            None => return Ok(Rated::Stopped),
            Some(Timed::Refused) => return Ok(Rated::Nothing),
            // The first brings the head there, and so does the first after the foreground.
            Some(Timed::Good { time: service, follows: true }) if request > 0 => {
                bytes += extent.length.0;
                time = Nanos(time.0 + service.0);
            }
            Some(Timed::Good { .. } | Timed::Bad(_)) => {}
        }
    }
    Ok(match bytes {
        0 => Rated::Nothing,
        _ => Rated::At(Rate((bytes as f64 / time.as_secs_f64().max(1e-9)) as u64)),
    })
}

fn order(surface: Surface, size: Bytes, regions: u64, index: u64) -> Option<Box<dyn ScanOrder>> {
    let order = if regions == 1 { Order::SEQUENTIAL } else { Order::staggered(regions, size) };
    // Some rounds into it, or as far as the device goes.
    let (block, room) = (u64::from(surface.block), surface.size.0.checked_sub(size.0 * (REQUESTS as u64 + 1)));
    let begin = (index * REQUESTS as u64 * size.0 * 2).checked_rem(room.unwrap_or(0)).unwrap_or(0) / block * block;
    order.make(surface, &Place::after(begin)).ok()
}
