//! The simulation written the slow, obvious way, request by request on one clock, to hold the engine against.

use super::{Lane, Outcome, Work};
use crate::disk::Interference;
use crate::policy::Decision;
use crate::{Bytes, Nanos};

/// Where a request of this arrival is, in tests: some places come again soon.
pub fn place(arrival: u64) -> Bytes {
    Bytes(arrival % 7 * 1_000)
}

/// `requests` are (arrival, response, whether a WRITE), in order of arrival; those delayed by more than `limit` are counted.
pub fn simulate(requests: &[(u64, u64, bool)], lanes: &mut [Lane], limit: Option<Nanos>) -> Outcome {
    let mut outcome = Outcome::default();
    // The end of the recorded busy period, the delay that requests have now, and the arrival that began the work.
    let (mut recorded_end, mut delay, mut beyond, mut work_began) = (None, 0u64, 0u64, 0u64);
    let mut written = Vec::new();
    for &(arrival, response, write) in requests {
        if let Some(end) = recorded_end
            && arrival > end
        {
            for (at, offset) in written.drain(..) {
                works(lanes).for_each(|work| work.foreground_wrote(Nanos(at), offset));
            }
            let idle_from = end + delay;
            if arrival > idle_from {
                for lane in lanes.iter_mut() {
                    lane.policy.interval_foreseen(Nanos(arrival - idle_from));
                    lane.policy.idle_began(Nanos(idle_from - work_began), Nanos(idle_from));
                }
                let (free_at, interference) = background(idle_from, arrival, lanes, &mut outcome);
                let left = free_at.saturating_sub(arrival);
                delay = interference.of(Nanos(left)).0;
                beyond = left - delay;
                for lane in lanes.iter_mut() {
                    lane.policy.foreground_arrived(Nanos(arrival - idle_from), Nanos(delay));
                }
                works(lanes).for_each(|work| work.foreground_arrived());
                work_began = arrival;
            } else {
                delay = idle_from - arrival;
            }
        }
        if recorded_end.is_none() {
            work_began = arrival;
        }
        lanes.iter_mut().for_each(|lane| lane.policy.foreground_served(1, Nanos(delay)));
        outcome.delay_sum += Nanos(delay);
        let worst = delay + beyond;
        outcome.longest_delay = outcome.longest_delay.max(Nanos(worst));
        outcome.slowed += u64::from(limit.is_some_and(|limit| worst > limit.0));
        recorded_end = recorded_end.max(Some(arrival + response));
        if write {
            written.push((arrival + response + delay, place(arrival)));
        }
    }
    for (at, offset) in written {
        works(lanes).for_each(|work| work.foreground_wrote(Nanos(at), offset));
    }
    outcome
}

fn works(lanes: &mut [Lane]) -> impl Iterator<Item = &mut Box<dyn Work>> {
    lanes.iter_mut().flat_map(|lane| &mut lane.works)
}

/// One background request after another on the clock; returns when the device is free of them, and how much of
/// the last one the foreground waits for.
fn background(from: u64, arrival: u64, lanes: &mut [Lane], outcome: &mut Outcome) -> (u64, Interference) {
    let (mut now, several, mut interference) = (from, works(lanes).count() > 1, Interference::FULL);
    'again: while now < arrival {
        let mut wake = arrival;
        for lane in lanes.iter_mut() {
            let Some(work) = lane.works.iter_mut().find(|work| work.waits()) else { continue };
            let (size, count) = match lane.policy.decide(Nanos(now - from)) {
                Decision::Stop => continue,
                Decision::Wait { until } => {
                    wake = wake.min(from + until.0);
                    continue;
                }
                Decision::Issue { size, count } => (size, if several { 1 } else { count }),
                Decision::IssueUntil { size, .. } | Decision::Paced { size, .. } => (size, 1),
            };
            for _ in 0..count {
                if now >= arrival || !work.waits() {
                    break;
                }
                let served = work.serve(Nanos(now), size, 1, Nanos(arrival - now));
                outcome.background_requests += served.requests;
                outcome.scrubbed.0 += served.bytes.0;
                outcome.used_idle += Nanos((now + served.time.0).min(arrival) - now);
                now += served.time.0;
                interference = served.interference;
            }
            continue 'again;
        }
        now = wake;
    }
    outcome.collisions += u64::from(now > arrival);
    (now, interference)
}
