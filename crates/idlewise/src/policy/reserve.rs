//! What one more collision may cost, by what was seen of late.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Share of collisions that the reserve is enough for.
const COVERED: f64 = 0.9;
/// Below this each number has a place of its own; above, four share each doubling.
const EXACT: u64 = 8;
/// More than the last place is for is counted there: 2^32.
const PLACES: usize = 124;
/// Collisions played through that count, about: the past fades by halves.
const PLAYED: u16 = 256;
/// Collisions of which the delay is known, about. They are rarer, and what they cost may change within the hour.
const COLLISIONS: u16 = 64;
/// Until so many collisions are known, they are not taken to delay by less than a device that serves one at a time would.
const FEW: u32 = 32;
/// Parts of a service time in which delays are counted; of a millisecond, as long as none is known.
const PARTS: u128 = 64;
const UNKNOWN: Nanos = Nanos::from_millis(1);
/// The golden ratio less one: its multiples, without their whole numbers, fill the range from 0 to 1 evenly.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// What one more collision may cost: as much as nine in ten would have, if one had begun with each busy period of late.
///
/// That is found by playing them through. A delay that begins with a busy period reaches all of its requests, and those of the next ones
/// with what the idle times between did not absorb. How long the delays are is known from the collisions that there were. As long as
/// they are few, a foreground request is taken to arrive at any moment of a background request, and to wait for what is left of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reserve {
    /// How many collisions delayed by so many parts of what a background request takes.
    delays: Counts,
    /// How many played through came to so many such parts together, and to so many requests delayed.
    sums: Counts,
    requests: Counts,
    /// What a background request takes; zero as long as that is not known.
    service: Nanos,
    playing: Playing,
}

/// The collision that is played through.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Playing {
    /// Which of the delays it is: a share of them is shorter.
    shorter: f64,
    /// What is left of the delay.
    left: Nanos,
    /// What it has come to.
    sum: u128,
    requests: u64,
}

/// How long the delays of late were, in a form that is kept for the next run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delays {
    /// What a background request took, in nanoseconds.
    service_ns: u64,
    /// Where delays were counted, in 64ths of that, and how many there.
    counts: Vec<(u64, u16)>,
}

impl Default for Reserve {
    fn default() -> Self {
        Self {
            delays: Counts::NONE,
            sums: Counts::NONE,
            requests: Counts::NONE,
            service: Nanos::ZERO,
            playing: Playing::default(),
        }
    }
}

impl Reserve {
    /// How long the delays of late were.
    pub fn delays(&self) -> Delays {
        let counts = self.delays.0.iter().enumerate().filter(|(_, count)| **count > 0);
        Delays { service_ns: self.service.0, counts: counts.map(|(place, &count)| (most(place), count)).collect() }
    }

    /// Goes on with the delays of an earlier run, which count half beside those that come.
    pub fn go_on_with(&mut self, delays: &Delays) {
        (self.service, self.delays) = (Nanos(delays.service_ns), Counts::NONE);
        for &(number, count) in &delays.counts {
            self.delays.0[place(number)] = count.min(COLLISIONS) / 2;
        }
    }

    /// A background request takes so long from now on. Delays seen before are taken to change in proportion, unless it was not known
    /// what they were to.
    pub fn expect(&mut self, service: Nanos) {
        if self.service == Nanos::ZERO && service > Nanos::ZERO {
            [&mut self.delays, &mut self.sums].into_iter().for_each(|counts| counts.in_parts_of(UNKNOWN, service));
        }
        self.service = service;
    }

