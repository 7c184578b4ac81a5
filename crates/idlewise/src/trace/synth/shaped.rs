//! Traces with given idle-time statistics.

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, Gamma, Geometric, LogNormal, StandardNormal};

use super::generator;
use crate::trace::{Columns, Op, Provenance, Request, Trace};
use crate::{Bytes, Nanos};

/// Steps of the search for the order of intervals.
const HALVINGS: u32 = 30;
/// As many nanoseconds as are far from the end of their range, however the lengths fall.
const LONGEST_DAYS: f64 = 50_000.0;

/// What the trace is to be like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Requests in all.
    pub requests: u64,
    /// Mean length of the idle intervals.
    pub idle_mean: Nanos,
    /// Their coefficient of variation. Up to 1 they are of a gamma distribution, beyond of a lognormal one.
    pub idle_cov: f64,
    /// Intervals of other kinds among them, such as short pauses within a stream. The rest is such that the mean and the coefficient of
    /// variation of all are the above.
    pub among: [IdleKind; 2],
    /// How much likelier an interval longer than the mean is after another such one: see
    /// [`crate::idle::burstiness`]. Zero for independent intervals.
    pub burstiness: f64,
    /// Mean requests in a busy period, at least 1; geometrically distributed.
    pub requests_per_busy: f64,
    /// Busy periods among them in which a file is read or written from its beginning to its end. The rest is such that the mean of all is
    /// the above.
    pub files: Files,
    /// Whether the requests of a busy period come together, at its beginning, rather than each while the one before it is
    /// served.
    pub together: bool,
    /// Idle intervals are multiples of this timer tick, as those between the requests of periodic programs; zero for none.
    /// Their mean and coefficient of variation are then those of the shape only nearly.
    pub tick: Nanos,
    /// Mean service time; exponentially distributed.
    pub service: Nanos,
    /// Share of the requests that read.
    pub read_share: f64,
    /// Share of the requests that go on where the one before them ended, and read or write as it did.
    pub sequential: f64,
    /// Mean number of such runs, one after the other, that read or write alike, at least 1: a recording is a phase of WRITEs. With 1
    /// each run is drawn for itself.
    pub phase: f64,
    /// Bytes of each request.
    pub length: u32,
    /// Requests are anywhere on a disk of this size.
    pub capacity: Bytes,
}

/// A kind of idle intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IdleKind {
    /// Their share of all intervals, 0 for none.
    pub share: f64,
    /// Their mean length.
    pub mean: Nanos,
    /// Their coefficient of variation.
    pub cov: f64,
}

/// Busy periods in which a file is read or written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Files {
    /// Their share of all busy periods, 0 for none.
    pub share: f64,
    /// Mean requests in one, geometrically distributed.
    pub requests: f64,
}

/// Why there is no such trace.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SynthError {
    /// A number makes no sense.
    #[error("{what} of {value}: expected {expected}")]
    Senseless {
        /// Which one.
        what: &'static str,
        /// What it is.
        value: f64,
        /// What it could be.
        expected: &'static str,
    },
    /// So few intervals cannot vary so much.
    #[error("{intervals} idle intervals cannot have a coefficient of variation of {cov}; ask for more requests")]
    TooFew {
        /// Idle intervals of the trace.
        intervals: usize,
        /// The coefficient asked for.
        cov: f64,
    },
    /// A disk model that serves no reads.
    #[error("the disk model '{0}' has no [read] section to compute response times with")]
    NoReads(String),
}

/// A trace is made in memory: so many requests take about 5 GB.
const MOST_REQUESTS: f64 = 100e6;

/// Checks that there will not be too many.
pub fn most_requests(requests: f64) -> Result<(), SynthError> {
    let expected = "100 million at most";
    let wrong = || SynthError::Senseless { what: "a number of requests", value: requests.round(), expected };
    if requests <= MOST_REQUESTS { Ok(()) } else { Err(wrong()) }
}

