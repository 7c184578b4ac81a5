//! Many volumes at once, like those of a cloud: of very different sizes, with hours and days that are busier than others, in bursts.
//!
//! Published of such fleets, of Alibaba's 1,000 volumes in January 2020: Li, Wang, Lee and Shi, *An In-depth Analysis of Cloud Block Storage
//! Workloads in Large-Scale Production* (IISWC 2020), "Li" below, and the largest places of the volumes, which the authors of *SepBIT* (FAST 2022)
//! list. How rates go up and down with the hour nobody has published: that is assumed, as is how long bursts are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::f64::consts::TAU;

use rand::RngExt;
use rand_distr::{Distribution, Exp1, Geometric, LogNormal};
use rand_pcg::Pcg64;

use super::{SynthError, generator};
use crate::trace::{Columns, Op, Provenance, Request};
use crate::{Bytes, Nanos};

/// Requests in a batch.
const BATCH: usize = 1 << 16;
const BLOCK: u64 = 4096;
const HOUR: u64 = 3_600_000_000_000;

/// Spread of the logarithm of the volumes' rates: 81.6 % of them are below 10 requests a second and 1.9 % above 100 (Li, finding 1).
const RATES: f64 = 1.7;
/// Mean requests of a burst: of the median volume, and the spread of its logarithm over volumes.
const BURST: (f64, f64) = (8.0, 1.0);
/// Mean time between the requests of a burst.
const WITHIN: Nanos = Nanos::from_micros(300);
/// So many volumes mostly write, the others mostly read, and how much of what they do: three quarters of all requests are writes.
const WRITERS: f64 = 0.9;
const MOSTLY: (f64, f64) = (0.6, 1.0);
/// Size of the median volume, and the spread of its logarithm: half of the largest places are below 40 GiB, nine tenths below 200 GiB (SepBIT).
const CAPACITY_GIB: (f64, f64) = (45.0, 1.1);
const LEAST_GIB: f64 = 18.0;
/// This share of a volume is hot, and takes so much of its requests: a tenth has over 31 % of the writes on three quarters of the volumes
/// (Li, finding 9).
const HOT: (f64, f64) = (0.1, 0.4);
/// Requests that go on where the last one ended: on a fifth of the volumes less than half do (Li, finding 8).
const SEQUENTIAL: (f64, f64) = (0.4, 0.9);
/// How much of the mean the rate swings by in a day at most, and by how much the weekend is quieter.
const DAILY: f64 = 0.8;
const WEEKEND: f64 = 0.3;
/// Blocks of a request, and the share of requests that have at most so many: of reads, of which three quarters are of 32 KiB at most, and of
/// writes, of which these are of 16 KiB at most (Li). Their mean is 35 kB.
const LENGTHS: [(u32, f64, f64); 6] =
    [(1, 0.35, 0.50), (2, 0.45, 0.62), (4, 0.60, 0.75), (8, 0.75, 0.85), (16, 0.92, 0.92), (64, 1.0, 1.0)];

/// A fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// How many volumes.
    pub volumes: u32,
    /// Requests of all of them together.
    pub requests: u64,
    /// How long they take.
    pub span: Nanos,
}

impl Fleet {
    /// The most volumes that a trace may have.
    const MOST: u32 = 1 << 16;

    /// Its requests in order of arrival, in batches: so a fleet of any size takes no more memory than its volumes do.
    ///
    /// # Errors
    /// [`SynthError::Senseless`].
    pub fn batches(&self, seed: u64) -> Result<Batches, SynthError> {
        let check = |what, value: u64, right: bool, expected| match right {
            true => Ok(()),
            false => Err(SynthError::Senseless { what, value: value as f64, expected }),
        };
        let (volumes, span) = (u64::from(self.volumes), self.span.0);
        check("a number of volumes", volumes, (1..=Self::MOST).contains(&self.volumes), "1 to 65,536")?;
        let some = "at least as many as there are volumes";
        check("a number of requests", self.requests, self.requests >= volumes, some)?;
        // Beyond, a nanosecond is not told from the next one while times are drawn.
        let hours = "an hour to 100 days";
        check("a span in hours", span / HOUR, (HOUR..=2400 * HOUR).contains(&span), hours)?;
        let mut names = Columns::default();
        for number in 0..self.volumes {
            let _ = names.volume_id(&number.to_string());
        }
        let mut random = generator(seed);
        let rates = LogNormal::new(0.0, RATES).expect("a positive deviation");
        let rates: Vec<f64> = (0..self.volumes).map(|_| rates.sample(&mut random)).collect();
        let counts = shares(&rates, self.requests);
        let mut volumes: Vec<_> = counts.into_iter().map(|count| Volume::new(count, self.span, &mut random)).collect();
        let next =
            volumes.iter_mut().zip(0..=u16::MAX).map(|(volume, number)| Reverse((volume.arrive(), number))).collect();
        Ok(Batches { names, volumes, next })
    }

