//! The benchmark's parts, put together by bench.sh: reads alone, beside the store's own compaction, and beside one at a pace.

mod table;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use idlewise::disk::{DiskModel, Point};
use idlewise::drive::{self, Foreground};
use idlewise::policy::{Adaptive, Budget, Policy, Waiting};
use idlewise::tune::Goal;
use idlewise::{Bytes, Nanos};
use idlewise_key_value_store::pace::Pace;
use idlewise_key_value_store::reads::Reads;
use idlewise_key_value_store::store::{self, Store};

const PROFILES: u64 = 200_000;
const EVENTS: u64 = 300_000;
/// The sizes of step whose times the policy is told; it knows those between.
const SIZES: [Bytes; 2] = [Bytes::from_kib(64), Bytes::from_kib(1024)];
/// No step may take longer.
const LONGEST: Nanos = Nanos::from_millis(50);

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["fill", folder] => Ok(Store::fill(Path::new(folder), PROFILES, EVENTS)?),
        ["alone", folder, seed, count] => alone(Path::new(folder), seed.parse()?, count.parse()?),
        ["step", folder, size] => step(Path::new(folder), SIZES[size.parse::<usize>()?]),
        ["own", folder, seed] => beside(Path::new(folder), seed.parse()?, None),
        ["gaps", folder, seed, goal, small, large] => {
            let times = [small.parse()?, large.parse()?].map(Nanos);
            beside(Path::new(folder), seed.parse()?, Some(Box::new(policy(Nanos(goal.parse()?), times)?)))
        }
        ["table", folder] => table::print(Path::new(folder)),
        _ => bail!("run examples/key-value-store/bench.sh"),
    }
}

/// The policy of the benchmark: what it learns from the reads decides how long to wait and how much to merge, and whatever they do,
/// the mean slowdown stays within its account.
fn policy(goal: Nanos, times: [Nanos; 2]) -> anyhow::Result<impl Policy + 'static> {
    let points = SIZES.into_iter().zip(times).map(|(size, time)| Point::new(size, time));
    let model = DiskModel::new("merging", points.collect())?;
    Ok(Budget::new(Adaptive::new(&Goal::new(goal, LONGEST), &model), goal))
}

fn paced(folder: &Path, policy: Box<dyn Policy>) -> (Foreground, Pace) {
    let (foreground, mut worker) = drive::shared(policy);
    // Some gaps are left alone, to see what else the merge costs: where it leaves the head, and what the kernel reads ahead.
    worker.compare(true);
    (foreground, Pace::new(worker, &store::events(folder)))
}

/// Reads one after the other until told to stop: how long each took, in nanoseconds.
fn play(store: &Store, reads: impl Iterator<Item = (Duration, u64)>, stop: &AtomicBool) -> anyhow::Result<Vec<u64>> {
    let mut responses = Vec::new();
    for (think, profile) in reads.take_while(|_| !stop.load(Ordering::Relaxed)) {
        thread::sleep(think);
        let began = Instant::now();
        store.get(profile)?.context("a profile is missing")?;
        responses.push(began.elapsed().as_nanos() as u64);
    }
    Ok(responses)
}

fn alone(folder: &Path, seed: u64, count: usize) -> anyhow::Result<()> {
    let store = Store::open(folder, None)?;
    let responses = play(&store, Reads::new(seed, PROFILES).take(count), &AtomicBool::new(false))?;
    print(0, 0.0, Nanos::ZERO, &responses);
    Ok(())
}

/// Reads as long as the compaction lasts.
fn beside(folder: &Path, seed: u64, policy: Option<Box<dyn Policy>>) -> anyhow::Result<()> {
    let paced = policy.map(|policy| paced(folder, policy));
    let pace = paced.as_ref().map(|(_, pace)| pace.clone());
    let store = Store::open(folder, paced)?;
    let done = AtomicBool::new(false);
    let (compacted, responses) = thread::scope(|threads| {
        let compaction = threads.spawn(|| {
            let began = Instant::now();
            let bytes = store.compact();
            done.store(true, Ordering::Relaxed);
            bytes.map(|bytes| (bytes, began.elapsed().as_secs_f64()))
        });
        let responses = play(&store, Reads::new(seed, PROFILES), &done);
        (compaction.join().expect("a compaction that panics ends the program"), responses)
    });
    let (bytes, seconds) = compacted?;
    let seen = pace.map_or(Nanos::ZERO, |pace| pace.measured().mean_slowdown());
    print(bytes, seconds, seen, &responses?);
    Ok(())
}

/// How long a step of this size takes while nobody reads, in nanoseconds.
fn step(folder: &Path, size: Bytes) -> anyhow::Result<()> {
    let paced = paced(folder, Box::new(Waiting { idle_wait: Nanos::ZERO, request_size: size }));
    let pace = paced.1.clone();
    let store = Store::open(folder, Some(paced))?;
    let began = Instant::now();
    store.compact()?;
    println!("{}", began.elapsed().as_nanos() as u64 / pace.measured().steps.max(1));
    Ok(())
}

/// Bytes and seconds of the compaction, the mean slowdown that the driver saw, and the responses.
fn print(bytes: u64, seconds: f64, seen: Nanos, responses: &[u64]) {
    let mut lines = format!("{bytes} {seconds} {}\n", seen.0);
    responses.iter().for_each(|response| {
        let _ = writeln!(lines, "{response}");
    });
    print!("{lines}");
}
