//! Whether a verify reads the medium, or is answered from the drive's cache (DSN 2012, section III-A and figure 1).

use idlewise::order::Extent;
use idlewise::{Bytes, Nanos};

use super::{Probe, Watch, median};
use crate::device::read_cache::ReadCache;
use crate::scrub::ScrubError;
use crate::scrub::lane::Timed;

/// Places at which each size is verified twice.
const PLACES: usize = 12;
const SIZES: [Bytes; 5] = {
    const fn kib(kib: u64) -> Bytes {
        Bytes::from_kib(kib)
    }
    [kib(4), kib(16), kib(64), kib(256), kib(1024)]
};
/// A repeated verify that takes less than this part of the first has not read the medium: there is no such thing as a third
/// of a rotation twice.
const PART: u64 = 3;

/// Times of verifying a place that was not verified before, and of doing so again at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The size.
    pub size: Bytes,
    /// Median time of the first verify, behind a move of the head.
    pub first: Nanos,
    /// Median time of the second.
    pub again: Nanos,
}

/// First and repeated verifies, with the drive's read cache as it is and switched off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cache {
    /// As it is.
    pub as_it_is: Vec<Repeat>,
    /// Off, where that was asked for.
    pub off: Vec<Repeat>,
}

impl Cache {
    /// Whether repeated verifies are answered without reading the medium: at most sizes much faster than with the cache off,
    /// where that was measured, else than the first.
    pub fn answers(&self) -> bool {
        let fast = |repeat: &&Repeat| match self.off.iter().find(|off| off.size == repeat.size) {
            Some(off) => repeat.again.0 < off.again.0 / 3 * 2,
            None => repeat.again.0 < repeat.first.0 / PART,
        };
        2 * self.as_it_is.iter().filter(fast).count() > self.as_it_is.len()
    }
}

/// Compares first and repeated verifies. With `switch`, once more with the drive's read cache switched off, which is switched
/// back in any case; `None` when asked to stop.
///
/// # Errors
/// If the monitor or the device fails, or the cache cannot be switched.
pub fn cache(probe: &mut Probe, switch: bool, watch: Watch) -> Result<Option<Cache>, ScrubError> {
    let parts = if switch { 2.0 } else { 1.0 };
    let Some(as_it_is) = repeats(probe, &mut |done| watch(done / parts))? else { return Ok(None) };
    let mut found = Cache { as_it_is, off: Vec::new() };
    if switch {
        let device = probe.lane.device;
        let _off =
            ReadCache::switch_off(device).map_err(|fault| ScrubError::Device(format!("its read cache: {fault}")))?;
        let Some(off) = repeats(probe, &mut |done| watch(0.5 + done / parts))? else { return Ok(None) };
        found.off = off;
    }
    Ok(Some(found))
}

fn repeats(probe: &mut Probe, watch: Watch) -> Result<Option<Vec<Repeat>>, ScrubError> {
    let mut found = Vec::new();
    let fits = |size: &Bytes| size.0.is_multiple_of(probe.block()) && size.0 <= probe.lane.device.size.0 / 4;
    let sizes: Vec<Bytes> = SIZES.into_iter().filter(fits).collect();
    for (index, &size) in sizes.iter().enumerate() {
        let (mut first, mut again) = (Vec::new(), Vec::new());
        for place in 0..PLACES {
            watch((index as f64 + place as f64 / PLACES as f64) / sizes.len() as f64);
            let extent: Extent = probe.anywhere(size);
            let Some(once) = probe.time(extent)? else { return Ok(None) };
            let Some(twice) = probe.time(extent)? else { return Ok(None) };
            if let (Timed::Good { time, .. }, Timed::Good { time: repeated, .. }) = (once, twice) {
                first.push(time);
                again.push(repeated);
            }
        }
        if !first.is_empty() {
            found.push(Repeat { size, first: median(&mut first), again: median(&mut again) });
        }
    }
    Ok(Some(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_shows_in_most_sizes() {
        let repeat = |first, again| Repeat { size: Bytes(4096), first: Nanos(first), again: Nanos(again) };
        let cache = |as_it_is: &[Repeat]| Cache { as_it_is: as_it_is.to_vec(), off: Vec::new() };
        assert!(cache(&[repeat(9000, 100), repeat(9000, 100), repeat(9000, 8000)]).answers());
        assert!(!cache(&[repeat(9000, 4000), repeat(9000, 8000), repeat(9000, 100)]).answers());
        assert!(!cache(&[]).answers());
        // Against the cache off, half the time is enough.
        let switched = |again| Cache { as_it_is: vec![repeat(9000, again)], off: vec![repeat(9000, 8000)] };
        assert!(switched(4000).answers() && !switched(7000).answers());
    }
}