impl Shape {
    /// Makes the trace. Mean and coefficient of variation of its idle intervals, its requests and their mean service time are
    /// those of the shape but for rounding to nanoseconds; the mean number of requests in a busy period and the burstiness
    /// are so to within one interval.
    ///
    /// # Errors
    /// [`SynthError`].
    pub fn trace(&self, seed: u64) -> Result<Trace, SynthError> {
        self.check()?;
        let mut random = generator(seed);
        let periods =
            ((self.requests as f64 / self.requests_per_busy).round() as usize).clamp(1, self.requests as usize);
        let idle = self.idle_lengths(periods - 1, &mut random)?;
        let sizes = self.period_sizes(periods, &mut random);
        let mut service: Vec<f64> = (0..self.requests).map(|_| Exp1.sample(&mut random)).collect();
        let scale = self.service.0 as f64 * self.requests as f64 / service.iter().sum::<f64>();
        service.iter_mut().for_each(|time| *time *= scale);

        let places = (self.capacity.0.saturating_sub(u64::from(self.length)) >> 12).max(1);
        let mut columns = Columns::default();
        columns.volume_id("synthetic_0");
        let mut services = service.into_iter();
        let mut free_at = 0u64;
        let mut last: Option<(Op, u64)> = None;
        for (period, &(size, one_file)) in sizes.iter().enumerate() {
            let mut arrival = free_at + period.checked_sub(1).map_or(0, |before| idle[before]);
            let mut begin = arrival;
            for request in 0..size {
                let time = services.next().map_or(1, |time| (time.round() as u64).max(1));
                let sequential = if one_file && request > 0 { 1.0 } else { self.sequential };
                let goes_on = last.filter(|(_, end)| sequential > 0.0 && *end >> 12 < places);
                let (op, offset) = match goes_on.filter(|_| random.random_bool(sequential)) {
                    Some((op, end)) => (op, Bytes(end)),
                    None => {
                        let drawn = last.is_none_or(|_| random.random_bool(1.0 / self.phase));
                        let op = match last {
                            Some((op, _)) if !drawn => op,
                            _ if random.random_bool(self.read_share) => Op::Read,
                            _ => Op::Write,
                        };
                        (op, Bytes(random.random_range(0..places) << 12))
                    }
                };
                last = Some((op, offset.0 + u64::from(self.length)));
                free_at = begin + time;
                let (queued, response) = (Some(Nanos(begin - arrival)), Some(Nanos(free_at - arrival)));
                let arrival_time = Nanos(arrival);
                columns.push(Request {
                    arrival: arrival_time,
                    offset,
                    length: self.length,
                    op,
                    queued,
                    response,
                    volume: 0,
                });
                // The next one of the period comes with this one, or while it is served.
                if !self.together {
                    arrival = begin + random.random_range(0..time);
                }
                begin = free_at;
            }
        }
        let provenance = Provenance { format: "synthetic", resolution: Nanos(1), ..Provenance::default() };
        Ok(Trace::from_columns(provenance, columns))
    }

    fn check(&self) -> Result<(), SynthError> {
        let check = |what, value: f64, right: bool, expected| match right {
            true => Ok(()),
            false => Err(SynthError::Senseless { what, value, expected }),
        };
        check("a number of requests", self.requests as f64, self.requests > 0, "at least 1")?;
        most_requests(self.requests as f64)?;
        check("a mean idle length", self.idle_mean.0 as f64, self.idle_mean.0 > 0, "more than zero")?;
        check("a coefficient of variation", self.idle_cov, (0.0..=1e4).contains(&self.idle_cov), "0 to 10,000")?;
        let shares = self.among.iter().map(|kind| kind.share).sum::<f64>();
        let within = self.among.iter().all(|kind| (0.0..1.0).contains(&kind.share) && (0.0..=1e4).contains(&kind.cov));
        check(
            "kinds of intervals, their shares",
            shares,
            within && shares < 1.0,
            "below 1 in all, and coefficients of 0 to 10,000",
        )?;
        check("a burstiness", self.burstiness, (-1.0..1.0).contains(&self.burstiness), "-1 to below 1")?;
        let per_busy = self.requests_per_busy;
        check("requests per busy period", per_busy, (1.0..=1e9).contains(&per_busy), "at least 1")?;
        let Files { share, requests } = self.files;
        let fits = (0.0..1.0).contains(&share)
            && (requests == 0.0 || requests >= 1.0)
            && share * requests <= per_busy - 1.0 + share;
        check("requests of files", requests, fits, "at least 1, and no more in all than there are")?;
        check("a mean service time", self.service.0 as f64, self.service.0 > 0, "more than zero")?;
        let (capacity, length) = (self.capacity.0, u64::from(self.length));
        check("a capacity in bytes", capacity as f64, capacity >= length, "at least the size of a request")?;
        let share = |share| (0.0..=1.0).contains(&share);
        check("a share of reads", self.read_share, share(self.read_share), "0 to 1")?;
        check("a share of sequential requests", self.sequential, share(self.sequential), "0 to 1")?;
        check("runs in a phase", self.phase, (1.0..=1e9).contains(&self.phase), "at least 1")?;
        let periods = self.requests as f64 / per_busy + 1.0;
        let idle = periods * (self.idle_mean.0 as f64 + self.tick.0 as f64);
        let days = (idle + self.requests as f64 * (self.service.0 as f64 + 1.0)) / 86.4e12;
        check("a number of days in all", days, days <= LONGEST_DAYS, "50,000 at most")
    }

