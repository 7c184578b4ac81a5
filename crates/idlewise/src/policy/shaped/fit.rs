//! The best steps for a price of delay, by dynamic programming over the idle lengths seen.
//!
//! Let n(e) be the number of intervals longer than e. A request of size s that takes the time v and starts at the elapsed idle time e
//! is issued in n(e) intervals, and delays the foreground of those that end before e + v: by e + v - L each, times the requests
//! of the busy period behind. In each cell of a logarithmic grid the choice is to wait, or to issue requests of one size until
//! the next cell; from the last cell back the one is taken that has the most bytes less the price times the delay, here and
//! behind. What a delay carries on to later busy periods is not counted; who fits for a goal must simulate, and ask again.

use super::{Shaped, Step, Steps};
use crate::disk::{DiskModel, Timing};
use crate::idle::{Idleness, Interval};
use crate::{Bytes, Nanos, TotalTime};

/// Where fewer intervals than this end in a cell, where exactly they end is mostly luck: their delay is taken to be that of
/// ends at any moment of a request, the more so the fewer they are.
const LUCK: f64 = 100.0;
/// Cells in which more requests fit are summed as integrals.
const MOST_TERMS: u64 = 4;
/// Cells in which fewer intervals end are joined to the next: of so few the past says nothing of the future.
const FEWEST: usize = 20;
/// Places in a cell at which a request that began before it may end.
const PLACES: usize = 4;

/// Idle lengths, ready to be asked for the best steps at any price.
pub struct Fit {
    sizes: Vec<(Bytes, Timing)>,
    classes: Vec<Class>,
    border: Nanos,
}

/// What the steps of a price are expected to do on the intervals that they were fitted to.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The policy.
    pub policy: Shaped,
    /// Bytes verified.
    pub bytes: f64,
    /// Sum of the delays of all requests, in nanoseconds, without what carries on to later busy periods.
    pub delay: f64,
}

/// The intervals with the same context.
struct Class {
    /// Begins of the cells; the first is zero, the last has no end.
    grid: Vec<u64>,
    /// The places in all cells, [`PLACES`] each, of which the first is the begin.
    places: Vec<u64>,
    /// For each place and size what is done from there to the end of the cell.
    cells: Vec<Cell>,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    bytes: f64,
    delay: f64,
    /// When its last request ends.
    end: f64,
}

impl Fit {
    /// Fits to the intervals of all disks together: sizes that take no longer than `longest`, `per_decade` cells each tenfold
    /// time. With `context`, intervals after long ones (longer than the mean) are fitted apart from the others.
    pub fn new(disks: &[Idleness], model: &DiskModel, longest: Nanos, per_decade: u32, context: bool) -> Self {
        let sizes: Vec<_> = model.sizes(longest).into_iter().filter(|(_, timing)| timing.time > Nanos::ZERO).collect();
        let count: usize = disks.iter().map(|disk| disk.intervals.len()).sum();
        let total: TotalTime = disks.iter().map(Idleness::idle).sum();
        let border = if context { total.mean(count as u64) } else { Nanos(u64::MAX) };
        let mut classes = [Vec::new(), Vec::new()];
        for disk in disks {
            let mut long = 0;
            for interval in &disk.intervals {
                classes[long].push(*interval);
                long = usize::from(interval.length > border);
            }
        }
        let classes = classes.into_iter().filter(|intervals| context || !intervals.is_empty());
        let classes = classes.map(|intervals| Class::new(intervals, &sizes, per_decade)).collect();
        Self { sizes, classes, border }
    }

    /// The best steps where a nanosecond of one request's delay costs `price` bytes.
    pub fn at_price(&self, price: f64) -> Fitted {
        let (mut bytes, mut delay) = (0.0, 0.0);
        let mut steps: Vec<Steps> = Vec::new();
        for class in &self.classes {
            let (best, own) = class.best(&self.sizes, price);
            (bytes, delay) = (bytes + own.bytes, delay + own.delay);
            steps.push(best);
        }
        let after_short = steps.first().cloned().unwrap_or_default();
        let after_long = steps.pop().unwrap_or_default();
        Fitted { policy: Shaped::with_context(after_short, after_long, self.border), bytes, delay }
    }
}

