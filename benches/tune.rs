//! Claim: a plan in under 2 s on the traces of a week or an hour. `make bench`, with the folder of the traces in
//! IDLEWISE_TRACES.

use std::path::Path;
use std::time::Instant;

use idlewise::Nanos;
use idlewise::disk::DiskModel;
use idlewise::idle::Idleness;
use idlewise::trace::{ReadOptions, open};
use idlewise::tune::{Arrivals, Goal, tune};

const RUNS: usize = 5;

fn main() {
    let Some(folder) = std::env::var_os("IDLEWISE_TRACES") else {
        println!("SKIPPED: IDLEWISE_TRACES does not name a folder of traces");
        return;
    };
    let model = DiskModel::ultrastar_15k450();
    let goal = Goal { mean_slowdown: Nanos::from_millis(1), max_slowdown: Nanos::from_millis(50) };
    println!("{:<34} {:>9} {:>10} {:>10} {:>10}", "trace", "intervals", "load", "recorded", "any moment");
    for name in ["blkreplay_linux-mysql.load.gz", "hplajw.1week.srt", "blkreplay_windows-mssql.load.gz"] {
        let path = [Path::new(&folder).join(name)];
        let load = || {
            let trace = open(&path, &ReadOptions::default()).expect("the trace is readable");
            Idleness::of_trace(&trace, &model).expect("the model has read and write times")
        };
        let disks = load();
        let plan = |arrivals| {
            let _ = std::hint::black_box(tune(&disks, &model, &goal, arrivals, &|_| ()));
        };
        let intervals: usize = disks.iter().map(|disk| disk.intervals.len()).sum();
        let times = [
            median(&|| drop(std::hint::black_box(load()))),
            median(&|| plan(Arrivals::Recorded)),
            median(&|| plan(Arrivals::AnyMoment)),
        ];
        let [load, recorded, any] = times.map(|time| time.to_string());
        println!("{name:<34} {intervals:>9} {load:>10} {recorded:>10} {any:>10}");
    }
}

/// Median time of some runs.
fn median(work: &dyn Fn()) -> Nanos {
    let mut times: Vec<u64> = (0..RUNS)
        .map(|_| {
            let began = Instant::now();
            work();
            began.elapsed().as_nanos() as u64
        })
        .collect();
    times.sort_unstable();
    Nanos(times[RUNS / 2])
}
