//! A part as bytes, to be sent or kept: whole numbers of 64 bits, the least significant byte first, of which the first is the version.

use super::Part;
use crate::idle::{Idleness, Interval};
use crate::trace::volumes::LONGEST_NAME;
use crate::{Nanos, TotalTime};

/// The version that is written and read.
const VERSION: u64 = 1;

impl Part {
    /// The part as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Idleness { volume, requests, begin, end, response_sum, requests_per_hour, intervals, .. } = &self.disk;
        let mut numbers =
            vec![VERSION, *requests, begin.0, end.0, response_sum.0 as u64, (response_sum.0 >> 64) as u64];
        numbers.extend([self.busy_since.0, self.last.0, self.modelled]);
        numbers.extend([volume.len(), requests_per_hour.len(), intervals.len()].map(|length| length as u64));
        numbers.extend(requests_per_hour.iter().flat_map(|&(hour, count)| [hour, count]));
        let of = |one: &Interval| [one.length.0, one.followers, one.busy_before.0];
        numbers.extend(intervals.iter().flat_map(of));
        numbers.into_iter().flat_map(u64::to_le_bytes).chain(volume.bytes()).collect()
    }

    /// The part that bytes are; none where they are no part.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let [version, requests, begin, end, low, high] = rest.numbers()?;
        let [busy_since, last, modelled, name, hours, intervals] = rest.numbers()?;
        if version != VERSION || name > LONGEST_NAME as u64 {
            return None;
        }
        let requests_per_hour = rest.many(hours, |[hour, count]| (hour, count))?;
        let interval = |[length, followers, busy_before]: [u64; 3]| Interval {
            length: Nanos(length),
            followers,
            busy_before: Nanos(busy_before),
        };
        let intervals = rest.many(intervals, interval)?;
        let volume = String::from_utf8(rest.0.to_vec()).ok().filter(|volume| volume.len() as u64 == name)?;
        let response_sum = TotalTime(u128::from(high) << 64 | u128::from(low));
        let (begin, end) = (Nanos(begin), Nanos(end));
        let disk = Idleness {
            volume,
            requests,
            begin,
            end,
            response_sum,
            requests_per_hour,
            intervals,
            ..Idleness::default()
        };
        Some(Self { disk, busy_since: Nanos(busy_since), last: Nanos(last), modelled }).filter(Self::is_sound)
    }

    /// Whether its numbers agree with each other, on which everything else relies.
    fn is_sound(&self) -> bool {
        let Idleness { requests, begin, end, requests_per_hour, intervals, .. } = &self.disk;
        let add = |sum: u64, more: u64| sum.checked_add(more);
        let times = intervals.iter().flat_map(|one| [one.busy_before.0, one.length.0]).try_fold(begin.0, add);
        let followers = intervals.iter().map(|one| one.followers).try_fold(1, add);
        let counted = requests_per_hour.iter().map(|&(_, count)| count).try_fold(0, add);
        let ordered = [*begin, self.busy_since, self.last, *end].is_sorted();
        let hours = requests_per_hour.is_sorted_by(|one, next| one.0 < next.0);
        let full = intervals.iter().all(|one| one.length > Nanos::ZERO && one.followers > 0);
        let enough = followers.is_some_and(|followers| followers <= *requests) && self.modelled <= *requests;
        times == Some(self.busy_since.0) && counted == Some(*requests) && ordered && hours && full && enough
    }
}

/// What is left of the bytes.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn numbers<const N: usize>(&mut self) -> Option<[u64; N]> {
        let (these, rest) = self.0.split_at_checked(8 * N)?;
        self.0 = rest;
        let mut numbers = these.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
        Some([(); N].map(|()| numbers.next().expect("as many as were taken")))
    }

    /// So many rows, if the bytes hold them.
    fn many<const N: usize, T>(&mut self, count: u64, of: impl Fn([u64; N]) -> T) -> Option<Vec<T>> {
        let count = usize::try_from(count)
            .ok()
            .filter(|count| count.checked_mul(8 * N).is_some_and(|all| all <= self.0.len()))?;
        (0..count).map(|_| self.numbers().map(&of)).collect()
    }
}
