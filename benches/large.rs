//! Claim: all 64 request sizes tuned on a trace of 50 million requests in 8 million idle intervals in under 5 s after loading,
//! at least 50 times faster than the naive way: a bisection over waits for each size, each step a simulation request by
//! request. `make bench`. It takes some minutes and 6 GB of memory; REQUESTS makes it smaller.

use std::time::Instant;

use idlewise::disk::DiskModel;
use idlewise::idle::Idleness;
use idlewise::trace::synth::Shape;
use idlewise::tune::{Arrivals, Goal, tune};
use idlewise::{Bytes, Nanos};

const SIZES: u64 = 64;
/// Bits of a wait that the bisection settles: to 60 us of 4,000 s.
const STEPS: u32 = 26;

fn main() {
    let requests = std::env::var("REQUESTS").ok().and_then(|text| text.parse().ok()).unwrap_or(50_000_000);
    let shape = Shape {
        requests,
        idle_mean: Nanos::from_millis(100),
        idle_cov: 4.0,
        among: Default::default(),
        files: Default::default(),
        burstiness: 0.0,
        requests_per_busy: 6.25,
        together: false,
        tick: Nanos::ZERO,
        service: Nanos::from_millis(2),
        read_share: 0.7,
        sequential: 0.0,
        phase: 1.0,
        length: 65_536,
        capacity: Bytes(300_000_000_000),
    };
    let model = DiskModel::ultrastar_15k450();
    let goal = Goal::new(Nanos::from_millis(1), Nanos::from_millis(51));
    let trace = shape.trace(1).expect("the shape makes sense");
    let disks = Idleness::of_trace(&trace, &model).expect("the trace has responses");
    let requests: Vec<(u64, u64)> = trace
        .columns
        .requests()
        .map(|request| (request.arrival.0, request.arrival.0 + request.response.unwrap_or_default().0))
        .collect();
    drop(trace);
    println!("{} requests in {} idle intervals", requests.len(), disks[0].intervals.len());

    let began = Instant::now();
    let plan = tune(&disks, &model, &goal, Arrivals::Recorded, &|_| ()).expect("there is idle time");
    let fast = began.elapsed().as_secs_f64();
    println!("tune, all sizes:             {fast:>9.2} s: {} after {}", plan.request_size, plan.idle_wait);

    let began = Instant::now();
    let (size, service) = (plan.request_size, model.verify_time(plan.request_size).0);
    let (mut low, mut high) = (0u64, 1u64 << 42);
    let mut best = (0, 0);
    for _ in 0..STEPS {
        let middle = (low + high) / 2;
        let (issued, delays) = naive(&requests, middle, service);
        if delays <= u128::from(goal.mean_slowdown.0) * requests.len() as u128 {
            (high, best) = (middle, (middle, issued * size.0));
        } else {
            low = middle;
        }
    }
    let naive = began.elapsed().as_secs_f64();
    println!("naive, one size:             {naive:>9.2} s: {size} after {}", Nanos(best.0));
    println!("naive, all {SIZES} sizes on 2 CPUs: {:>6.0} s", naive * SIZES as f64 / 2.0);
    println!("naive / tune:                {:>9.0}", naive * SIZES as f64 / 2.0 / fast);
    println!("bytes, tune / naive:         {:>9.4}", plan.outcome.scrubbed.0 as f64 / best.1 as f64);
}

/// Waiting, request by request: requests issued, and the sum of delays.
fn naive(requests: &[(u64, u64)], wait: u64, service: u64) -> (u64, u128) {
    let (mut busy_until, mut delay, mut issued, mut delays) = (requests[0].1, 0u64, 0u64, 0u128);
    for &(arrival, completion) in requests {
        if arrival > busy_until {
            let idle_from = busy_until + delay;
            delay = idle_from.saturating_sub(arrival);
            if arrival > idle_from + wait {
                let count = (arrival - idle_from - wait).div_ceil(service);
                issued += count;
                delay = idle_from + wait + count * service - arrival;
            }
        }
        delays += u128::from(delay);
        busy_until = busy_until.max(completion);
    }
    (issued, delays)
}