impl Class {
    fn new(mut intervals: Vec<Interval>, sizes: &[(Bytes, Timing)], per_decade: u32) -> Self {
        intervals.sort_unstable_by_key(|interval| interval.length);
        let longer = Longer::new(&intervals);
        let shortest = sizes.first().map_or(1, |(_, timing)| (timing.time.0 / 16).max(1)) as f64;
        let begin = |k: u32| (shortest * 10f64.powf(f64::from(k) / f64::from(per_decade))) as u64;
        let ended = |by: u64| intervals.partition_point(|interval| interval.length.0 <= by);
        let (mut grid, mut before, mut last) = (vec![0], 0, 0);
        for at in (0..).map(begin).take_while(|&at| ended(at) + FEWEST <= intervals.len()) {
            // Where so many end at once, as at a timer's tick, what comes before stands for itself.
            if ended(at) >= ended(last) + FEWEST && grid[grid.len() - 1] < last {
                grid.push(last);
                before = ended(last);
            }
            if ended(at) >= before + FEWEST {
                before = ended(at);
                grid.push(at);
            }
            last = at;
        }
        let end = intervals.last().map_or(0, |interval| interval.length.0).max(grid[grid.len() - 1] + 1);
        let bounds: Vec<(u64, u64)> = grid.iter().copied().zip(grid[1..].iter().copied().chain([end])).collect();
        let within = |&(from, to): &(u64, u64)| {
            (0..PLACES).map(move |place| (from + (to - from) / PLACES as u64 * place as u64, to))
        };
        let places: Vec<(u64, u64)> = bounds.iter().flat_map(within).collect();
        let cell = |&(from, to): &(u64, u64)| {
            let longer = &longer;
            sizes.iter().map(move |&(size, timing)| longer.cell(from, to, size, timing))
        };
        let cells = places.iter().flat_map(cell).collect();
        Self { grid, places: places.into_iter().map(|(from, _)| from).collect(), cells }
    }

    /// From the last cell back.
    fn best(&self, sizes: &[(Bytes, Timing)], price: f64) -> (Steps, Cell) {
        let count = self.grid.len();
        // What is done from each place on, and the size issued in each cell.
        let mut onward = vec![Cell::default(); self.places.len() + 1];
        let mut choice = vec![None; count];
        for k in (0..count).rev() {
            let begin = k * PLACES;
            let behind = onward[begin + PLACES];
            let from = |place: usize, index: usize, onward: &[Cell]| {
                let cell = self.cells[place * sizes.len() + index];
                let behind = self.behind(cell.end, begin + PLACES, onward);
                Cell { bytes: cell.bytes + behind.bytes, delay: cell.delay + behind.delay, end: 0.0 }
            };
            let value = |cell: &Cell| cell.bytes - price * cell.delay;
            let mut best = behind;
            for index in 0..sizes.len() {
                let issued = from(begin, index, &onward);
                if value(&issued) > value(&best) {
                    (best, choice[k]) = (issued, Some(index));
                }
            }
            for place in begin..begin + PLACES {
                onward[place] = choice[k].map_or(behind, |index| from(place, index, &onward));
            }
        }
        let step = |(from, index): (&u64, &Option<usize>)| {
            let chosen = index.map(|index| sizes[index]);
            let service = chosen.map_or(Nanos::ZERO, |(_, timing)| timing.time);
            Step { from: Nanos(*from), size: chosen.map(|(size, _)| size), service }
        };
        let mut steps: Steps = self.grid.iter().zip(&choice).map(step).collect();
        steps.dedup_by_key(|step| step.size);
        (steps, onward[0])
    }

    /// What is done from some time on, at or behind place `first`: between two places in proportion.
    fn behind(&self, from: f64, first: usize, onward: &[Cell]) -> Cell {
        let next = first + self.places[first..].partition_point(|&place| (place as f64) <= from);
        if next == first || next == self.places.len() {
            // Just before the cell behind; or in the last cell, in which hardly an interval is left.
            return onward[next.min(self.places.len())];
        }
        let (low, high) = (self.places[next - 1] as f64, self.places[next] as f64);
        let part = (from - low) / (high - low);
        let mix = |a: f64, b: f64| a + (b - a) * part;
        let (a, b) = (onward[next - 1], onward[next]);
        Cell { bytes: mix(a.bytes, b.bytes), delay: mix(a.delay, b.delay), end: 0.0 }
    }
}

/// Sums over the intervals longer than some time.
struct Longer<'a> {
    sorted: &'a [Interval],
    /// Sums from each interval on: of lengths, of followers, and of lengths times followers.
    sums: Vec<[f64; 3]>,
}

impl<'a> Longer<'a> {
    fn new(sorted: &'a [Interval]) -> Self {
        let mut sums = vec![[0.0; 3]; sorted.len() + 1];
        for (index, interval) in sorted.iter().enumerate().rev() {
            let (length, followers) = (interval.length.0 as f64, interval.followers as f64);
            let [lengths, requests, products] = sums[index + 1];
            sums[index] = [lengths + length, requests + followers, products + length * followers];
        }
        Self { sorted, sums }
    }

    fn at(&self, elapsed: u64) -> (f64, [f64; 3]) {
        let first = self.sorted.partition_point(|interval| interval.length.0 <= elapsed);
        ((self.sorted.len() - first) as f64, self.sums[first])
    }