    /// Lengths of the idle intervals in their order.
    fn idle_lengths(&self, count: usize, random: &mut impl Rng) -> Result<Vec<u64>, SynthError> {
        let mut lengths = Vec::with_capacity(count);
        for kind in self.among {
            let of_kind = (kind.share * count as f64).round() as usize;
            lengths.extend(drawn(of_kind, kind.mean.0 as f64, kind.cov, random)?);
        }
        let (mean, rest) = (self.idle_mean.0 as f64, count.saturating_sub(lengths.len()) as f64);
        let rest_mean = (mean * count as f64 - lengths.iter().sum::<f64>()) / rest;
        let squares = mean * mean * (1.0 + self.idle_cov * self.idle_cov) * count as f64;
        let rest_squares = (squares - lengths.iter().map(|length| length * length).sum::<f64>()) / rest;
        let variance = rest_squares - rest_mean * rest_mean;
        let kinds = !lengths.is_empty();
        if kinds && !(rest_mean > 0.0 && variance >= 0.0) {
            let expected = "what the kinds of intervals among them leave room for";
            return Err(SynthError::Senseless { what: "a coefficient of variation", value: self.idle_cov, expected });
        }
        let (rest_mean, rest_cov) =
            if kinds { (rest_mean, variance.sqrt() / rest_mean) } else { (mean, self.idle_cov) };
        lengths.extend(drawn(rest as usize, rest_mean, rest_cov, random)?);
        let tick = self.tick.0.max(1);
        let ticks = |length: f64| ((length / tick as f64).round() as u64).max(1) * tick;
        Ok(self.ordered(lengths.into_iter().map(ticks).collect(), random))
    }

    /// Puts lengths in an order in which those longer than the mean come after each other as often as they should: in that of a normal
    /// autoregressive series, whose coefficient is found by halving.
    fn ordered(&self, mut lengths: Vec<u64>, random: &mut impl Rng) -> Vec<u64> {
        let short = lengths.iter().filter(|&&length| length <= self.idle_mean.0).count();
        if self.burstiness == 0.0 || short == 0 || short == lengths.len() {
            lengths.shuffle(random);
            return lengths;
        }
        let noise: Vec<f64> = (0..lengths.len()).map(|_| StandardNormal.sample(random)).collect();
        let (mut low, mut high) = (-1.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = (low + high) / 2.0;
            if long_after_long(&series(&noise, middle), short) < self.burstiness { low = middle } else { high = middle }
        }
        let series = series(&noise, high);
        let mut places: Vec<usize> = (0..lengths.len()).collect();
        places.sort_unstable_by(|&a, &b| series[a].total_cmp(&series[b]));
        lengths.sort_unstable();
        let mut ordered = vec![0; lengths.len()];
        places.into_iter().zip(lengths).for_each(|(place, length)| ordered[place] = length);
        ordered
    }

    /// Requests of each busy period, and whether they are of one file. There are no more periods than requests.
    fn period_sizes(&self, periods: usize, random: &mut impl Rng) -> Vec<(u64, bool)> {
        let Files { share, requests } = self.files;
        let rest = (self.requests_per_busy - share * requests) / (1.0 - share);
        let more = |mean: f64| Geometric::new((1.0 / mean).min(1.0)).expect("a share of one");
        let (long, short) = (more(requests.max(1.0)), more(rest.max(1.0)));
        let mut sizes: Vec<(u64, bool)> = (0..periods)
            .map(|_| {
                let is_long = share > 0.0 && random.random_bool(share);
                (1 + if is_long { long.sample(random) } else { short.sample(random) }, is_long)
            })
            .collect();
        let mut sum: u64 = sizes.iter().map(|size| size.0).sum();
        while sum != self.requests {
            let size = &mut sizes[random.random_range(0..periods)].0;
            if sum < self.requests {
                *size += 1;
                sum += 1;
            } else if *size > 1 {
                *size -= 1;
                sum -= 1;
            }
        }
        sizes
    }
}

