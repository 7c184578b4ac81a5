//! Claims: the features of 100 million requests in under a minute, and weighted k-means for every k at least 5 times as fast as
//! scikit-learn on the same points, with no more distortion. scikit-learn comes from tests/oracle/setup.sh. `make bench`, or
//! `cargo bench -p idlewise --bench sample`.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use idlewise::sample::{Clustering, Extractor, MOST_CLUSTERS, Points, clusterings};
use idlewise::trace::{Columns, Op, Request};
use idlewise::{Bytes, Nanos};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, StandardNormal};
use rand_pcg::Pcg64Mcg;

const SEED: u64 = 2015;
const REQUESTS: usize = 100_000_000;
const WEEK: Nanos = Nanos::from_secs(7 * 86_400);
const BATCH: usize = 1 << 20;
/// Intervals of 10 s in a week, and the coordinates of each.
const POINTS: usize = 60_480;
const DIMENSIONS: usize = 15;

/// Prints `k distortion` for each k, and the seconds that all took.
const SCIKIT: &str = r#"
import sys, time, numpy
from sklearn.cluster import KMeans
rows = numpy.fromfile(sys.argv[1]).reshape(-1, int(sys.argv[2]) + 1)
points, weights = numpy.ascontiguousarray(rows[:, 1:]), rows[:, 0].copy()
KMeans(2, random_state=0).fit(points[:1000])
began = time.perf_counter()
found = [KMeans(k, random_state=0).fit(points, sample_weight=weights).inertia_ for k in range(1, int(sys.argv[3]) + 1)]
print(time.perf_counter() - began, *found)
"#;

fn main() {
    println!("seed {SEED}");
    features();
    println!(
        "{:<22} {:>12} {:>10} {:>8} {:>22}",
        "60,480 x 15 points", "scikit-learn", "idlewise", "times", "distortion, ratio"
    );
    for (name, blobs, spread) in
        [("one cloud", 1, 0.0), ("30 clouds, touching", 30, 1.5), ("30 clouds, apart", 30, 10.0)]
    {
        k_means(name, blobs, spread);
    }
}

/// A week of requests in bursts: runs in sequence, random ones, and places that are visited again.
fn features() {
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let mut extractor = Extractor::new(Nanos::from_secs(10));
    let (mut spent, mut done, mut at, mut offset) = (Duration::ZERO, 0, 0.0, 0u64);
    let mean = WEEK.as_secs_f64() / REQUESTS as f64;
    while done < REQUESTS {
        let mut batch = Columns::default();
        batch.volume_id("disk");
        batch.reserve(BATCH);
        let mut stretch = 1.0;
        for index in 0..BATCH.min(REQUESTS - done) {
            if index % 4096 == 0 {
                stretch = mean * Distribution::<f64>::sample(&Exp1, &mut random);
            }
            let gap: f64 = Exp1.sample(&mut random);
            at += gap * stretch;
            offset = match random.random_range(0..10) {
                0..3 => random.random_range(0..1u64 << 28) * 4096,
                3..5 => random.random_range(0..1u64 << 12) * 65_536,
                _ => offset,
            };
            let length = [512, 4096, 8192, 65_536][random.random_range(0..4)];
            let op = if random.random::<f64>() < 0.6 { Op::Read } else { Op::Write };
            let (arrival, response) = (Nanos((at * 1e9) as u64), Some(Nanos(random.random_range(100_000..20_000_000))));
            batch.push(Request { arrival, offset: Bytes(offset), length, op, response, ..Request::default() });
            offset += u64::from(length);
        }
        done += batch.len();
        let began = Instant::now();
        extractor.requests(&batch);
        spent += began.elapsed();
    }
    let began = Instant::now();
    let intervals = extractor.finish();
    spent += began.elapsed();
    println!(
        "features of {:.0} million requests in {} intervals: {:.1} s, {:.1} million a second, on one core",
        REQUESTS as f64 / 1e6,
        intervals.len(),
        spent.as_secs_f64(),
        REQUESTS as f64 / 1e6 / spent.as_secs_f64()
    );
}

fn k_means(name: &str, blobs: usize, spread: f64) {
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
    let middles: Vec<f64> = (0..blobs * DIMENSIONS).map(|_| spread * normal()).collect();
    let coordinate = |index: usize| middles[index / DIMENSIONS % blobs * DIMENSIONS + index % DIMENSIONS] + normal();
    let coordinates: Vec<f64> = (0..POINTS * DIMENSIONS).map(coordinate).collect();
    let weights: Vec<f64> = (0..POINTS).map(|_| f64::exp(2.0 * normal()).ceil()).collect();

    let Some((their_time, theirs)) = scikit(&coordinates, &weights) else { return };
    let began = Instant::now();
    let points = Points::new(DIMENSIONS, &coordinates, weights);
    let ours: Vec<f64> =
        clusterings(&points, MOST_CLUSTERS, SEED, &|_| ()).iter().map(|c: &Clustering| c.distortion).collect();
    let our_time = began.elapsed().as_secs_f64();
    let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
    let worst = ratios.iter().copied().fold(0.0, f64::max);
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    println!(
        "{name:<22} {their_time:>10.1} s {our_time:>8.1} s {:>8.1} {:>22}",
        their_time / our_time,
        format!("mean {mean:.4}, worst {worst:.4}")
    );
}

/// Seconds, and the distortion for each k; none without scikit-learn.
fn scikit(coordinates: &[f64], weights: &[f64]) -> Option<(f64, Vec<f64>)> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/oracle/bin/python");
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    let rows = weights.iter().zip(coordinates.chunks_exact(DIMENSIONS));
    let numbers = rows.flat_map(|(weight, row)| std::iter::once(weight).chain(row));
    let bytes: Vec<u8> = numbers.flat_map(|number| number.to_ne_bytes()).collect();
    file.write_all(&bytes).expect("a temporary file is writable");
    let (dimensions, most) = (DIMENSIONS.to_string(), MOST_CLUSTERS.to_string());
    let output = Command::new(python).args(["-c", SCIKIT]).arg(file.path()).args([&dimensions, &most]).output().ok()?;
    if !output.status.success() {
        println!("SKIPPED: no scikit-learn; tests/oracle/setup.sh installs it");
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.split_whitespace().filter_map(|number| number.parse().ok());
    Some((numbers.next()?, numbers.collect()))
}
