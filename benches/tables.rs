//! Makes docs/results.md from the traces in the folder IDLEWISE_TRACES: `make tables`. It takes some minutes. Without IDLEWISE_WRITE_DOCS
//! it only fits the drives and samples traces, and shows those tables.

#[path = "tables/drives.rs"]
mod drives;
#[path = "tables/dsn2008.rs"]
mod dsn2008;
#[path = "tables/sampling.rs"]
mod sampling;
#[path = "tables/traces.rs"]
mod traces;

use std::fmt::Write;
use std::path::Path;

use idlewise::disk::DiskModel;
use idlewise::idle::Idleness;
use idlewise::policy::restrained::Amount;
use idlewise::policy::{Adaptive, Budget, Clairvoyant};
use idlewise::simulate::{Lane, Outcome, Scrub, Service, Simulation, Summary, Work, WriteVerification, simulate};
use idlewise::trace::synth::{PUBLISHED, Shape};
use idlewise::trace::{ReadOptions, open};
use idlewise::tune::{Arrivals, Goal, PairPoint, Question, baselines, heldout, tune};
use idlewise::{Bytes, Nanos};

const TABLE_3: [&str; 4] = ["hplajw, two disks", "MySQL server", "MS SQL server", "cloudPhysics"];
const GOALS_US: [u64; 5] = [250, 500, 1_000, 2_000, 4_000];
const LONGEST: Nanos = Nanos::from_millis(50);

fn goal(us: u64) -> Goal {
    Goal::new(Nanos(us * 1_000), LONGEST)
}

fn main() {
    let Some(folder) = std::env::var_os("IDLEWISE_TRACES") else {
        println!("SKIPPED: IDLEWISE_TRACES does not name a folder of traces");
        return;
    };
    let mut measured = String::new();
    sampling::table(&mut measured, Path::new(&folder));
    drives::table(&mut measured, Path::new(&folder));
    if std::env::var_os("IDLEWISE_WRITE_DOCS").is_none() {
        println!("{measured}");
        return;
    }
    let model = DiskModel::ultrastar_15k450();
    let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
    let load = |(name, file): (&'static str, &str)| {
        let trace = open(&[Path::new(&folder).join(file)], &options).expect("the trace is readable");
        (name, Idleness::of_trace(&trace, &model).expect("the model has read and write times"))
    };
    let traces: Vec<(&str, Vec<Idleness>)> = traces::TRACES.into_iter().map(load).collect();
    let mut text = String::from(
        "# Results\n\nMade by `make tables`. All but the last two tables are simulated, with the times of the Hitachi Ultrastar 15K450 of DSN 2012 \
         and a maximum slowdown of 50 ms. Traces: see the tests' folder; where a trace has no response times, that disk serves \
         it first come first served.\n",
    );
    table_3(&mut text, &traces, &model);
    pairs(&mut text, &model);
    dsn2008::tables(&mut text, &model);
    held_out(&mut text, &traces, &model);
    text.push_str(&measured);
    std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md"), text).expect("docs/ can be written");
}

fn rate(bytes: f64, span_s: f64) -> String {
    format!("{:.1}", bytes / span_s / 1e6)
}

/// DSN 2012, table III.
fn table_3(text: &mut String, traces: &[(&str, Vec<Idleness>)], model: &DiskModel) {
    text.push_str(
        "\n## Throughput at slowdown goals (DSN 2012, table III)\n\nThe best fixed request size and its throughput at mean \
         slowdowns of 1, 2 and 4 ms. Then CFQ's idle class (10 ms, 64 KiB): throughput, and the mean \
         slowdown that it costs. Tuned and shown on the same trace, as in the paper.\n\n| Trace | 1 ms | 2 ms | 4 ms | CFQ |\n|---|---|---|---|---|\n",
    );
    for (name, disks) in traces.iter().filter(|(name, _)| TABLE_3.contains(name)) {
        let cells = [1_000, 2_000, 4_000].map(|us| {
            let plan = tune(disks, model, &goal(us), Arrivals::Recorded, &|_| ()).expect("there is idle time");
            let summary = Summary::new(&plan.outcome, disks);
            format!("{:.1} MB/s, {} KiB", summary.throughput_bytes_per_s / 1e6, plan.request_size.0 >> 10)
        });
        let cfq = &baselines(disks, model)[0].summary;
        let cfq = format!("{:.1} MB/s, {:.2} ms", cfq.throughput_bytes_per_s / 1e6, cfq.mean_slowdown_s * 1e3);
        writeln!(text, "| {name} | {} | {cfq} |", cells.join(" | ")).unwrap();
    }
}