    /// A busy period of so many requests, which were delayed by so much together.
    pub fn busy_period(&mut self, requests: u64, delays: Nanos) {
        if requests == 0 {
            return;
        }
        if delays > Nanos::ZERO {
            self.delays.add(self.parts(delays.0.div_ceil(requests).into()), COLLISIONS);
        }
        if self.playing.left == Nanos::ZERO {
            let shorter = (self.playing.shorter + GOLDEN).fract();
            let left = self.delay(shorter).max(Nanos(1));
            self.playing = Playing { shorter, left, ..Playing::default() };
        }
        let Playing { left, sum, requests: reached, .. } = &mut self.playing;
        *sum = sum.saturating_add(u128::from(left.0) * u128::from(requests));
        *reached = reached.saturating_add(requests);
    }

    /// The idle time behind it was so long.
    pub fn idle(&mut self, length: Nanos) {
        let Playing { left, sum, requests, .. } = &mut self.playing;
        *left = left.since(length);
        if *left == Nanos::ZERO && *requests > 0 {
            let (sum, requests) = (std::mem::take(sum), std::mem::take(requests));
            self.sums.add(self.parts(sum), PLAYED);
            self.requests.add(requests, PLAYED);
        }
    }

    /// The delay that such a share of the collisions stay below.
    fn delay(&self, share: f64) -> Nanos {
        let of_late = self.delays.quantile(share).map_or(Nanos::ZERO, |parts| self.time(parts));
        let known = self.delays.total() >= FEW;
        if known { of_late } else { of_late.max(Nanos((self.service.0 as f64 * share) as u64)) }
    }

    /// How much longer than without background work a foreground request may take.
    pub fn slowdown(&self) -> Nanos {
        self.delay(COVERED)
    }

    /// How many foreground requests may be delayed by one collision; one as long as nothing is known.
    pub fn requests(&self) -> u64 {
        self.requests.quantile(COVERED).unwrap_or(1)
    }

    /// Sum of the delays of those; of one that waits for all of a background request, as long as nothing is known.
    pub fn cost(&self) -> Nanos {
        self.sums.quantile(COVERED).map_or(self.service, |parts| self.time(parts))
    }

    /// The time in parts of which delays are counted.
    fn unit(&self) -> u128 {
        if self.service > Nanos::ZERO { self.service.0.into() } else { UNKNOWN.0.into() }
    }

    /// How many parts a time is.
    fn parts(&self, time: u128) -> u64 {
        u64::try_from(time.saturating_mul(PARTS).div_ceil(self.unit())).unwrap_or(u64::MAX)
    }

    /// How long so many parts are.
    fn time(&self, parts: u64) -> Nanos {
        Nanos(u64::try_from(u128::from(parts) * self.unit() / PARTS).unwrap_or(u64::MAX))
    }
}

/// How often each number was seen of late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts([u16; PLACES]);

impl Counts {
    const NONE: Self = Self([0; PLACES]);

    /// One more; of about `memory` that count the past fades by halves.
    fn add(&mut self, number: u64, memory: u16) {
        if self.total() >= memory.into() {
            self.0.iter_mut().for_each(|count| *count /= 2);
        }
        self.0[place(number)] += 1;
    }

    /// What was counted in parts of one time, in parts of another.
    fn in_parts_of(&mut self, before: Nanos, now: Nanos) {
        for (at, count) in std::mem::replace(self, Self::NONE).0.into_iter().enumerate().filter(|(_, count)| *count > 0)
        {
            let number = (u128::from(most(at)) * u128::from(before.0)).div_ceil(now.0.into());
            self.0[place(u64::try_from(number).unwrap_or(u64::MAX))] += count;
        }
    }

    fn total(&self) -> u32 {
        self.0.iter().map(|&count| u32::from(count)).sum()
    }

    /// The number that a share of all did not exceed, if any was seen.
    fn quantile(&self, share: f64) -> Option<u64> {
        let total = f64::from(self.total());
        let mut within = 0;
        let place = self.0.iter().position(|&count| {
            within += u32::from(count);
            within > 0 && f64::from(within) >= share * total
        })?;
        Some(most(place))
    }
}

