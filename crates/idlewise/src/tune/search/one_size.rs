//! The search for the idle wait of requests of one size.

use super::super::cost::{Cost, Ratio};
use super::super::goal::{Allowed, Arrivals, Goal};
use super::super::plan::Plan;
use super::super::waiting::Waits;
use super::judge::Judge;
use super::{Enough, count, hopeless};
use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::simulate::Outcome;
use crate::{Bytes, Nanos};

/// Steps of the search grow with the wait, so that no step is more than this part of it: on all intervals, and on the
/// sample that proposes waits.
const COARSE: u64 = 16;
const CLOSE: u64 = 1024;
/// Waits beyond as many service times are looked at less closely: how they meet a timer's ticks is luck.
const LONG: u64 = 32;
const LESS_CLOSE: u64 = 128;
/// Parts of the service time by which close steps are skipped where no wait so much longer can keep the goal.
const AHEAD: [u64; 2] = [16, 4];
/// Parts into which the last step is divided.
const FINE: u64 = 32;
/// Steps of the search around a wait are this part of it at first.
const AROUND: u64 = 64;
/// Parts into which its last step is divided.
const LESS_FINE: u64 = 8;
/// Intervals that the close steps look at, of the sample and of all, before what the coarse steps found must do.
const LOOKS: usize = 16 << 20;

/// Requests of one size, whose wait is sought.
pub(super) struct Search<'a> {
    disks: &'a [Idleness],
    judge: Judge,
    /// No wait below this one keeps the goal, as far as a few tell.
    shortest: u64,
    /// A wait that does nothing whatever the shift, and so keeps any goal.
    longest: u64,
    /// How finely waits are distinguished.
    resolution: u64,
    allowed: Allowed,
}

/// A wait that keeps the goal, the one tried before it, which does not, and what it does.
#[derive(Clone, Copy)]
pub(super) struct Found {
    failed: u64,
    /// What the one before it scrubs: no wait between them scrubs more.
    most: Bytes,
    wait: u64,
    pub outcome: Outcome,
}

impl<'a> Search<'a> {
    pub fn new(disks: &'a [Idleness], model: &DiskModel, goal: &Goal, arrivals: Arrivals, size: Bytes) -> Self {
        let timing = model.timing(size);
        let service = timing.time;
        let judge = Judge { size, timing, arrivals, p99: goal.p99_slowdown };
        let longest = disks.iter().flat_map(|disk| &disk.intervals).map(|interval| interval.length.0).max();
        Self {
            disks,
            judge,
            shortest: 0,
            longest: longest.unwrap_or(0).saturating_add(service.0),
            resolution: (goal.mean_slowdown.0.min(service.0) / 16).max(1_000),
            allowed: goal.allows(disks),
        }
    }

    /// Passes over waits of which a sample tells that none keeps the goal.
    pub fn beginning(self, few: &[Idleness]) -> Self {
        let shortest = hopeless::first_hopeful(&self.judge, few, &self.allowed, self.longest);
        Self { shortest, ..self }
    }

    /// The plan with the smallest wait that keeps the goal before the one found; `None` if it cannot be enough.
    pub fn smallest_wait(&self, found: Found, enough: Enough) -> Option<Plan> {
        if !enough.is(found.most) {
            return None;
        }
        Some(self.plan(self.refined(self.refined(found, FINE), FINE)))
    }

    /// The plan with the smallest wait that keeps the goal around a wait that nearly does.
    pub fn around(&self, wait: u64) -> Plan {
        let judged = |wait| self.judge.keeps(&mut self.judge.waits(self.disks), wait, &self.allowed);
        let (mut step, mut wait) = ((wait / AROUND).max(self.resolution), wait);
        let (mut outcome, mut keeps) = judged(wait);
        let mut most = outcome.scrubbed;
        if keeps {
            // Down to the first that does not.
            loop {
                let lower = wait.saturating_sub(step);
                let (next, kept) = judged(lower);
                if !kept || lower == 0 {
                    let found = if kept { (lower, next) } else { (wait, outcome) };
                    return self.closer(Found { failed: lower, most: next.scrubbed, wait: found.0, outcome: found.1 });
                }
                (wait, outcome, step) = (lower, next, step + step / 2);
            }
        }
        let mut failed = wait;
        while !keeps && wait < self.longest {
            (failed, most) = (wait, outcome.scrubbed);
            wait = wait.saturating_add(step).min(self.longest);
            (outcome, keeps) = judged(wait);
            step = step.saturating_add(step / 2);
        }
        self.closer(Found { failed, most, wait, outcome })
    }

    fn closer(&self, found: Found) -> Plan {
        self.plan(self.refined(self.refined(found, LESS_FINE), LESS_FINE))
    }