/// SIGMETRICS 2009, tables 2 and 3: relative delay in percent, completed, dropped in percent.
type Printed = (f64, f64, u64, f64);
const TABLE_2: [(&str, [Printed; 4], [Printed; 3]); 2] = [
    (
        "sigmetrics2009-t1",
        [(0.1, 1.4, 3_861, 0.0), (0.4, 2.0, 15_514, 0.0), (0.9, 3.9, 34_953, 0.0), (f64::INFINITY, 7.0, 74_234, 0.0)],
        [(0.1, 3.7, 3_358, 13.0), (0.4, 6.6, 13_035, 15.0), (0.9, 8.3, 26_778, 23.0)],
    ),
    (
        "sigmetrics2009-t2",
        [
            (0.1, 3.2, 132_362, 0.0),
            (0.4, 6.8, 528_287, 0.0),
            (0.9, 4.7, 1_190_208, 0.0),
            (f64::INFINITY, 3.9, 7_862_813, 0.0),
        ],
        [(0.1, 3.0, 128_862, 2.0), (0.4, 5.3, 385_573, 27.0), (0.9, 4.1, 613_157, 48.0)],
    ),
];

/// SIGMETRICS 2009, tables 2 and 3, on stand-ins.
fn pairs(text: &mut String, model: &DiskModel) {
    text.push_str(
        "\n## The framework of idle wait and busy period (SIGMETRICS 2009, tables 2 and 3)\n\nOn stand-ins for T1 and T2, \
         background requests of 6 ms on average, exponentially distributed, a relative delay of 7 % allowed. In each cell the \
         paper's number, then that of `idlewise`.\n\n| Trace | Work | Places | I, T | Delay | Completed | Dropped |\n|---|---|---|---|---|---|---|\n",
    );
    let service = Nanos::from_millis(6);
    for (name, free, buffered) in TABLE_2 {
        let shape = PUBLISHED.iter().find(|row| row.name == name).expect("it is in the table").shape();
        // T1 is so short that its numbers are those of several traces.
        let seeds = if shape.requests < 100_000 { 4 } else { 1 };
        let free = free.iter().map(|printed| (None, printed));
        for (places, printed) in free.chain(buffered.iter().map(|printed| (Some(16), printed))) {
            let share = printed.0;
            let infinite = share.is_infinite();
            let work = || -> Box<dyn Work> {
                let service = Service::exponential(service);
                if infinite { Box::new(Scrub::new(service)) } else { Box::new(WriteVerification::new(service, places)) }
            };
            let of_seed = |seed| {
                let disks = with_writes(shape, seed, model, if infinite { 0.0 } else { share });
                let amount = match infinite {
                    true => Amount::Infinite,
                    false => WriteVerification::amount(&disks[0], service, places),
                };
                let size = Bytes::from_kib(64);
                let question = Question { disks: &disks, work: &work, amount, service, size, relative_delay: 0.07 };
                let point = question.chosen().expect("there are idle intervals");
                (point, point.lost as f64 / disks[0].writes.len().max(1) as f64)
            };
            let points: Vec<_> = (1..=seeds).map(of_seed).collect();
            let mean = |of: fn(&(PairPoint, f64)) -> f64| points.iter().map(of).sum::<f64>() / f64::from(seeds as u32);
            let point = points[0].0;
            let period = point.busy_period_s.map_or("no end".into(), |s| format!("{:.0} ms", s * 1e3));
            writeln!(
                text,
                "| {} | {} | {} | {:.0} ms, {period} | {:.1} %, {:.1} % | {}, {:.0} | {:.0} %, {:.1} % |",
                &name[name.len() - 2..].to_uppercase(),
                if infinite { "infinite".into() } else { format!("{:.0} %", share * 100.0) },
                places.map_or("-".into(), |places: usize| places.to_string()),
                point.idle_wait_s * 1e3,
                printed.1,
                mean(|(point, _)| point.relative_delay) * 100.0,
                printed.2,
                mean(|(point, _)| point.completed as f64),
                printed.3,
                mean(|(_, lost)| *lost) * 100.0
            )
            .unwrap();
        }
    }
    text.push_str(
        "\nThe numbers of T1 are means of four traces; I and T are those of the first. What cannot hold together is on \
         [a page of its own](papers.md).\n",
    );
}

/// The stand-in with this share of WRITEs, in its phases.
fn with_writes(shape: Shape, seed: u64, model: &DiskModel, share: f64) -> Vec<Idleness> {
    use idlewise::idle::{Keep, Reducer, Writes};
    let trace = Shape { read_share: 1.0 - share, ..shape }.trace(seed).expect("the table's numbers make sense");
    let keep = Keep { responses: false, writes: Writes::Recorded };
    let mut reducer = Reducer::new(model, trace.provenance.resolution).expect("the clock is fine").keeping(keep);
    reducer.requests(&trace.columns).expect("the trace has responses");
    reducer.finish(trace.provenance.origin)
}

