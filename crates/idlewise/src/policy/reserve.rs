//! What one more collision may cost, by what was seen of late.

use crate::Nanos;

/// Times that count, about: the past fades by halves.
const MEMORY: u16 = 256;
/// Share of the times that would have reached no more requests. The delay is on average half of the longest, so that the reserve is
/// enough more often than that: about 19 times in 20 where busy periods are much alike.
const COVERED: (u32, u32) = (9, 10);
/// Below this each number of requests has a place of its own; above, four share each doubling.
const EXACT: u64 = 8;
/// More requests than the last place is for are counted there: 2^24.
const PLACES: usize = 92;
/// The longest delay of late loses this part of itself with each collision.
const FADES: u64 = 64;

/// What one more collision may cost: the longest delay of late, for as many requests as it would have reached but for one time in ten.
///
/// How many that are is found by playing it through: a delay that begins with a busy period reaches all of its requests, and those of the
/// next ones with what the idle times between did not absorb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reserve {
    /// How many times it would have reached so many requests, as [`place`] numbers them.
    reached: [u16; PLACES],
    /// What a background request takes, if that is known, and the longest delay of late.
    expected: Nanos,
    longest: Nanos,
    /// What is left of the delay that is played through, and the sum that it has come to.
    played: (Nanos, u128),
}

impl Default for Reserve {
    fn default() -> Self {
        Self { reached: [0; PLACES], expected: Nanos::ZERO, longest: Nanos::ZERO, played: (Nanos::ZERO, 0) }
    }
}

impl Reserve {
    /// A background request takes so long from now on. Delays seen before are taken to change in proportion.
    pub fn expect(&mut self, service: Nanos) {
        if self.expected > Nanos::ZERO {
            let longest = u128::from(self.longest.0) * u128::from(service.0) / u128::from(self.expected.0);
            self.longest = Nanos(u64::try_from(longest).unwrap_or(u64::MAX));
        }
        self.expected = service;
    }

    /// A busy period of so many requests, which were delayed by so much together.
    pub fn busy_period(&mut self, requests: u64, delays: Nanos) {
        if requests == 0 {
            return;
        }
        if delays > Nanos::ZERO {
            let each = Nanos(delays.0.div_ceil(requests));
            self.longest = each.max(Nanos(self.longest.0 - self.longest.0.div_ceil(FADES)));
        }
        let slowdown = self.slowdown();
        let (left, sum) = &mut self.played;
        if *left == Nanos::ZERO {
            *left = slowdown.max(Nanos(1));
        }
        *sum = sum.saturating_add(u128::from(left.0) * u128::from(requests));
    }

    /// The idle time behind it was so long.
    pub fn idle(&mut self, length: Nanos) {
        let slowdown = self.slowdown().0.max(1);
        let (left, sum) = &mut self.played;
        *left = left.since(length);
        if *left > Nanos::ZERO || *sum == 0 {
            return;
        }
        let reached = std::mem::take(sum).div_ceil(slowdown.into());
        if self.reached.iter().sum::<u16>() >= MEMORY {
            self.reached.iter_mut().for_each(|count| *count /= 2);
        }
        self.reached[place(u64::try_from(reached).unwrap_or(u64::MAX))] += 1;
    }

    /// How much longer than without background work a request may take.
    pub fn slowdown(&self) -> Nanos {
        self.expected.max(self.longest)
    }

    /// How many foreground requests may be delayed by one collision; one as long as nothing is known.
    pub fn requests(&self) -> u64 {
        let total: u32 = self.reached.iter().map(|&count| u32::from(count)).sum();
        let mut within = 0;
        for (place, &count) in self.reached.iter().enumerate() {
            within += u32::from(count);
            if within > 0 && within * COVERED.1 >= total * COVERED.0 {
                return most(place);
            }
        }
        1
    }

    /// Sum of the delays of those, in nanoseconds.
    pub fn cost(&self) -> i128 {
        i128::from(self.slowdown().0) * i128::from(self.requests())
    }
}

/// Where a time with so many requests is counted.
fn place(requests: u64) -> usize {
    if requests < EXACT {
        return requests as usize;
    }
    let doublings = requests.ilog2();
    let quarter = (requests >> (doublings - 2)) & 3;
    (EXACT as usize + 4 * (doublings as usize - 3) + quarter as usize).min(PLACES - 1)
}

/// The most requests that are counted there.
fn most(place: usize) -> u64 {
    let above = (place as u64 + 1).saturating_sub(EXACT);
    if above == 0 {
        return place as u64;
    }
    ((4 + above % 4) << (above / 4 + 1)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_times_in_ten_are_covered() {
        let mut reserve = Reserve::default();
        assert_eq!((reserve.requests(), reserve.cost()), (1, 0));
        reserve.expect(Nanos(10));
        assert_eq!(reserve.cost(), 10);
        let busy = |reserve: &mut Reserve, requests| {
            reserve.busy_period(requests, Nanos(0));
            reserve.idle(Nanos(10));
        };
        (0..9).for_each(|_| busy(&mut reserve, 3));
        busy(&mut reserve, 1_000_000);
        assert_eq!((reserve.requests(), reserve.cost()), (3, 30));
        busy(&mut reserve, 7);
        assert_eq!(reserve.requests(), 7);
    }

    #[test]
    fn a_delay_goes_on_to_later_busy_periods() {
        let mut reserve = Reserve::default();
        reserve.expect(Nanos(10));
        for (requests, idle) in [(1, 4), (2, 5), (10, 100)] {
            reserve.busy_period(requests, Nanos(0));
            reserve.idle(Nanos(idle));
        }
        // Delays of 10, 6 and 6, then ten of 1: as much as 3.2 requests of 10.
        assert_eq!((reserve.requests(), reserve.cost()), (4, 40));
    }

    #[test]
    fn a_longer_delay_counts_at_once_and_fades() {
        let mut reserve = Reserve::default();
        reserve.busy_period(4, Nanos(400_000));
        reserve.idle(Nanos(100_000));
        assert_eq!((reserve.slowdown(), reserve.cost()), (Nanos(100_000), 400_000));
        (0..64).for_each(|_| reserve.busy_period(1, Nanos(1)));
        assert!((35_000..38_000).contains(&reserve.slowdown().0), "{:?}", reserve.slowdown());
        for _ in 0..1_000 {
            reserve.busy_period(1, Nanos(0));
            reserve.idle(Nanos(100_000));
        }
        assert_eq!(reserve.requests(), 1);
    }

    #[test]
    fn smaller_requests_are_expected_to_delay_by_less() {
        let mut reserve = Reserve::default();
        reserve.expect(Nanos(1_000));
        reserve.busy_period(1, Nanos(1_500));
        reserve.expect(Nanos(100));
        assert_eq!(reserve.slowdown(), Nanos(150));
        reserve.busy_period(1, Nanos(40));
        assert_eq!(reserve.slowdown(), Nanos(147));
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
