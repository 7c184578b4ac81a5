//! Where requests go on a device that is smaller than the one of the trace.

use crate::Bytes;
use crate::trace::Columns;

/// What becomes of places beyond the end of the device. Those of a trace that fits stay as they are, but for being rounded
/// to blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Places {
    /// Counted on from the device's beginning; a request that would cross the end is moved to where it fits. Requests
    /// near each other stay so, but for those at the end.
    #[default]
    Wrapped,
    /// All places in the ratio of the device to the last byte that the trace touches. The long ways keep their ratios;
    /// requests that followed one another overlap.
    Scaled,
}

/// A request does not fit on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a request of {length} bytes does not fit on a device of {device}")]
pub struct TooLong {
    /// Bytes of the request, in whole blocks.
    pub length: u64,
    /// Size of the device.
    pub device: Bytes,
}

impl Places {
    /// Moves requests to places on a device of `size`, in whole blocks of `block` bytes.
    ///
    /// # Errors
    /// [`TooLong`] if one is longer than the device, or than 4 GiB.
    pub fn fit(self, requests: &mut Columns, device: Bytes, block: u32) -> Result<(), TooLong> {
        let block = u64::from(block);
        let size = device.0 / block * block;
        let ends = requests
            .offset
            .iter()
            .zip(&requests.length)
            .map(|(offset, &length)| offset.0.saturating_add(length.into()));
        let scale = (size, ends.max().unwrap_or(0).max(size));
        for (offset, length) in requests.offset.iter_mut().zip(&mut requests.length) {
            let whole = (offset.0 % block + u64::from(*length)).next_multiple_of(block).max(block);
            let fits = u32::try_from(whole).ok().filter(|_| whole <= size);
            *length = fits.ok_or(TooLong { length: whole, device })?;
            let last = size - whole;
            offset.0 = match self {
                Self::Wrapped => offset.0 / block * block % size,
                Self::Scaled => ratio(offset.0, scale) / block * block,
            }
            .min(last);
        }
        Ok(())
    }
}

fn ratio(value: u64, (part, whole): (u64, u64)) -> u64 {
    (u128::from(value) * u128::from(part) / u128::from(whole.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::trace::Request;

    fn fitted(rows: &[(u64, u32)], places: Places, device: u64) -> Result<Vec<(u64, u32)>, TooLong> {
        let mut columns = Columns::default();
        rows.iter().for_each(|&(offset, length)| {
            columns.push(Request { offset: Bytes(offset), length, ..Request::default() });
        });
        places.fit(&mut columns, Bytes(device), 512)?;
        Ok(columns.requests().map(|request| (request.offset.0, request.length)).collect())
    }

    #[test]
    fn by_hand() {
        let rows = [(0, 512), (512, 1_000), (4_096, 512), (7_680, 512), (3_584, 0), (700, 400)];
        let fits = [(0, 512), (512, 1_024), (4_096, 512), (7_680, 512), (3_584, 512), (512, 1_024)];
        for places in [Places::Wrapped, Places::Scaled] {
            assert_eq!(fitted(&rows, places, 8_192).unwrap(), fits);
        }
        // A device of half the size, with a rest that is no block.
        let halved = |places| fitted(&rows, places, 4_100).unwrap().into_iter().map(|row| row.0).collect::<Vec<_>>();
        assert_eq!(halved(Places::Wrapped), [0, 512, 0, 3_584, 3_584, 512]);
        assert_eq!(halved(Places::Scaled), [0, 0, 2_048, 3_584, 1_536, 0]);
        let error = fitted(&[(0, 4_097)], Places::Wrapped, 4_100).unwrap_err();
        assert_eq!(error.to_string(), "a request of 4608 bytes does not fit on a device of 4.00 KiB");
        assert!(fitted(&[(0, u32::MAX)], Places::Scaled, 1 << 40).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

        #[test]
        fn all_lie_on_the_device_in_whole_blocks(
            rows in prop::collection::vec((0u64..1 << 40, 0u32..1 << 20), 1..40),
            device in (1u64 << 20) + 512..1 << 41,
            scaled in any::<bool>(),
        ) {
            let places = if scaled { Places::Scaled } else { Places::Wrapped };
            for ((offset, length), (at, asked)) in fitted(&rows, places, device).unwrap().into_iter().zip(&rows) {
                prop_assert!(offset % 512 == 0 && length % 512 == 0 && length >= *asked && length > 0);
                prop_assert!(offset + u64::from(length) <= device);
                prop_assert!(at + u64::from(length) > device / 512 * 512 || offset == at / 512 * 512 || scaled);
            }
        }
    }
}