/// What each way of tuning does on the second half, fitted to the first.
fn held_out(text: &mut String, traces: &[(&str, Vec<Idleness>)], model: &DiskModel) {
    text.push_str(
        "\n## Held out\n\nThroughput in MB/s on the second half of each trace, of what the first half taught, at the same mean \
         slowdown on that half. `Shaped` falls back to Waiting (marked -) where cross-validation on the first half rejected steps; \
         the number beside it shows what steps would have achieved anyway. `Adaptive` runs through both halves; its number comes with \
         the slowdown that it had on the second half, as a share of the goal. `Oracle` knows the longest intervals in advance and uses \
         each from its beginning to its end, with the size and the number of intervals chosen in hindsight. Steps may be above it, because \
         they stop before a timer's tick and continue after it.\n",
    );
    for us in GOALS_US {
        let ms = us as f64 / 1e3;
        write!(
            text,
            "\n### {ms} ms\n\n| Trace | Waiting | Shaped | steps | Adaptive | Oracle |\n|---|---|---|---|---|---|\n"
        )
        .unwrap();
        for (name, disks) in traces {
            eprintln!("{ms} ms, {name}");
            let (train, test): (Vec<_>, Vec<_>) = disks.iter().map(|disk| disk.split(0.5)).unzip();
            let goal = goal(us);
            let begin = test.iter().map(|disk| disk.begin).min().unwrap_or_default();
            let end = test.iter().map(|disk| disk.end).max().unwrap_or_default();
            let span = end.since(begin).as_secs_f64();
            let grid = heldout::WaitingGrid::new(&train, model, &goal);
            let waiting = heldout::held_out(&test, model, &goal, &|goal| grid.best(goal));
            let validation = heldout::validate(&train, model, &goal, &|_| ());
            let context = validation.context;
            let steps = heldout::held_out(&test, model, &goal, &|goal| heldout::shaped(&train, model, goal, context));
            let shaped = if validation.chosen { rate(steps, span) } else { format!("{} -", rate(waiting, span)) };
            let (adaptive, slowdown) = adaptive(disks, &test, model, us);
            writeln!(
                text,
                "| {name} | {} | {shaped} | {} | {} ({slowdown:.2}) | {} |",
                rate(waiting, span),
                rate(steps, span),
                rate(adaptive, span),
                rate(oracle(&test, model, us), span),
            )
            .unwrap();
        }
    }
}

/// Bytes of Adaptive in the second halves, having run through the first, and its slowdown there over the goal.
fn adaptive(disks: &[Idleness], test: &[Idleness], model: &DiskModel, us: u64) -> (f64, f64) {
    let target = Nanos(us * 1_000);
    let mut total = Outcome::default();
    for (disk, half) in disks.iter().zip(test) {
        let policy = Box::new(Budget::new(Adaptive::new(&Goal::new(target, LONGEST), model), target));
        let work = Box::new(Scrub::new(Service::OfSize(model.clone())));
        let mut simulation = Simulation::new(disk, vec![Lane::new(policy, work)]);
        let begins = disk.intervals.len() - half.intervals.len();
        for (index, interval) in disk.intervals.iter().enumerate() {
            if index == begins {
                simulation.outcome = Outcome::default();
            }
            simulation.interval(interval, std::iter::empty());
        }
        total.add(&simulation.outcome);
    }
    let requests: u64 = test.iter().map(|disk| disk.requests).sum();
    (total.scrubbed.0 as f64, total.delay_sum.0 as f64 / requests.max(1) as f64 / target.0 as f64)
}

/// Bytes of the best of many Oracles that keep the goal.
fn oracle(test: &[Idleness], model: &DiskModel, us: u64) -> f64 {
    let requests: u64 = test.iter().map(|disk| disk.requests).sum();
    let allowed = Nanos::from_micros(us) * requests;
    let mut lengths: Vec<Nanos> =
        test.iter().flat_map(|disk| disk.intervals.iter().map(|interval| interval.length)).collect();
    lengths.sort_unstable();
    let mut best = 0;
    for size in (1..=64).step_by(3).map(|k| Bytes::from_kib(64 * k)).filter(|&size| model.verify_time(size) <= LONGEST)
    {
        // The more intervals, the more delay, but for luck: the first threshold that keeps the goal.
        let at = |share: f64| lengths.get((share * lengths.len() as f64) as usize).copied();
        let thresholds = std::iter::once(Nanos::ZERO).chain((0..200).filter_map(|k| at(f64::from(k) / 200.0)));
        for longer_than in thresholds {
            let outcome = simulate(test, model, |_| Box::new(Clairvoyant::new(longer_than, size)));
            if outcome.delay_sum <= allowed {
                best = best.max(outcome.scrubbed.0);
                break;
            }
        }
    }
    best as f64
}
