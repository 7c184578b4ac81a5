//! What it costs the foreground that background work leaves the head elsewhere.
//!
//! [`super::SecondClock`] takes the service of a foreground request as given. The first one after background work is
//! served more slowly, though, as the head has to come back, or as a cache holds other blocks. That is seen only against
//! intervals that could have been used and were not: some are left out by lot, as controls. The difference of the two means
//! is what the work adds to the request that ends an interval, without any model of the device.
//!
//! While there are few controls, the intervals that the policy did not want stand in for the missing ones. They are the shorter ones,
//! behind which the head is often still in place: that says too much rather than too little. So does a standard error on top.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Of the intervals that the policy would use, one in so many is a control; more of them until enough is known, and fewer once so many
/// lots were drawn since the policy changed.
const CONTROLS: u64 = 16;
/// Share of the intervals that a policy would use which is left alone, see [`super::Driver::compare`], but for its first ones; later it is
/// a quarter of that.
pub const LEFT_ALONE: f64 = 1.0 / CONTROLS as f64;
const FIRST_CONTROLS: u64 = 4;
const LATER_CONTROLS: u64 = 64;
const LATER: u64 = 1_024;
/// With fewer controls other intervals stand in for those that are missing.
const ENOUGH: f64 = 12.0;
/// Requests over which the means are taken, about.
const MEMORY: f64 = 1_000.0;

/// The service of the first foreground request after intervals with and without background work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Displacement {
    worked: Mean,
    held_back: Mean,
    left: Mean,
    drawn: u64,
    /// Lots since the policy changed.
    since: u64,
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
    /// Draws whether the interval that the policy wants to use is a control, and says how likely that was.
    pub fn draw(&mut self) -> (bool, f64) {
        // Knuth's MMIX generator: intervals must not be able to keep step with it. Whoever watches the disk sees the lots anyway.
        self.drawn = self.drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.since = self.since.saturating_add(1);
        let every = match () {
            () if self.held_back.count < ENOUGH => FIRST_CONTROLS,
            () if self.since <= LATER => CONTROLS,
            () => LATER_CONTROLS,
        };
        ((self.drawn >> 33).is_multiple_of(every), 1.0 / every as f64)
    }

    /// Other intervals are used from now on, or in another way.
    pub fn changed(&mut self) {
        self.since = 0;
    }

    /// What was learnt before counts half from now on.
    pub(super) fn halve(&mut self) {
        [&mut self.worked, &mut self.held_back, &mut self.left].into_iter().for_each(Mean::halve);
    }

    /// Takes in the service of a request that ended an interval.
    pub fn served(&mut self, interval: Use, service: Nanos) {
        match interval {
            Use::Left => self.left.add(service.0 as f64),
            Use::HeldBack => self.held_back.add(service.0 as f64),
            Use::Worked => self.worked.add(service.0 as f64),
        }
    }

    /// What the work adds to the service of the request that ends an interval, rather too much while little is known; zero as long as
    /// nothing is, or nobody draws.
    pub fn cost(&self) -> Nanos {
        let mut without = self.held_back;
        without.fill_up(&self.left, ENOUGH);
        if self.drawn == 0 || without.count < 1.0 || self.worked.count < 1.0 {
            return Nanos::ZERO;
        }
        let error = (self.worked.error_squared() + without.error_squared()).sqrt();
        let caution = (ENOUGH / self.held_back.count.min(self.worked.count).max(1.0)).min(1.0);
        Nanos((self.worked.mean() - without.mean() + caution * error).max(0.0) as u64)
    }
}

/// A mean in which the past fades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mean {
    sum: f64,
    squares: f64,
    count: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        let fade = 1.0 - 1.0 / MEMORY;
        self.sum = self.sum * fade + value;
        self.squares = self.squares * fade + value * value;
        self.count = self.count * fade + 1.0;
    }

    fn halve(&mut self) {
        [&mut self.sum, &mut self.squares, &mut self.count].into_iter().for_each(|value| *value /= 2.0);
    }

    /// Adds so much of `other` that there are `enough`, or all that there is.
    fn fill_up(&mut self, other: &Self, enough: f64) {
        let share = ((enough - self.count) / other.count.max(1.0)).clamp(0.0, 1.0);
        self.sum += share * other.sum;
        self.squares += share * other.squares;
        self.count += share * other.count;
    }

    /// The square of its standard error.
    fn error_squared(&self) -> f64 {
        let variance = (self.squares / self.count.max(1.0) - self.mean().powi(2)).max(0.0);
        variance / (self.count - 1.0).max(1.0)
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
            if displacement.draw().0 {
                held_back += 1;
                displacement.served(Use::HeldBack, Nanos(own));
            } else {
                displacement.served(Use::Worked, Nanos(own + 1_500_000));
            }
            displacement.served(Use::Left, Nanos(99_000_000));
        }
        assert!((95..140).contains(&held_back), "{held_back}");
        let cost = displacement.cost().0;
        assert!((1_350_000..1_650_000).contains(&cost), "{cost}");
    }

    #[test]
    fn fewer_are_left_alone_while_nothing_changes() {
        let mut displacement = Displacement::default();
        let of = |displacement: &mut Displacement, draws: u64| {
            let draw = |_: &u64| {
                let held = displacement.draw().0;
                displacement.served(if held { Use::HeldBack } else { Use::Worked }, Nanos(1));
                held
            };
            (0..draws).filter(draw).count()
        };
        let first = of(&mut displacement, 1_024);
        assert!((64..110).contains(&first), "{first}");
        let later = of(&mut displacement, 6_400);
        assert!((70..130).contains(&later), "{later}");
        displacement.changed();
        let again = of(&mut displacement, 1_024);
        assert!((45..90).contains(&again), "{again}");
    }

    #[test]
    fn while_little_is_known_the_intervals_not_wanted_stand_in() {
        let mut displacement = Displacement::default();
        displacement.draw();
        (0..100).for_each(|_| displacement.served(Use::Worked, Nanos(5)));
        assert_eq!(displacement.cost(), Nanos::ZERO, "nothing to compare with");
        (0..100).for_each(|_| displacement.served(Use::Left, Nanos(1)));
        assert_eq!(displacement.cost(), Nanos(4));
        // Six controls, and as many of the others: a mean of 2 with a standard error of 0.3.
        (0..6).for_each(|_| displacement.served(Use::HeldBack, Nanos(3)));
        assert_eq!(displacement.cost(), Nanos(3));
        (0..6).for_each(|_| displacement.served(Use::HeldBack, Nanos(3)));
        assert_eq!(displacement.cost(), Nanos(2));
        (0..100).for_each(|_| displacement.served(Use::HeldBack, Nanos(100)));
        assert_eq!(displacement.cost(), Nanos::ZERO, "a gain");
    }

    #[test]
    fn a_mean_that_is_uncertain_is_taken_higher_at_first() {
        let mut displacement = Displacement::default();
        displacement.draw();
        let of = |displacement: &mut Displacement, turns: u64| {
            for turn in 0..turns {
                displacement.served(Use::Worked, Nanos(1_000_000 + turn % 2 * 1_000_000));
                displacement.served(Use::HeldBack, Nanos(turn % 2 * 1_000_000));
            }
            displacement.cost().0
        };
        // Two standard deviations of 0.5 ms, each over the root of 11, and later next to nothing.
        assert!((1_205_000..1_220_000).contains(&of(&mut displacement, 12)));
        assert!((1_000_000..1_010_000).contains(&of(&mut displacement, 200)));
    }
}
