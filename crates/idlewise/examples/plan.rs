//! From a trace to a plan: `cargo run --example plan -- TRACE`. Without a trace, one is made up.

use idlewise::disk::DiskModel;
use idlewise::idle::Idleness;
use idlewise::trace::synth::PUBLISHED;
use idlewise::trace::{self, ReadOptions};
use idlewise::tune::{Arrivals, Goal, tune};
use idlewise::{Nanos, simulate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trace = match std::env::args_os().nth(1) {
        Some(path) => trace::open(&[path.into()], &ReadOptions::default())?,
        None => PUBLISHED[0].shape().trace(1)?,
    };
    let model = DiskModel::ultrastar_15k450();
    let disks = Idleness::of_trace(&trace, &model)?;
    let goal = Goal { mean_slowdown: Nanos::from_millis(1), p99_slowdown: None, max_slowdown: Nanos::from_millis(50) };
    let plan = tune(&disks, &model, &goal, Arrivals::Recorded, &|_| ())?;
    println!("once idle for {}, issue requests of {}", plan.idle_wait, plan.request_size);
    let outcome = simulate::simulate(&disks, &model, |_| Box::new(plan.policy()));
    let requests: u64 = disks.iter().map(|disk| disk.requests).sum();
    println!("{} scrubbed, {} of {requests} foreground requests met", outcome.scrubbed, outcome.collisions);
    assert!(outcome.delay_sum <= goal.mean_slowdown * requests);
    Ok(())
}

#[test]
fn runs() {
    main().unwrap();
}