    /// Where it is from.
    pub fn provenance() -> Provenance {
        Provenance { format: "synthetic", resolution: Nanos::from_micros(1), ..Provenance::default() }
    }
}

/// So many requests, shared out by weight; at least one for each.
fn shares(weights: &[f64], all: u64) -> Vec<u64> {
    let sum: f64 = weights.iter().sum();
    let spare = all - weights.len() as u64;
    let (mut reached, mut given) = (0.0, 0);
    let share = |weight: &f64| {
        reached += weight / sum;
        let until = ((reached * spare as f64).round() as u64).min(spare);
        let own = until - given;
        given = until;
        1 + own
    };
    let mut counts: Vec<u64> = weights.iter().map(share).collect();
    // What rounding left.
    counts[0] += all - counts.iter().sum::<u64>();
    counts
}

/// The requests of a fleet.
#[derive(Debug)]
pub struct Batches {
    names: Columns,
    volumes: Vec<Volume>,
    /// The arrival that is next of each volume that has any left.
    next: BinaryHeap<Reverse<(Nanos, u16)>>,
}

impl Iterator for Batches {
    type Item = Columns;

    fn next(&mut self) -> Option<Columns> {
        let mut columns = self.names.with_volumes_of();
        columns.reserve(BATCH);
        while columns.len() < BATCH
            && let Some(mut first) = self.next.peek_mut()
        {
            let Reverse((arrival, number)) = *first;
            let volume = &mut self.volumes[usize::from(number)];
            columns.push(volume.request(arrival, number));
            match volume.left {
                0 => drop(std::collections::binary_heap::PeekMut::pop(first)),
                _ => *first = Reverse((volume.arrive(), number)),
            }
        }
        (!columns.is_empty()).then_some(columns)
    }
}

/// One volume.
#[derive(Debug)]
struct Volume {
    random: Pcg64,
    /// Requests that are still to come, and those of the burst that has begun.
    left: u64,
    in_burst: u64,
    burst: Geometric,
    mean_burst: f64,
    last: Nanos,
    /// How far it is, 0 to 1, in the sum of its rate over time.
    reached: f64,
    /// That sum at the end of each hour.
    hours: Vec<f64>,
    span: Nanos,
    writes: f64,
    sequential: f64,
    blocks: u64,
    hot_from: u64,
    /// Where the last request ended.
    end: u64,
}

impl Volume {
    fn new(requests: u64, span: Nanos, random: &mut Pcg64) -> Self {
        let mut own = generator(random.random());
        let mean_burst = LogNormal::new(f64::ln(BURST.0), BURST.1).expect("a positive deviation").sample(&mut own);
        let mean_burst = mean_burst.max(1.0);
        let mostly = own.random_range(MOSTLY.0..MOSTLY.1);
        let writes = if own.random_bool(WRITERS) { mostly } else { 1.0 - mostly };
        let gib =
            LogNormal::new(f64::ln(CAPACITY_GIB.0), CAPACITY_GIB.1).expect("a positive deviation").sample(&mut own);
        let blocks = (gib.max(LEAST_GIB) * (1u64 << 30) as f64) as u64 / BLOCK;
        Self {
            left: requests,
            in_burst: 0,
            burst: Geometric::new(1.0 / mean_burst).expect("a share of one"),
            mean_burst,
            last: Nanos::ZERO,
            reached: 0.0,
            hours: hours(span, own.random(), own.random_range(0.0..DAILY)),
            span,
            writes,
            sequential: own.random_range(SEQUENTIAL.0..SEQUENTIAL.1),
            blocks,
            hot_from: own.random_range(0..blocks),
            end: 0,
            random: own,
        }
    }

    /// When the next request comes; there must be one.
    fn arrive(&mut self) -> Nanos {
        if self.in_burst > 0 {
            self.in_burst -= 1;
            let gap: f64 = Exp1.sample(&mut self.random);
            self.last.0 += (gap * WITHIN.0 as f64) as u64;
        } else {
            self.in_burst = self.burst.sample(&mut self.random);
            // The first of so many places that are drawn evenly from what is left.
            let bursts = (self.left as f64 / self.mean_burst).max(1.0);
            let rest: f64 = self.random.random::<f64>().powf(1.0 / bursts);
            self.reached = 1.0 - (1.0 - self.reached) * rest;
            self.last = self.last.max(self.time(self.reached));
        }
        self.left -= 1;
        self.last
    }

    /// When the sum of the rate comes to this.
    fn time(&self, reached: f64) -> Nanos {
        let hour = self.hours.partition_point(|sum| *sum <= reached).min(self.hours.len() - 1);
        let before = if hour > 0 { self.hours[hour - 1] } else { 0.0 };
        let part = (reached - before) / (self.hours[hour] - before).max(f64::MIN_POSITIVE);
        let begin = hour as u64 * HOUR;
        let length = HOUR.min(self.span.0 - begin);
        Nanos(begin + (part.clamp(0.0, 1.0) * length as f64) as u64)
    }

