//! Waiting(t) with a fixed request size: DSN 2012, sections V-B and V-C.

use super::{Decision, Entry, Kind, Parameter, Policy, REQUEST_SIZE, Tried};
use crate::disk::Timing;
use crate::idle::Interval;
use crate::{Bytes, Nanos, TotalTime};

/// Waits until the device has been idle for `idle_wait`, then issues requests back to back until foreground work
/// arrives. Decreasing hazard rates make that the best time to stop (DSN 2012, section V-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The threshold t.
    pub idle_wait: Nanos,
    /// Size of every request.
    pub request_size: Bytes,
}

impl Policy for Waiting {
    fn decide(&mut self, elapsed: Nanos) -> Decision {
        if elapsed < self.idle_wait {
            return Decision::Wait { until: self.idle_wait };
        }
        Decision::Issue { size: self.request_size, count: u64::MAX }
    }
}

/// Idle wait (threshold t).
pub const IDLE_WAIT: Parameter = Parameter {
    name: "idle-wait",
    about: "Idle time before the first background request, such as 100ms",
    kind: Kind::Time,
    tried: Tried::IdleLengths,
};

pub(super) const WAITING: Entry = Entry {
    name: "waiting",
    about: "issue back to back once the disk has been idle for --idle-wait",
    parameters: &[IDLE_WAIT],
    build: |given| Ok(Box::new(Waiting { idle_wait: given.time(IDLE_WAIT)?, request_size: given.size(REQUEST_SIZE)? })),
};

pub(super) const CFQ_IDLE: Entry = Entry {
    name: "cfq-idle",
    about: "the idle class of Linux' CFQ: waiting with 10 ms and, unless given, 64KiB",
    parameters: &[],
    build: |given| {
        let request_size = given.size_or_smallest();
        Ok(Box::new(Waiting { idle_wait: Nanos::from_millis(10), request_size }))
    },
};

pub(super) const BACK_TO_BACK: Entry = Entry {
    name: "back-to-back",
    about: "issue whenever the disk is idle, 64KiB unless given",
    parameters: &[],
    build: |given| Ok(Box::new(Waiting { idle_wait: Nanos::ZERO, request_size: given.size_or_smallest() })),
};

/// What Waiting does on recorded intervals, see [`crate::simulate::Simulation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    /// Requests issued.
    pub requests: u64,
    /// Requests in service when foreground work arrived.
    pub collisions: u64,
    /// Sum of the delays of foreground requests.
    pub delay_sum: TotalTime,
    /// Longest delay of one, where it waits for all that is left.
    pub longest_delay: Nanos,
    /// Idle time in which a request was in service.
    pub used_idle: TotalTime,
    /// Foreground requests delayed by more than the limit.
    pub slowed: u64,
}

impl Done {
    /// A busy period of so many requests is delayed, at worst by so much.
    fn delayed(&mut self, delay: u64, worst: u64, requests: u64, limit: Option<Nanos>) {
        self.delay_sum += Nanos(delay) * requests;
        self.slowed += if limit.is_some_and(|limit| worst > limit.0) { requests } else { 0 };
    }
}

/// A request in service when foreground work arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collision {
    /// What is left of it, in nanoseconds.
    pub left: u64,
    /// What it delays the foreground by, in nanoseconds.
    pub delay: u64,
    /// What delays carried from earlier intervals left of the interval, in nanoseconds.
    pub length: u64,
    /// Collisions that follow from each other up to this one.
    pub chain: u64,
    /// Requests of the busy period behind.
    pub followers: u64,
}

/// Runs Waiting with one wait and one timing over intervals, in time proportional to those longer than the wait and those
/// that their collisions reach. `longer` are the indices, ascending, of all intervals longer than the wait, and maybe of others;
/// `collided` is told each collision, and says whether to go on. Requests that are delayed by more than `limit` are counted.
pub(crate) fn on_intervals(
    intervals: &[Interval],
    longer: &[u32],
    wait: Nanos,
    timing: Timing,
    limit: Option<Nanos>,
    mut collided: impl FnMut(Collision) -> bool,
) -> Done {
    let (wait, service) = (wait.0, timing.time.0.max(1));
    let mut done = Done::default();
    // The next interval that no carried delay has dealt with yet.
    let mut next = 0;
    for &index in longer {
        let mut at = index as usize;
        if at < next {
            continue;
        }
        let mut length = intervals[at].length.0;
        let mut chain = 0;
        // Follow a collision until the delay is absorbed in an interval whose rest is not used.
        while length > wait {
            let issued = (length - wait).div_ceil(service);
            done.requests += issued;
            done.used_idle += Nanos(length - wait);
            let left = wait.saturating_add(issued.saturating_mul(service)) - length;
            if left == 0 {
                break;
            }
            done.collisions += 1;
            let mut delay = timing.interference.of(Nanos(left)).0;
            // Of the mean delay and the worst the same is absorbed.
            let beyond = left - delay;
            done.longest_delay = done.longest_delay.max(Nanos(left));
            let followers = intervals[at].followers;
            done.delayed(delay, left, followers, limit);
            chain += 1;
            if !collided(Collision { left, delay, length, chain, followers }) {
                return done;
            }
            if delay == 0 {
                break;
            }
            length = 0;
            while let Some(following) = intervals.get(at + 1) {
                at += 1;
                if following.length.0 > delay {
                    length = following.length.0 - delay;
                    break;
                }
                delay -= following.length.0;
                done.delayed(delay, delay + beyond, following.followers, limit);
                if delay == 0 {
                    break;
                }
            }
            next = at + 1;
        }
    }
    done
}