/// So many lengths, whose mean and coefficient of variation are these.
fn drawn(count: usize, mean: f64, cov: f64, random: &mut impl Rng) -> Result<Vec<f64>, SynthError> {
    if count == 0 || cov == 0.0 {
        return Ok(vec![mean; count]);
    }
    let mut logs: Vec<f64> = if cov <= 1.0 {
        let gamma = Gamma::new(1.0 / (cov * cov), 1.0).expect("a positive shape");
        (0..count).map(|_| f64::ln(gamma.sample(random).max(f64::MIN_POSITIVE))).collect()
    } else {
        let sigma = (1.0 + cov * cov).ln().sqrt();
        let normal = LogNormal::new(0.0, sigma).expect("a positive deviation");
        (0..count).map(|_| f64::ln(normal.sample(random))).collect()
    };
    // A sample of a long-tailed distribution varies less or more than the distribution: a power of it is just right.
    let (mut low, mut high) = (0.0, 64.0);
    if coefficient(&logs, high) < cov {
        return Err(SynthError::TooFew { intervals: count, cov });
    }
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if coefficient(&logs, middle) < cov { low = middle } else { high = middle }
    }
    let longest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    logs.iter_mut().for_each(|log| *log = ((*log - longest) * high).exp());
    let scale = mean * count as f64 / logs.iter().sum::<f64>();
    logs.iter_mut().for_each(|length| *length *= scale);
    Ok(logs)
}

/// Standard deviation over mean of the exponentials of `logs` times `power`.
fn coefficient(logs: &[f64], power: f64) -> f64 {
    let longest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut sum, mut squares) = (0.0, 0.0);
    for log in logs {
        let length = ((log - longest) * power).exp();
        sum += length;
        squares += length * length;
    }
    let (mean, count) = (sum / logs.len() as f64, logs.len() as f64);
    (squares / count / (mean * mean) - 1.0).max(0.0).sqrt()
}

/// A stationary series with unit variance: each value is `coefficient` times the one before and what is new.
fn series(noise: &[f64], coefficient: f64) -> Vec<f64> {
    let new = (1.0 - coefficient * coefficient).sqrt();
    let mut last = None;
    let next = |noise: &f64| {
        let value = last.map_or(*noise, |last: f64| coefficient * last + new * noise);
        last = Some(value);
        value
    };
    noise.iter().map(next).collect()
}