    fn request(&mut self, arrival: Nanos, volume: u16) -> Request {
        let random = &mut self.random;
        let op = if random.random_bool(self.writes) { Op::Write } else { Op::Read };
        let drawn: f64 = random.random();
        let within = |(_, reads, writes): &&(u32, f64, f64)| drawn < if op == Op::Read { *reads } else { *writes };
        let blocks = LENGTHS.iter().find(within).map_or(1, |length| length.0);
        let places = self.blocks - u64::from(blocks);
        let place = if random.random_bool(self.sequential) && self.end < places {
            self.end
        } else if random.random_bool(HOT.1) {
            (self.hot_from + random.random_range(0..(HOT.0 * self.blocks as f64) as u64)) % places
        } else {
            random.random_range(0..places)
        };
        self.end = place + u64::from(blocks);
        let (offset, length) = (Bytes(place * BLOCK), blocks * BLOCK as u32);
        Request { arrival, offset, length, op, volume, queued: None, response: None }
    }
}

/// The sum of a rate at the end of each hour, as a share of that of all: it swings with the day, whose busiest time is somewhere, and is
/// less on two days of seven.
fn hours(span: Nanos, busiest: f64, swing: f64) -> Vec<f64> {
    let rate = |hour: u64| {
        let day = 1.0 + swing * (TAU * (hour as f64 / 24.0 - busiest)).cos();
        let week = if hour / 24 % 7 < 5 { 1.0 } else { 1.0 - WEEKEND };
        let length = HOUR.min(span.0 - hour * HOUR) as f64 / HOUR as f64;
        day * week * length
    };
    let mut sums: Vec<f64> = (0..span.0.div_ceil(HOUR)).map(rate).collect();
    for hour in 1..sums.len() {
        sums[hour] += sums[hour - 1];
    }
    let all = sums[sums.len() - 1];
    sums.iter_mut().for_each(|sum| *sum /= all);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Nanos = Nanos(24 * HOUR);

    fn requests(fleet: Fleet, seed: u64) -> Vec<Request> {
        fleet.batches(seed).unwrap().flat_map(|batch| batch.requests().collect::<Vec<_>>()).collect()
    }

    #[test]
    fn a_fleet_has_as_many_requests_as_asked_for_in_order_of_time() {
        let fleet = Fleet { volumes: 200, requests: 300_000, span: Nanos(7 * DAY.0) };
        let all = requests(fleet, 23);
        assert_eq!(all.len(), 300_000);
        assert!(all.is_sorted_by_key(|request| request.arrival));
        let mut of_each = vec![0u64; 200];
        all.iter().for_each(|request| of_each[usize::from(request.volume)] += 1);
        assert!(of_each.iter().all(|count| *count > 0));
        of_each.sort_unstable();
        let largest: u64 = of_each[180..].iter().sum();
        assert!(largest > 120_000, "the largest tenth has {largest} of 300,000, seed 23");
        let last = all[all.len() - 1].arrival;
        assert!(last > Nanos(6 * DAY.0) && last < Nanos(7 * DAY.0 + HOUR), "{last}");
        assert_eq!(requests(fleet, 23), all, "the same seed");
        assert_ne!(requests(fleet, 24), all, "another seed");
    }

    /// The weekend of a week is quieter, by as much as it should be.
    #[test]
    fn rates_follow_the_week() {
        let all = requests(Fleet { volumes: 400, requests: 400_000, span: Nanos(7 * DAY.0) }, 1);
        let weekend = all.iter().filter(|request| request.arrival.0 / DAY.0 % 7 >= 5).count() as f64;
        let expected = 2.0 * (1.0 - WEEKEND) / (5.0 + 2.0 * (1.0 - WEEKEND));
        let share = weekend / all.len() as f64;
        assert!((share - expected).abs() < 0.02, "{share} for {expected}, seed 1");
    }

    #[test]
    fn the_smallest_fleet_and_what_is_none() {
        assert_eq!(requests(Fleet { volumes: 3, requests: 3, span: Nanos(HOUR) }, 1).len(), 3);
        let most = requests(Fleet { volumes: Fleet::MOST, requests: u64::from(Fleet::MOST), span: Nanos(HOUR) }, 1);
        assert_eq!(
            (most.len() as u64, most.iter().map(|one| one.volume).max()),
            (u64::from(Fleet::MOST), Some(u16::MAX))
        );
        let wrong = |volumes, requests, span| Fleet { volumes, requests, span }.batches(1).unwrap_err().to_string();
        assert!(wrong(0, 9, DAY).contains("1 to 65,536"));
        assert!(wrong(65_537, 99_999, DAY).contains("1 to 65,536"));
        assert!(wrong(3, 2, DAY).contains("as there are volumes"));
        assert!(wrong(3, 9, Nanos(1)).contains("an hour to 100 days"));
    }
}