/// Where a number is counted.
fn place(number: u64) -> usize {
    if number < EXACT {
        return number as usize;
    }
    let doublings = number.ilog2();
    let quarter = (number >> (doublings - 2)) & 3;
    (EXACT as usize + 4 * (doublings as usize - 3) + quarter as usize).min(PLACES - 1)
}

/// The largest number that is counted there.
fn most(place: usize) -> u64 {
    let above = (place as u64 + 1).saturating_sub(EXACT);
    if above == 0 {
        return place as u64;
    }
    ((4 + above % 4) << (above / 4 + 1)) - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LONG: Nanos = Nanos::from_secs(1_000);

    fn busy(reserve: &mut Reserve, requests: u64, delay: u64) {
        reserve.busy_period(requests, Nanos(requests * delay));
        reserve.idle(LONG);
    }

    #[test]
    fn nine_times_in_ten_are_covered() {
        let mut reserve = Reserve::default();
        assert_eq!((reserve.requests(), reserve.cost()), (1, Nanos(0)));
        reserve.expect(Nanos(6_400));
        assert_eq!(reserve.cost(), Nanos(6_400));
        (0..99).for_each(|_| busy(&mut reserve, 3, 0));
        busy(&mut reserve, 1_000_000, 0);
        // Three requests behind 0.9 of it are 172.8 parts of 100 ns; 160 to 191 are counted together.
        assert_eq!((reserve.requests(), reserve.cost()), (3, Nanos(19_100)));
        (0..20).for_each(|_| busy(&mut reserve, 7, 0));
        assert_eq!(reserve.requests(), 7);
    }

    #[test]
    fn a_delay_goes_on_to_later_busy_periods() {
        let mut reserve = Reserve::default();
        reserve.expect(Nanos(64_000));
        let played = (0.618_034_f64 * 64_000.0) as u64;
        for (requests, idle) in [(1, 9_000), (2, 9_000), (10, 100_000)] {
            reserve.busy_period(requests, Nanos(0));
            reserve.idle(Nanos(idle));
        }
        let sum = played + 2 * (played - 9_000) + 10 * (played - 18_000);
        assert_eq!(reserve.requests(), 13);
        assert!((sum..=sum + sum / 4).contains(&reserve.cost().0), "{:?} for {sum}", reserve.cost());
    }

    #[test]
    fn one_delay_in_ten_may_be_longer() {
        let mut reserve = Reserve::default();
        busy(&mut reserve, 4, 100_000);
        // 100 us in parts of 1/64 ms are 7, the seventh not full.
        assert_eq!(reserve.slowdown(), Nanos(109_375));
        (0..9).for_each(|_| busy(&mut reserve, 1, 30_000));
        assert_eq!(reserve.slowdown(), Nanos(31_250));
        (0..2).for_each(|_| busy(&mut reserve, 1, 50_000_000));
        assert!(reserve.slowdown() >= Nanos(50_000_000), "2 of 12");
        // Of 64 the older ones count half.
        (0..64).for_each(|_| busy(&mut reserve, 1, 30_000));
        assert_eq!(reserve.slowdown(), Nanos(31_250));
    }

    #[test]
    fn the_next_run_goes_on_with_the_delays() {
        let mut reserve = Reserve::default();
        reserve.expect(Nanos(6_400));
        (0..60).for_each(|turn| busy(&mut reserve, 1, 100 * (turn % 10 + 1)));
        let mut next = Reserve::default();
        next.go_on_with(&reserve.delays());
        assert_eq!(next.delay(0.5), reserve.delay(0.5).max(Nanos(3_200)), "half of 60 are few");
        (0..10).for_each(|turn| busy(&mut next, 1, 100 * (turn + 1)));
        assert_eq!((next.slowdown(), reserve.slowdown()), (Nanos(900), Nanos(900)));
    }

    /// What was seen before anything was known of the requests was of those that there were.
    #[test]
    fn the_first_delays_stay_as_long_as_they_were() {
        let mut reserve = Reserve::default();
        (0..40).for_each(|_| busy(&mut reserve, 1, 8_000_000));
        let before = (reserve.slowdown(), reserve.cost());
        reserve.expect(Nanos(5_000_000));
        let near = |now: Nanos, before: Nanos| now.0 >= before.0 * 9 / 10 && now.0 <= before.0 * 5 / 4;
        assert!(near(reserve.slowdown(), before.0) && near(reserve.cost(), before.1), "{before:?} {reserve:?}");
        reserve.expect(Nanos(10_000_000));
        assert!(near(reserve.slowdown(), Nanos(2 * before.0.0)), "in proportion");
    }

    #[test]
    fn few_collisions_do_not_show_that_delays_are_short() {
        let mut reserve = Reserve::default();
        reserve.expect(Nanos(6_400));
        (0..31).for_each(|_| busy(&mut reserve, 1, 100));
        assert_eq!(reserve.slowdown(), Nanos(5_760));
        busy(&mut reserve, 1, 100);
        assert_eq!(reserve.slowdown(), Nanos(100));
    }

    #[test]
    fn smaller_requests_are_expected_to_delay_by_less() {
        let mut reserve = Reserve::default();
        reserve.expect(Nanos(64_000));
        busy(&mut reserve, 1, 70_000);
        assert_eq!(
            (reserve.slowdown(), reserve.cost()),
            (Nanos(79_000), Nanos(79_000)),
            "64 to 79 parts are counted together"
        );
        reserve.expect(Nanos(6_400));
        assert_eq!((reserve.slowdown(), reserve.cost()), (Nanos(7_900), Nanos(7_900)));
    }

    proptest! {
        /// Held against a version that keeps all that was seen and played through, each number rounded up as it is counted.
        #[test]
        fn it_is_enough_for_nine_in_ten_of_those_played(
            busy in prop::collection::vec((1u64..50, prop_oneof![3 => Just(0), 1 => 1u64..300_000], 0u64..200_000), 1..250),
            service in prop_oneof![Just(0), 1u64..100_000],
        ) {
            let mut reserve = Reserve::default();
            reserve.expect(Nanos(service));
            let covering = |numbers: &[u64], share: f64| {
                let mut sorted = numbers.to_vec();
                sorted.sort_unstable();
                sorted.get(((sorted.len() as f64 * share).ceil() as usize).max(1) - 1).copied()
            };
            let (mut seen, mut sums, mut share, mut left, mut sum) = (vec![], vec![], 0.0, 0, 0);
            for (requests, delay, idle) in busy {
                reserve.busy_period(requests, Nanos(requests * delay));
                reserve.idle(Nanos(idle));
                if delay > 0 {
                    seen.push(most(place(reserve.parts(delay.into()))));
                }
                if seen.len() > COLLISIONS.into() {
                    break;
                }
                if left == 0 {
                    share = f64::fract(share + GOLDEN);
                    let known = covering(&seen, share).map_or(0, |parts| reserve.time(parts).0);
                    let supposed = if seen.len() < FEW as usize { (service as f64 * share) as u64 } else { 0 };
                    (left, sum) = (known.max(supposed).max(1), 0);
                }
                sum += left * requests;
                left = left.saturating_sub(idle);
                if left == 0 {
                    sums.push(most(place(reserve.parts(sum.into()))));
                }
                let expected = covering(&sums, 0.9).map_or(service, |parts| reserve.time(parts).0);
                prop_assert_eq!(reserve.cost(), Nanos(expected));
            }
        }
    }

    #[test]
    fn places_follow_one_another_without_a_gap() {
        for requests in 1..100_000 {
            let place = place(requests);
            assert!(most(place) >= requests && most(place - 1) < requests, "{requests} at {place}");
            assert!(most(place) <= requests + requests / 4, "{requests} at {place}");
        }
        assert_eq!(place(u64::MAX), PLACES - 1);
    }
}