/// Autocorrelation at lag 1 of being above all but the `short` smallest.
fn long_after_long(series: &[f64], short: usize) -> f64 {
    let mut sorted = series.to_vec();
    let border = *sorted.select_nth_unstable_by(short - 1, f64::total_cmp).1;
    let both = series.windows(2).filter(|pair| pair[0] > border && pair[1] > border).count();
    let share = 1.0 - short as f64 / series.len() as f64;
    (both as f64 / (series.len() - 1) as f64 - share * share) / (share * (1.0 - share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskModel;
    use crate::idle::{Idleness, Statistics, burstiness};

    fn shape(idle_cov: f64, burstiness: f64) -> Shape {
        Shape {
            requests: 40_000,
            idle_mean: Nanos::from_millis(90),
            idle_cov,
            among: [IdleKind::default(); 2],
            burstiness,
            requests_per_busy: 1.8,
            files: Files::default(),
            together: false,
            tick: Nanos::ZERO,
            service: Nanos::from_millis(10),
            read_share: 0.7,
            sequential: 0.0,
            phase: 1.0,
            length: 8192,
            capacity: Bytes(40_000_000_000),
        }
    }

    #[test]
    fn kinds_of_intervals_and_files_change_no_mean() {
        let kind = |share, ms, cov| IdleKind { share, mean: Nanos::from_millis(ms), cov };
        let files = Files { share: 0.004, requests: 70.0 };
        for among in [[kind(0.3, 2, 1.0), IdleKind::default()], [kind(0.1, 300, 0.1), kind(0.0004, 10_000, 0.5)]] {
            let shape = Shape { among, files, ..shape(4.0, 0.0) };
            let trace = shape.trace(5).unwrap();
            let disks = Idleness::of_trace(&trace, &DiskModel::ultrastar_15k450()).unwrap();
            let numbers = Statistics::of(&disks);
            assert!((numbers.idle_mean_s.unwrap() / 0.09 - 1.0).abs() < 1e-6 && trace.len() == 40_000, "{numbers:?}");
            assert!((numbers.idle_cov.unwrap() / 4.0 - 1.0).abs() < 1e-3, "{numbers:?}");
            // As many of a length as there are to be, and busy periods of one file, whose requests are behind each other.
            let lengths = disks[0].intervals.iter().map(|interval| interval.length);
            let short = lengths.filter(|length| *length < Nanos::from_millis(4)).count() as f64;
            let least = if among[0].share == 0.3 { 0.25 } else { 0.0 };
            assert!(short / disks[0].intervals.len() as f64 >= least, "{short}");
            let longest = disks[0].intervals.iter().map(|interval| interval.followers).max().unwrap();
            assert!(longest > 40, "{longest}");
        }
        let wrong = |shape: Shape| shape.trace(1).unwrap_err().to_string();
        let too_long = Shape { among: [kind(0.9, 200, 0.0), IdleKind::default()], ..shape(1.0, 0.0) };
        assert!(wrong(too_long).contains("leave room for"));
        assert!(
            wrong(Shape { files: Files { share: 0.5, requests: 9.0 }, ..shape(1.0, 0.0) }).contains("no more in all")
        );
        let all = Shape { among: [kind(0.6, 1, 0.0), kind(0.5, 1, 0.0)], ..shape(1.0, 0.0) };
        assert!(wrong(all).contains("below 1 in all"));
    }

    #[test]
    fn the_trace_has_the_statistics_of_its_shape() {
        for (cov, bursty) in [(0.0, 0.0), (0.98, 0.0), (1.0, 0.3), (6.2, 0.0), (8.5, 0.5), (30.0, 0.0)] {
            let trace = shape(cov, bursty).trace(7).unwrap();
            let disks = Idleness::of_trace(&trace, &DiskModel::ultrastar_15k450()).unwrap();
            let numbers = Statistics::of(&disks);
            let close = |what: &str, value: f64, expected: f64, tolerance: f64| {
                assert!((value - expected).abs() <= tolerance, "{what} {value} for {expected}, cov {cov}");
            };
            close("mean", numbers.idle_mean_s.unwrap(), 0.09, 1e-6);
            close("cov", numbers.idle_cov.unwrap(), cov, 1e-3);
            let per_busy = numbers.requests as f64 / (numbers.idle_intervals + 1) as f64;
            close("requests per busy period", per_busy, 1.8, 1e-3);
            let busy = numbers.utilisation.unwrap() * numbers.span_s;
            close("service", busy / numbers.requests as f64, 0.01, 1e-6);
            if cov > 0.0 {
                close("burstiness", burstiness(&disks[0]).unwrap(), bursty, 0.01);
            }
        }
    }

    #[test]
    fn sequential_requests_go_on_where_the_last_one_ended() {
        let trace = Shape { sequential: 0.4, read_share: 0.3, ..shape(1.0, 0.0) }.trace(3).unwrap();
        let requests: Vec<_> = trace.requests().collect();
        let goes_on = |pair: &[Request]| pair[1].offset.0 == pair[0].offset.0 + u64::from(pair[0].length);
        let share = |count: usize| count as f64 / requests.len() as f64;
        let runs = requests.windows(2).filter(|pair| goes_on(pair));
        assert!(runs.clone().all(|pair| pair[0].op == pair[1].op));
        assert!((share(runs.count()) - 0.4).abs() < 0.01);
        let reads = requests.iter().filter(|request| request.op == Op::Read).count();
        assert!((share(reads) - 0.3).abs() < 0.02, "{reads}");
        // A run is 1 / 0.6 requests, a phase of WRITEs 20 / 0.3 runs, as READs are drawn with a share of 0.3.
        let phased = Shape { sequential: 0.4, read_share: 0.3, phase: 20.0, ..shape(1.0, 0.0) }.trace(3).unwrap();
        let ops: Vec<Op> = phased.requests().map(|request| request.op).collect();
        let phases = ops.chunk_by(|a, b| a == b).filter(|phase| phase[0] == Op::Write).count();
        let writes = ops.iter().filter(|op| **op == Op::Write).count();
        let mean = writes as f64 / phases as f64;
        assert!((mean / (20.0 / 0.3 / 0.6) - 1.0).abs() < 0.15, "{mean}");
    }

    #[test]
    fn a_seed_gives_the_same_trace_again_and_another_another() {
        let trace = |seed| shape(2.0, 0.2).trace(seed).unwrap().requests().collect::<Vec<_>>();
        assert_eq!(trace(1), trace(1));
        assert_ne!(trace(1), trace(2));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |shape: Shape| shape.trace(1).unwrap_err().to_string();
        assert!(error(Shape { requests: 0, ..shape(1.0, 0.0) }).contains("at least 1"));
        let endless = Nanos(u64::MAX);
        for long in [
            Shape { idle_mean: endless, ..shape(1.0, 0.0) },
            Shape { service: endless, ..shape(1.0, 0.0) },
            Shape { tick: endless, ..shape(1.0, 0.0) },
        ] {
            assert!(error(long).contains("days in all"));
        }
        assert!(error(Shape { idle_cov: f64::NAN, ..shape(1.0, 0.0) }).contains("0 to 10,000"));
        assert!(error(Shape { requests: 10, ..shape(30.0, 0.0) }).contains("ask for more requests"));
    }
}
