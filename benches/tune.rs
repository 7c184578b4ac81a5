//! Claims: a plan for a volume of a thousand requests in at most 50 ms; one in under 2 s on the traces of a week or an hour, and
//! the gentlest one for a pass in under 5 s. `make bench`, with the folder of the traces in IDLEWISE_TRACES.

use std::path::Path;
use std::time::Instant;

use idlewise::disk::DiskModel;
use idlewise::idle::Idleness;
use idlewise::trace::synth::Shape;
use idlewise::trace::{ReadOptions, open};
use idlewise::tune::{Arrivals, Goal, gentlest, tune};
use idlewise::{Bytes, Nanos};

const RUNS: usize = 5;

/// Volumes of a thousand requests, each of its own seed.
const VOLUMES: u64 = 40;

fn main() {
    small_volumes();
    let Some(folder) = std::env::var_os("IDLEWISE_TRACES") else {
        println!("SKIPPED: IDLEWISE_TRACES does not name a folder of traces");
        return;
    };
    let model = DiskModel::ultrastar_15k450();
    let goal = Goal::new(Nanos::from_millis(1), Nanos::from_millis(50));
    println!(
        "{:<34} {:>9} {:>10} {:>10} {:>10} {:>10}",
        "trace", "intervals", "load", "recorded", "any moment", "gentlest"
    );
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
            median(&|| pass_in_a_month(&disks, &model)),
        ];
        let [load, recorded, any, gentlest] = times.map(|time| time.to_string());
        println!("{name:<34} {intervals:>9} {load:>10} {recorded:>10} {any:>10} {gentlest:>10}");
    }
}

/// As `tune --finish-within 30d` does for 10 TB.
fn pass_in_a_month(disks: &[Idleness], model: &DiskModel) {
    let span: f64 = disks.iter().map(|disk| disk.end.since(disk.begin).as_secs_f64()).fold(0.0, f64::max);
    let enough = Bytes((10e12 * span / (30.0 * 86_400.0)) as u64);
    let least = Goal::new(Nanos(1_000), Nanos::from_millis(50));
    let _ = std::hint::black_box(gentlest(disks, model, &least, Arrivals::Recorded, enough, &|_| ()));
}

fn small_volumes() {
    let model = DiskModel::ultrastar_15k450();
    let goal = Goal::new(Nanos::from_millis(1), Nanos::from_millis(50));
    println!("{VOLUMES} volumes of 1000 requests, time of a plan each, at most 50 ms");
    for (name, idle_mean, idle_cov) in [
        ("short, exponential", Nanos::from_millis(50), 1.0),
        ("long, exponential", Nanos::from_millis(5_000), 1.0),
        ("long tails", Nanos::from_millis(500), 6.0),
    ] {
        let shape = Shape {
            requests: 1_000,
            idle_mean,
            idle_cov,
            among: Default::default(),
            files: Default::default(),
            burstiness: 0.0,
            requests_per_busy: 1.2,
            together: false,
            tick: Nanos::ZERO,
            service: Nanos::from_millis(5),
            read_share: 0.5,
            sequential: 0.0,
            phase: 1.0,
            length: 4096,
            capacity: Bytes(1 << 40),
        };
        let volume = |seed| {
            let trace = shape.trace(seed).expect("the shape makes sense");
            Idleness::of_trace(&trace, &model).expect("the model has read and write times")
        };
        let volumes: Vec<_> = (0..VOLUMES).map(volume).collect();
        let mut all = [Arrivals::Recorded, Arrivals::AnyMoment].map(|arrivals| {
            median(&|| {
                for disks in &volumes {
                    let _ = std::hint::black_box(tune(disks, &model, &goal, arrivals, &|_| ()));
                }
            })
        });
        all.iter_mut().for_each(|time| time.0 /= VOLUMES);
        println!("{name:<34} recorded {:>10}, any moment {:>10}", all[0].to_string(), all[1].to_string());
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