    fn plan(&self, found: Found) -> Plan {
        Plan { request_size: self.judge.size, idle_wait: Nanos(found.wait), outcome: found.outcome }
    }

    /// The first wait in growing steps that keeps the goal, or at which the throughput is not enough: then nothing.
    pub fn coarse(&self, enough: Enough) -> (u64, Option<Found>) {
        let mut waits = self.judge.waits(self.disks);
        let (mut failed, mut most, mut wait) = (self.shortest, Bytes(u64::MAX), self.shortest);
        loop {
            let (outcome, keeps) = self.judge.keeps(&mut waits, wait, &self.allowed);
            if !enough.is(outcome.scrubbed) {
                return (wait, None);
            }
            if keeps {
                return (wait, Some(Found { failed, most, wait, outcome }));
            }
            // An interval may last for as long as a clock can tell.
            if wait == self.longest {
                return (wait, None);
            }
            (failed, most) = (wait, outcome.scrubbed);
            wait = wait.saturating_add((self.judge.timing.time.0 / 4).max(wait / COARSE)).min(self.longest);
        }
    }

    /// The first wait below `limit` that keeps the goal, of those that the sample proposes.
    pub fn proposed(&self, few: &[Idleness], limit: u64, enough: Enough) -> Option<Found> {
        // What so many intervals do need not be asked of all of them again.
        let few_are_all = count(few) == count(self.disks);
        let (mut few, mut all) = (self.judge.waits(few), self.judge.waits(self.disks));
        let looked = |waits: &[Waits]| waits.iter().map(Waits::left).sum::<usize>();
        let mut looks = 0;
        // What it costs on all intervals over what it costs on the sample, where they were last compared.
        let mut ratio = Ratio::default();
        let limit = if few_are_all { self.not_enough(limit, enough) } else { limit };
        let (mut failed, mut most, mut wait) = (self.shortest, Bytes(u64::MAX), self.shortest);
        while wait < limit && looks < LOOKS {
            let step = |wait| {
                let part = if wait < LONG * self.judge.timing.time.0 { CLOSE } else { LESS_CLOSE };
                self.resolution.max(wait / part)
            };
            // What is ahead of a single step is not worth knowing.
            let ahead = AHEAD.map(|part| Nanos(self.judge.timing.time.0 / part).max(Nanos(step(wait))));
            let ahead = if ahead[1].0 <= step(wait) { [Nanos::ZERO; AHEAD.len()] } else { ahead };
            let guessed = self.judge.guessed(&mut few, wait, ahead, self.allowed.delay_sum.0 as f64 / ratio.delay);
            looks += looked(&few);
            let until = match guessed {
                None => wait.saturating_add(ahead[1].0),
                Some((guessed, left)) => {
                    let guess = Cost::of(&guessed);
                    if guess.times(ratio).is_within(&self.allowed) {
                        let outcome = if few_are_all { guessed } else { self.judge.recorded(&mut all, wait) };
                        let cost = Cost::of(&outcome);
                        looks += if few_are_all { 0 } else { looked(&all) };
                        if !enough.is(outcome.scrubbed) {
                            return None;
                        }
                        if cost.is_within(&self.allowed) {
                            return Some(Found { failed, most, wait, outcome });
                        }
                        ratio = cost.over(&guess);
                    }
                    // What a sample scrubs says little of what all do.
                    most = if few_are_all { guessed.scrubbed } else { most };
                    let hopeless = left[0].0 as f64 * ratio.delay > self.allowed.delay_sum.0 as f64;
                    wait.saturating_add(if hopeless { ahead[0].0 } else { 0 })
                }
            };
            while {
                failed = wait;
                wait = wait.saturating_add(step(wait));
                wait <= until && wait > failed
            } {}
        }
        None
    }

    /// The smallest wait of a fine grid between the one that failed and the one found.
    fn refined(&self, found: Found, parts: u64) -> Found {
        let mut waits = self.judge.waits(self.disks);
        let step = (found.wait - found.failed).div_ceil(parts).max(1);
        let tried = (found.failed..found.wait).step_by(step as usize).skip(1);
        for wait in tried {
            let (outcome, keeps) = self.judge.keeps(&mut waits, wait, &self.allowed);
            if keeps {
                return Found { failed: wait - step, wait, outcome, ..found };
            }
        }
        Found { failed: found.wait.saturating_sub(step).max(found.failed), ..found }
    }

    /// The first wait below `limit`, about, whose throughput is not enough.
    fn not_enough(&self, limit: u64, enough: Enough) -> u64 {
        let waits = self.judge.waits(self.disks);
        let (mut low, mut high) = (0, limit);
        while high - low > self.resolution.max(high / CLOSE) {
            let middle = low + (high - low) / 2;
            if enough.is(self.judge.outcome(&waits, middle).scrubbed) { low = middle } else { high = middle }
        }
        high
    }
}
