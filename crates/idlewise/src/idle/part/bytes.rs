//! A part as bytes, to be sent or kept: whole numbers of 64 bits, the least significant byte first, of which the first is the version; the
//! name; the hours; and the intervals, whose numbers take as many bytes as they need (LEB128): most are small.

use super::Part;
use crate::idle::{Idleness, Interval};
use crate::trace::volumes::LONGEST_NAME;
use crate::{Nanos, TotalTime};

/// The version that is written and read.
const VERSION: u64 = 2;
/// Bytes that an interval takes at least.
const INTERVAL: usize = 3;

impl Part {
    /// Adds the part to bytes.
    pub fn write_to(&self, bytes: &mut Vec<u8>) {
        let Idleness { volume, requests, begin, end, response_sum, requests_per_hour, intervals, .. } = &self.disk;
        let sum = [response_sum.0 as u64, (response_sum.0 >> 64) as u64];
        let counts = [volume.len(), requests_per_hour.len(), intervals.len()].map(|length| length as u64);
        let times = [self.busy_since.0, self.last.0, self.modelled];
        let mut add = |numbers: &[u64]| numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        add(&[VERSION, *requests, begin.0, end.0]);
        [sum.as_slice(), &times, &counts].into_iter().for_each(&mut add);
        requests_per_hour.iter().for_each(|&(hour, count)| add(&[hour, count]));
        bytes.extend(volume.bytes());
        for &Interval { length, followers, busy_before } in intervals {
            [length.0, followers, busy_before.0].into_iter().for_each(|number| add_short(bytes, number));
        }
    }

    /// The part that bytes are; none where they are no part.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        let [version, requests, begin, end, low, high] = rest.numbers()?;
        let [busy_since, last, modelled, name, hours, intervals] = rest.numbers()?;
        if version != VERSION || name > LONGEST_NAME as u64 {
            return None;
        }
        let hours = rest.count(hours, 16)?;
        let requests_per_hour = (0..hours).map(|_| rest.numbers().map(|[hour, count]| (hour, count)));
        let requests_per_hour = requests_per_hour.collect::<Option<_>>()?;
        let volume = String::from_utf8(rest.bytes(name as usize)?.to_vec()).ok()?;
        let interval = |rest: &mut Rest| {
            let [length, followers, busy_before] = [rest.short()?, rest.short()?, rest.short()?];
            Some(Interval { length: Nanos(length), followers, busy_before: Nanos(busy_before) })
        };
        let intervals = rest.count(intervals, INTERVAL)?;
        let intervals = (0..intervals).map(|_| interval(&mut rest)).collect::<Option<_>>()?;
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
        let part = Self { disk, busy_since: Nanos(busy_since), last: Nanos(last), modelled };
        (rest.0.is_empty() && part.is_sound()).then_some(part)
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

/// Seven bits a byte, the least significant first; each byte but the last has the eighth.
fn add_short(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// What is left of the bytes.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (these, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(these)
    }

    fn numbers<const N: usize>(&mut self) -> Option<[u64; N]> {
        let these = self.bytes(8 * N)?;
        let mut numbers = these.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")));
        Some([(); N].map(|()| numbers.next().expect("as many as were taken")))
    }

    fn short(&mut self) -> Option<u64> {
        let Some(next) = self.0.first_chunk::<8>().map(|next| u64::from_le_bytes(*next)) else { return self.long() };
        let last = !next & 0x8080_8080_8080_8080;
        if last == 0 {
            return self.long();
        }
        // Up to the byte that ends it; seven bits of each byte move together, then of each two, of each four.
        let number = next & (last ^ (last - 1)) & 0x7f7f_7f7f_7f7f_7f7f;
        let number = number & 0x007f_007f_007f_007f | (number & 0x7f00_7f00_7f00_7f00) >> 1;
        let number = number & 0x0000_3fff_0000_3fff | (number & 0x3fff_0000_3fff_0000) >> 2;
        let number = number & 0x0fff_ffff | (number & 0x0fff_ffff_0000_0000) >> 4;
        self.0 = &self.0[last.trailing_zeros() as usize / 8 + 1..];
        Some(number)
    }

    /// The same where eight bytes are not there or not enough.
    fn long(&mut self) -> Option<u64> {
        let mut number = 0;
        for (at, &byte) in self.0.iter().enumerate() {
            let bits = u64::from(byte & 0x7f);
            let shift = 7 * at as u32;
            number |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
            if byte < 0x80 {
                self.0 = &self.0[at + 1..];
                return Some(number);
            }
        }
        None
    }

    /// So many rows that take so many bytes at least, if there are as many bytes.
    fn count(&self, count: u64, least: usize) -> Option<usize> {
        let count = usize::try_from(count).ok()?;
        count.checked_mul(least).is_some_and(|all| all <= self.0.len()).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn short_numbers_are_what_they_were(numbers in prop::collection::vec((any::<u64>(), 0u32..64), 0..20)) {
            let numbers: Vec<u64> = numbers.into_iter().map(|(number, shift)| number >> shift).collect();
            let mut bytes = Vec::new();
            numbers.iter().for_each(|&number| add_short(&mut bytes, number));
            let mut rest = Rest(&bytes);
            let read: Vec<_> = numbers.iter().map(|_| rest.short()).collect();
            let mut slowly = Rest(&bytes);
            prop_assert_eq!(&read, &numbers.iter().map(|_| slowly.long()).collect::<Vec<_>>());
            prop_assert_eq!(read, numbers.into_iter().map(Some).collect::<Vec<_>>());
            prop_assert!(rest.0.is_empty());
        }
    }

    #[test]
    fn a_number_of_more_than_64_bits_is_none() {
        let most = [[0xff; 9].as_slice(), &[1]].concat();
        assert_eq!(Rest(&most).short(), Some(u64::MAX));
        for wrong in [[[0xff; 9].as_slice(), &[2]].concat(), [[0xff; 10].as_slice(), &[1]].concat(), vec![0x80], vec![]]
        {
            assert_eq!(Rest(&wrong).short(), None, "{wrong:?}");
        }
    }
}
