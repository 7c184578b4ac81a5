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
    /// How much likelier an interval longer than the mean is after another such one: see
    /// [`crate::idle::burstiness`]. Zero for independent intervals.
    pub burstiness: f64,
    /// Mean requests in a busy period, at least 1; geometrically distributed.
    pub requests_per_busy: f64,
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
        for (period, &size) in sizes.iter().enumerate() {
            let mut arrival = free_at + period.checked_sub(1).map_or(0, |before| idle[before]);
            let mut begin = arrival;
            for _ in 0..size {
                let time = services.next().map_or(1, |time| (time.round() as u64).max(1));
                let goes_on = last.filter(|(_, end)| self.sequential > 0.0 && *end >> 12 < places);
                let (op, offset) = match goes_on.filter(|_| random.random_bool(self.sequential)) {
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
        check("a burstiness", self.burstiness, (-1.0..1.0).contains(&self.burstiness), "-1 to below 1")?;
        let per_busy = self.requests_per_busy;
        check("requests per busy period", per_busy, (1.0..=1e9).contains(&per_busy), "at least 1")?;
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
        let cov = self.idle_cov;
        if count == 0 || cov == 0.0 {
            return Ok(vec![self.idle_mean.0; count]);
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
        let scale = self.idle_mean.0 as f64 * count as f64 / logs.iter().sum::<f64>();
        let tick = self.tick.0.max(1);
        let ticks = |length: f64| ((length * scale / tick as f64).round() as u64).max(1) * tick;
        let lengths = logs.into_iter().map(ticks).collect();
        Ok(self.ordered(lengths, random))
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

    /// Requests of each busy period, of which there are no more than requests.
    fn period_sizes(&self, periods: usize, random: &mut impl Rng) -> Vec<u64> {
        let more = Geometric::new((1.0 / self.requests_per_busy).min(1.0)).expect("a share of one");
        let mut sizes: Vec<u64> = (0..periods).map(|_| 1 + more.sample(random)).collect();
        let mut sum: u64 = sizes.iter().sum();
        while sum != self.requests {
            let size = &mut sizes[random.random_range(0..periods)];
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
            burstiness,
            requests_per_busy: 1.8,
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
