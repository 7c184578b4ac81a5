//! What it costs the foreground that background work leaves the head elsewhere.
//!
//! [`super::SecondClock`] takes the service of a foreground request as given. The first one after background work is
//! served more slowly, though, as the head has to come back, or as a cache holds other blocks. That is seen only against
//! intervals that could have been used and were not: some are left out by lot, as controls. The difference of the two means
//! is what the work adds to the request that ends an interval, without any model of the device.

use crate::Nanos;

/// Of the intervals that the policy would use, one in so many is a control; more of them until enough is known.
const CONTROLS: u64 = 16;
const FIRST_CONTROLS: u64 = 4;
/// With fewer controls nothing is said.
const ENOUGH: f64 = 12.0;
/// Requests over which the means are taken, about.
const MEMORY: f64 = 1_000.0;

/// The service of the first foreground request after intervals with and without background work.
#[derive(Clone, Debug, Default)]
pub struct Displacement {
    worked: Mean,
    held_back: Mean,
    drawn: u64,
}

/// What was done in an idle interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Use {
    /// Nothing, and the policy wanted nothing.
    #[default]
    Left,
    /// The policy wanted to work, and was held back.
    HeldBack,
    /// It worked.
    Worked,
}

impl Displacement {
    /// Draws whether the interval that the policy wants to use is a control.
    pub fn draw(&mut self) -> bool {
        // Knuth's MMIX generator: intervals must not be able to keep step with it.
        self.drawn = self.drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let every = if self.held_back.count < ENOUGH { FIRST_CONTROLS } else { CONTROLS };
        (self.drawn >> 33).is_multiple_of(every)
    }

    /// Takes in the service of a request that ended an interval.
    pub fn served(&mut self, interval: Use, service: Nanos) {
        match interval {
            Use::Left => {}
            Use::HeldBack => self.held_back.add(service.0 as f64),
            Use::Worked => self.worked.add(service.0 as f64),
        }
    }

    /// What the work adds to the service of the request that ends an interval; zero as long as too little is known.
    pub fn cost(&self) -> Nanos {
        if self.held_back.count < ENOUGH || self.worked.count < ENOUGH {
            return Nanos::ZERO;
        }
        Nanos((self.worked.mean() - self.held_back.mean()).max(0.0) as u64)
    }
}

/// A mean in which the past fades.
#[derive(Clone, Debug, Default)]
struct Mean {
    sum: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        let fade = 1.0 - 1.0 / MEMORY;
        (self.sum, self.count) = (self.sum * fade + value, self.count * fade + 1.0);
    }

    fn mean(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_the_difference_of_what_lots_have_parted() {
        let mut displacement = Displacement::default();
        let mut held_back = 0;
        for request in 0..4_000u64 {
            let own = 3_000_000 + request * 7_919 % 2_000_000;
            if displacement.draw() {
                held_back += 1;
                displacement.served(Use::HeldBack, Nanos(own));
            } else {
                displacement.served(Use::Worked, Nanos(own + 1_500_000));
            }
            displacement.served(Use::Left, Nanos(99_000_000));
        }
        assert!((200..300).contains(&held_back), "{held_back}");
        let cost = displacement.cost().0;
        assert!((1_350_000..1_650_000).contains(&cost), "{cost}");
    }

    #[test]
    fn little_known_or_a_gain_cost_nothing() {
        let mut displacement = Displacement::default();
        (0..100).for_each(|_| displacement.served(Use::Worked, Nanos(5)));
        (0..11).for_each(|_| displacement.served(Use::HeldBack, Nanos(1)));
        assert_eq!(displacement.cost(), Nanos::ZERO);
        (0..11).for_each(|_| displacement.served(Use::HeldBack, Nanos(100)));
        assert_eq!(displacement.cost(), Nanos::ZERO);
    }
}
