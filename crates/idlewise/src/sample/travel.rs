//! Travel distances as a disk with a queue sees them (SIGMETRICS 2015, section 4.3, after Ahmad, IISWC 2007).

/// Recent requests that a new one is compared with.
const QUEUE: usize = 32;

/// A request is random beyond this distance, in bytes.
pub const RANDOM_BEYOND: u64 = 128 << 10;

/// Where the recent requests of one volume ended.
#[derive(Clone, Debug)]
pub(super) struct Travel {
    /// The bytes behind the last ones, the oldest replaced first.
    ends: [u64; QUEUE],
    requests: usize,
}

impl Default for Travel {
    fn default() -> Self {
        Self { ends: [0; QUEUE], requests: 0 }
    }
}

impl Travel {
    /// The least distance in bytes from the end of a recent request to the begin of this one; 0 for a volume's first.
    #[inline]
    pub fn to(&mut self, offset: u64, length: u32) -> u64 {
        let end = offset.saturating_add(u64::from(length));
        if self.requests == 0 {
            // Filled with one end, so that there is no case to tell later.
            self.ends = [end; QUEUE];
            self.requests = 1;
            return 0;
        }
        let distance = self.ends.iter().fold(u64::MAX, |least, &end| least.min(end.abs_diff(offset)));
        self.ends[self.requests % QUEUE] = end;
        self.requests += 1;
        distance
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_stream_among_thirty_one_others_does_not_travel() {
        let mut travel = Travel::default();
        for round in 0..10u64 {
            for stream in 0..32u64 {
                let distance = travel.to((stream << 30) + round * 4096, 4096);
                assert_eq!(distance == 0, round > 0 || stream == 0, "{round} {stream}: {distance}");
            }
        }
        assert_eq!(travel.to(1 << 40, 512), (1 << 40) - (31 << 30) - 10 * 4096);
    }

    proptest! {
        #[test]
        fn is_the_least_over_the_last_32(requests in prop::collection::vec((0u64..1 << 50, 0u32..1 << 20), 1..100)) {
            let mut travel = Travel::default();
            for (index, &(offset, length)) in requests.iter().enumerate() {
                let recent = requests[index.saturating_sub(32)..index].iter();
                let least = recent.map(|&(at, bytes)| (at + u64::from(bytes)).abs_diff(offset)).min();
                prop_assert_eq!(travel.to(offset, length), least.unwrap_or(0));
            }
        }
    }
}
