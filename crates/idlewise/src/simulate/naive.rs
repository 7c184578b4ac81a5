//! The simulation written the slow, obvious way, request by request on one clock, to hold the engine against.

use super::Outcome;
use crate::Nanos;
use crate::disk::DiskModel;
use crate::policy::{Decision, Policy};

/// `requests` are (arrival, response), in order of arrival.
pub fn simulate(requests: &[(u64, u64)], policy: &mut dyn Policy, model: &DiskModel) -> Outcome {
    let mut outcome = Outcome::default();
    // The end of the recorded busy period, the delay that requests have now, and the arrival that began the work.
    let (mut recorded_end, mut delay, mut work_began) = (None, 0u64, 0u64);
    for &(arrival, response) in requests {
        if let Some(end) = recorded_end
            && arrival > end
        {
            let idle_from = end + delay;
            if arrival > idle_from {
                policy.interval_foreseen(Nanos(arrival - idle_from));
                policy.idle_began(Nanos(idle_from - work_began));
                let free_at = background(idle_from, arrival, policy, model, &mut outcome);
                delay = free_at.saturating_sub(arrival);
                policy.foreground_arrived(Nanos(arrival - idle_from), Nanos(delay));
                work_began = arrival;
            } else {
                delay = idle_from - arrival;
            }
        }
        if recorded_end.is_none() {
            work_began = arrival;
        }
        policy.foreground_served(1, u128::from(delay));
        outcome.delay_sum += u128::from(delay);
        outcome.longest_delay = outcome.longest_delay.max(Nanos(delay));
        recorded_end = recorded_end.max(Some(arrival + response));
    }
    outcome
}

/// One background request after another on the clock; returns when the device is free of them.
fn background(from: u64, arrival: u64, policy: &mut dyn Policy, model: &DiskModel, outcome: &mut Outcome) -> u64 {
    let mut now = from;
    loop {
        match policy.decide(Nanos(now - from)) {
            Decision::Stop => return now,
            Decision::Wait { until } => now = from + until.0,
            Decision::Issue { size, count } => {
                for _ in 0..count {
                    let end = now + model.verify_time(size).0;
                    outcome.background_requests += 1;
                    outcome.scrubbed.0 += size.0;
                    outcome.collisions += u64::from(end > arrival);
                    outcome.used_idle += u128::from(end.min(arrival) - now);
                    now = end;
                    if now >= arrival {
                        return now;
                    }
                }
            }
        }
        if now >= arrival {
            // Waiting went past the arrival: nothing is in service.
            return arrival;
        }
    }
}