    /// Requests of one size from `from` until one ends at `to` or behind it.
    fn cell(&self, from: u64, to: u64, size: Bytes, timing: Timing) -> Cell {
        let (size, v, part) = (size.0 as f64, timing.time.0, timing.interference.part());
        let terms = (to.saturating_sub(from)).div_ceil(v).max(1);
        let end = from + terms * v;
        let (first, sums) = self.at(from);
        let (last, behind) = self.at(end);
        let at_any_moment = part * v as f64 / 2.0 * (sums[1] - behind[1]);
        if terms > MOST_TERMS {
            let elapsed = (sums[0] - behind[0]) - from as f64 * first + end as f64 * last;
            let bytes = size * (elapsed / v as f64 + (first - last) / 2.0);
            return Cell { bytes, delay: at_any_moment, end: end as f64 };
        }
        let (mut count, mut sums) = (first, sums);
        let (mut bytes, mut delay) = (0.0, 0.0);
        for k in 1..=terms {
            let until = from + k * v;
            let (next, behind) = self.at(until);
            bytes += size * count;
            delay += part * (until as f64 * (sums[1] - behind[1]) - (sums[2] - behind[2]));
            (count, sums) = (next, behind);
        }
        let ended = first - last;
        let delay = (ended * delay + LUCK * at_any_moment) / (ended + LUCK);
        Cell { bytes, delay, end: end as f64 }
    }
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use rand_distr::{Distribution, LogNormal};

    use super::*;
    use crate::policy::Waiting;
    use crate::simulate::simulate;

    const MS: u64 = 1_000_000;

    fn disk(lengths: impl Iterator<Item = u64>) -> Vec<Idleness> {
        let interval = |length, followers| Interval { length: Nanos(length), followers, busy_before: Nanos(MS) };
        let intervals: Vec<_> = lengths.map(|length| interval(length, 2)).collect();
        vec![Idleness { requests: 2 * intervals.len() as u64, intervals, ..Idleness::default() }]
    }

    fn long_tailed() -> Vec<Idleness> {
        let mut random: rand_pcg::Pcg64 = rand::SeedableRng::seed_from_u64(11);
        let lengths: LogNormal<f64> = LogNormal::new(19.5, 1.2).unwrap();
        // Hardly one is so short that a delay carries on.
        disk((0..30_000).map(move |_| lengths.sample(&mut random) as u64 + 1))
    }

    #[test]
    fn what_is_expected_is_what_happens_where_little_carries_on() {
        let (disks, model) = (long_tailed(), DiskModel::ultrastar_15k450());
        for context in [false, true] {
            let fit = Fit::new(&disks, &model, Nanos(50 * MS), 16, context);
            for price in [0.1, 1.0, 4.0] {
                let fitted = fit.at_price(price);
                let outcome = simulate(&disks, &model, |_| Box::new(fitted.policy.clone()));
                let bytes = outcome.scrubbed.0 as f64 / fitted.bytes;
                let delay = outcome.delay_sum.0 as f64 / fitted.delay;
                assert!((bytes - 1.0).abs() < 0.06 && (delay - 1.0).abs() < 0.1, "{price}: {bytes} {delay}");
            }
        }
    }

    /// Idle lengths at multiples of a tick: it works between the ticks, and waits them out.
    #[test]
    fn works_between_the_ticks_of_a_timer() {
        let tick = 15_625_000;
        let disks = disk((0..6_000u64).map(|k| tick * (1 + k % 11) + k % 17 * 1_000));
        let model = DiskModel::ultrastar_15k450();
        let fit = Fit::new(&disks, &model, Nanos(50 * MS), 64, false);
        let run = |policy: &Shaped| simulate(&disks, &model, |_| Box::new(policy.clone()));
        let fitted = fit.at_price(1.0);
        let shaped = run(&fitted.policy);
        let mut best = 0;
        for kib in (64..=1024).step_by(64).map(Bytes::from_kib) {
            for wait in (0..180 * MS).step_by(500_000).map(Nanos) {
                let waiting = Waiting { idle_wait: wait, request_size: kib };
                let outcome = simulate(&disks, &model, |_| Box::new(waiting));
                if outcome.delay_sum <= shaped.delay_sum {
                    best = best.max(outcome.scrubbed.0);
                }
            }
        }
        assert!(shaped.scrubbed.0 as f64 > 1.3 * best as f64, "{} {best}", shaped.scrubbed.0);
    }

    #[test]
    fn no_intervals_and_no_sizes_are_no_policy() {
        let model = DiskModel::ultrastar_15k450();
        let nothing = Fit::new(&[Idleness::default()], &model, Nanos(50 * MS), 16, true).at_price(1.0);
        assert_eq!((nothing.bytes, nothing.delay), (0.0, 0.0));
        let impossible = Fit::new(&long_tailed(), &model, Nanos(1), 16, false).at_price(1.0);
        assert_eq!(impossible.bytes, 0.0);
    }
}
