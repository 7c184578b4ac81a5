//! How long the statistics of a million idle intervals take: the autoregressive model, which must be under a second, and all
//! that `idlewise idle` prints.

use std::time::Instant;

use idlewise::disk::DiskModel;
use idlewise::idle::{AutoRegression, Idleness, Profile};
use idlewise::trace::synth::Shape;
use idlewise::{Bytes, Nanos};

fn main() {
    let shape = Shape {
        requests: 1_000_001,
        idle_mean: Nanos::from_millis(100),
        idle_cov: 8.0,
        among: Default::default(),
        files: Default::default(),
        burstiness: 0.3,
        requests_per_busy: 1.0,
        together: false,
        tick: Nanos::ZERO,
        service: Nanos::from_millis(5),
        read_share: 0.7,
        sequential: 0.0,
        phase: 1.0,
        length: 65_536,
        capacity: Bytes(1_000_000_000_000),
    };
    let trace = shape.trace(1).expect("the shape makes sense");
    let disks = Idleness::of_trace(&trace, &DiskModel::ultrastar_15k450()).expect("responses are recorded");
    let series: Vec<f64> = disks[0].intervals.iter().map(|interval| interval.length.as_secs_f64()).collect();
    let began = Instant::now();
    let model = AutoRegression::fit(&series).expect("the series varies");
    println!("AR({}) of {} intervals: {:.3} s", model.coefficients.len(), series.len(), began.elapsed().as_secs_f64());
    let began = Instant::now();
    std::hint::black_box(Profile::of(&disks));
    println!("all statistics of them: {:.3} s", began.elapsed().as_secs_f64());
}
