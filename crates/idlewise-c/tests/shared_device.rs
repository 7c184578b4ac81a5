//! A device that serves all requests at the same time, each the slower the more there are, as a link or a throttled volume does.

use idlewise_c::{
    IdlewiseDriver, idlewise_arrived, idlewise_ask, idlewise_completed, idlewise_free, idlewise_step_began,
    idlewise_step_ended, idlewise_waiting,
};

const MS: f64 = 1e6;
/// How long a step takes alone.
const STEP: f64 = 15.0 * MS;
const SEED: u64 = 88_172_645_463_325_252;

/// Arrivals at random, and how much each asks for.
fn requests(count: usize) -> Vec<(f64, f64)> {
    let mut state = SEED;
    let mut uniform = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut at = 0.0;
    let mut request = |_| {
        at -= (1.0 - uniform()).ln() * 50.0 * MS;
        (at, (2.0 + 6.0 * uniform()) * MS)
    };
    (0..count).map(&mut request).collect()
}

/// The mean response of these requests, beside the steps that a driver wants.
fn mean_response(requests: &[(f64, f64)], driver: *mut IdlewiseDriver) -> f64 {
    let (mut now, mut sum, mut next) = (0.0, 0.0, 0);
    let mut busy: Vec<(usize, f64)> = Vec::new();
    let (mut step, mut ask_at): (Option<f64>, f64) = (None, 0.0);
    // SAFETY: the driver is NULL or lives until the caller frees it, and only this thread uses it.
    unsafe {
        while next < requests.len() || !busy.is_empty() {
            let may_step = step.is_none() && busy.is_empty() && !driver.is_null();
            if may_step && now >= ask_at {
                let asked = idlewise_ask(driver, now as u64);
                match asked.kind {
                    0 => {
                        idlewise_step_began(driver, now as u64, asked.bytes);
                        step = Some(STEP);
                    }
                    2 => ask_at = f64::INFINITY,
                    _ => ask_at = (asked.at_ns as f64).max(now + 1.0),
                }
            }
            let sharing = (busy.len() + usize::from(step.is_some())) as f64;
            let arrival = requests.get(next).map_or(f64::INFINITY, |request| request.0);
            let done = busy.iter().map(|(_, left)| now + left * sharing).fold(f64::INFINITY, f64::min);
            let step_done = step.map_or(f64::INFINITY, |left| now + left * sharing);
            let may_ask = if may_step && step.is_none() { ask_at } else { f64::INFINITY };
            let then = arrival.min(done).min(step_done).min(may_ask).max(now);
            busy.iter_mut().for_each(|(_, left)| *left -= (then - now) / sharing);
            step.iter_mut().for_each(|left| *left -= (then - now) / sharing);
            now = then;
            if arrival <= then {
                idlewise_arrived(driver, now as u64);
                busy.push((next, requests[next].1));
                next += 1;
            } else if done <= then {
                let least = (0..busy.len()).min_by(|&a, &b| busy[a].1.total_cmp(&busy[b].1)).unwrap();
                let (number, _) = busy.swap_remove(least);
                sum += now - requests[number].0;
                idlewise_completed(driver, now as u64, requests[number].0 as u64);
                ask_at = 0.0;
            } else if step_done <= then {
                idlewise_step_ended(driver, now as u64);
                (step, ask_at) = (None, 0.0);
            }
        }
    }
    sum / requests.len() as f64
}

#[test]
fn a_goal_is_kept_where_requests_share_the_device() {
    println!("seed {SEED}");
    let requests = requests(40_000);
    let alone = mean_response(&requests, std::ptr::null_mut());
    for goal in [0.2 * MS, 1.0 * MS] {
        let driver = idlewise_waiting(20_000_000, 1 << 20, goal as u64, 0);
        let slowdown = mean_response(&requests, driver) - alone;
        // SAFETY: it is freed once.
        unsafe { idlewise_free(driver) };
        assert!(slowdown > 0.3 * goal && slowdown < 1.1 * goal, "{} ms for {} ms", slowdown / MS, goal / MS);
    }
}
