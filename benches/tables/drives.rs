//! The model of a hard disk against the service times of five real ones (DiskSim's validation traces).

use std::fmt::Write;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use idlewise::disk::{Cache, Cached, Geometry};
use idlewise::{Bytes, Nanos, Rate};

const BLOCK: f64 = 512.0;

/// What a data sheet says of a drive: name for people, file, rotations a minute; and whether it buffered writes when it was measured.
const DRIVES: [(&str, &str, f64, bool); 5] = [
    ("Quantum Atlas 10K", "atlas10k", 10_025.0, true),
    ("Seagate Barracuda 4LP", "barracuda", 7_200.0, true),
    ("Seagate Cheetah 9LP", "cheetah9LP", 10_025.0, true),
    ("HP C3323A", "hp_c3323a", 5_400.0, false),
    ("IBM Ultrastar 18ES", "ibm18es", 7_200.0, true),
];

/// A request that was measured; it was issued so long after the one before it had completed.
struct Measured {
    writes: bool,
    offset: Bytes,
    size: Bytes,
    service_us: f64,
    after: Nanos,
}

/// What is fitted: overhead, hit in the cache, buffered write, shortest and longest seek in microseconds; the rates at the outer edge and of the
/// interface in bytes a microsecond; read-ahead in bytes.
type Constants = [f64; 8];
const BEGIN: Constants = [500.0, 500.0, 600.0, 1_500.0, 12_000.0, 20.0, 20.0, 32_768.0];

/// A table of the drives: each fitted on the first half of its requests, and shown on the second.
pub fn table(text: &mut String, folder: &Path) {
    text.push_str(
        "\n## The model of a hard disk, against five real ones\n\nThe constants of the emulated hard disk with a cache (`emulated-disk \
         --cache`) were fitted to the first half of the requests that DiskSim's authors measured on each drive, and are shown on \
         the second half. Demerit: the root mean square distance between the two distributions of service times, over the mean \
         measured one (Ruemmler and Wilkes 1994). The number of rotations is the data sheet's. \
         Only the distribution is fitted: several constants can stand in for each other, so they are no data sheet.\n\n| Drive | Requests | Mean \
         measured | Mean of the model | Demerit, first half | Demerit, second half | Overhead, hit, write | Seeks | Outermost rate | Read-ahead |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, file, rpm, buffers) in DRIVES {
        let requests = read(&folder.join("disksim-valid").join(file).with_extension("trace.xz"));
        let capacity = requests.iter().map(|request| request.offset.0 + request.size.0).max().expect("it has requests");
        let drive = |constants: &Constants| drive(Bytes(capacity), rpm, buffers, constants);
        let (first, second) = requests.split_at(requests.len() / 2);
        let fitted = fit(|constants| demerit(first, &serve(drive(constants), first)));
        let model = serve(drive(&fitted), second);
        let (measured_ms, model_ms) = (mean(second.iter().map(|one| one.service_us)), mean(model.iter().copied()));
        let [overhead, hit, write, shortest, longest, rate, _, ahead] = fitted;
        let written = if buffers { format!("{:.2}", write / 1e3) } else { "not buffered".into() };
        writeln!(
            text,
            "| {name} | {} | {:.2} ms | {:.2} ms ({:+.1} %) | {:.1} % | {:.1} % | {:.2}, {:.2}, {written} ms | {:.1} to {:.1} ms | {rate:.0} MB/s | {:.0} KiB |",
            requests.len(),
            measured_ms / 1e3,
            model_ms / 1e3,
            100.0 * (model_ms / measured_ms - 1.0),
            100.0 * demerit(first, &serve(drive(&fitted), first)),
            100.0 * demerit(second, &model),
            overhead / 1e3,
            hit / 1e3,
            shortest / 1e3,
            longest / 1e3,
            ahead / 1024.0,
        )
        .unwrap();
    }
}

fn read(file: &Path) -> Vec<Measured> {
    let lines =
        BufReader::new(liblzma::read::XzDecoder::new(File::open(file).expect("the trace can be opened"))).lines();
    let parsed = |line: &str| {
        let (kind, numbers) = line.split_once(' ')?;
        let mut numbers = numbers.split_whitespace().skip(1).map(str::parse::<f64>);
        let mut next = || numbers.next()?.ok();
        Some(Measured {
            writes: kind == "W",
            offset: Bytes((next()? * BLOCK) as u64),
            size: Bytes((next()? * BLOCK) as u64),
            service_us: next()?,
            after: Nanos((next()? * 1e3) as u64),
        })
    };
    lines.map(|line| parsed(&line.expect("the trace can be read")).expect("a line of it has six words")).collect()
}

fn drive(capacity: Bytes, rpm: f64, buffers: bool, constants: &Constants) -> Cached {
    let time = |us: f64| Nanos((us * 1e3) as u64);
    let [overhead, hit, write, shortest, longest, rate, interface, ahead] = *constants;
    let geometry = Geometry {
        capacity,
        rotation: time(60e6 / rpm),
        shortest_seek: time(shortest),
        longest_seek: time(longest.max(shortest)),
        outer_rate: Rate((rate * 1e6) as u64),
        // As usual for drives of these years.
        inner_rate: Rate((0.6 * rate * 1e6) as u64),
        overhead: time(overhead),
    };
    let interface = Rate((interface * 1e6) as u64);
    let cache =
        Cache { read: time(hit), write: buffers.then_some(time(write)), interface, read_ahead: Bytes(ahead as u64) };
    Cached::new(geometry, cache)
}

/// The service times of a drive, in microseconds.
fn serve(mut drive: Cached, requests: &[Measured]) -> Vec<f64> {
    let mut now = Nanos(0);
    let service = |request: &Measured| {
        let began = now + request.after;
        now = match request.writes {
            true => drive.write(began, request.offset, request.size),
            false => drive.read(began, request.offset, request.size),
        };
        now.since(began).0 as f64 / 1e3
    };
    requests.iter().map(service).collect()
}

/// The distance between two distributions of as many times, over the mean of the measured one.
fn demerit(measured: &[Measured], model: &[f64]) -> f64 {
    let mut measured: Vec<f64> = measured.iter().map(|request| request.service_us).collect();
    let mut model = model.to_vec();
    measured.sort_unstable_by(f64::total_cmp);
    model.sort_unstable_by(f64::total_cmp);
    let squares = measured.iter().zip(&model).map(|(measured, model)| (measured - model).powi(2));
    mean(squares).sqrt() / mean(measured.iter().copied())
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// The constants with the least cost: each in turn is made larger or smaller by a factor, which shrinks when none of that helps.
fn fit(cost: impl Fn(&Constants) -> f64) -> Constants {
    let mut best = BEGIN;
    let (mut least, mut step) = (cost(&best), 0.5_f64);
    while step > 0.005 {
        let before = least;
        for constant in 0..best.len() {
            for factor in [step.exp(), (-step).exp()] {
                let mut tried = best;
                tried[constant] *= factor;
                let cost = cost(&tried);
                if cost < least {
                    (best, least) = (tried, cost);
                }
            }
        }
        if least >= before {
            step /= 2.0;
        }
    }
    best
}
