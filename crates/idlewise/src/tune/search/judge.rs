//! What a wait does with requests of one size, and what it costs the goal.

use super::super::cost::Cost;
use super::super::goal::{Allowed, Arrivals};
use super::super::moments::{SHIFTS, planned};
use super::super::waiting::Waits;
use crate::disk::Timing;
use crate::idle::Idleness;
use crate::simulate::Outcome;
use crate::{Bytes, Nanos, TotalTime};

/// Requests of one size, and how their cost is counted.
pub(super) struct Judge {
    pub size: Bytes,
    pub timing: Timing,
    pub arrivals: Arrivals,
    pub p99: Option<Nanos>,
}

impl Judge {
    /// Intervals, to be asked of growing waits.
    pub fn waits<'b>(&self, disks: &'b [Idleness]) -> Vec<Waits<'b>> {
        disks.iter().map(|disk| Waits::new(&disk.intervals).beyond(self.p99)).collect()
    }

    /// What the wait does, and whether that keeps the goal. Waits must not fall from call to call.
    pub fn keeps(&self, waits: &mut [Waits], wait: u64, allowed: &Allowed) -> (Outcome, bool) {
        if self.arrivals == Arrivals::Recorded {
            let outcome = self.recorded(waits, wait);
            return (outcome, Cost::of(&outcome).is_within(allowed));
        }
        let lowest = wait.saturating_sub(self.timing.time.0 / 2);
        waits.iter_mut().for_each(|disk| disk.raise(Nanos(lowest)));
        let outcome = self.outcome(waits, wait);
        // What breaks it as recorded need not be shifted.
        if !Cost::of(&outcome).is_within(allowed) {
            return (outcome, false);
        }
        let later = |shift: u64| (u128::from(shift) * u128::from(self.timing.time.0) / u128::from(SHIFTS)) as u64;
        let shifted = |shift| Cost::of(&self.outcome(waits, lowest.saturating_add(later(shift))));
        let costs: [Cost; SHIFTS as usize] = std::array::from_fn(|shift| shifted(shift as u64));
        let delay = TotalTime(planned(costs.map(|cost| cost.delay.0 as f64)) as u128);
        let slowed = planned(costs.map(|cost| cost.slowed as f64)) as u64;
        (outcome, Cost { delay, slowed }.is_within(allowed))
    }

    /// What the wait does with collisions where they were recorded. Waits must not fall from call to call.
    pub fn recorded(&self, waits: &mut [Waits], wait: u64) -> Outcome {
        waits.iter_mut().for_each(|disk| disk.raise(Nanos(wait)));
        self.outcome(waits, wait)
    }

    /// What the wait does, and the delay that is left of waits longer by each of `ahead`; `None` if that is more than `most`
    /// for the last of them. Waits must not fall from call to call.
    pub fn guessed<const N: usize>(
        &self,
        waits: &mut [Waits],
        wait: u64,
        ahead: [Nanos; N],
        most: f64,
    ) -> Option<(Outcome, [TotalTime; N])> {
        let (mut total, mut left) = (Outcome::default(), [TotalTime::ZERO; N]);
        for disk in waits {
            disk.raise(Nanos(wait));
            let rest = TotalTime((most as u128).checked_sub(left[N - 1].0)?);
            let (outcome, own) = disk.outcome_ahead(Nanos(wait), self.timing, self.size, ahead, rest)?;
            total.add(&outcome);
            left.iter_mut().zip(own).for_each(|(left, own)| *left += own);
        }
        Some((total, left))
    }

    /// What the wait does, which is at least the last one judged or guessed.
    pub fn outcome(&self, waits: &[Waits], wait: u64) -> Outcome {
        let mut total = Outcome::default();
        for disk in waits {
            total.add(&disk.outcome(Nanos(wait), self.timing, self.size));
        }
        total
    }
}
