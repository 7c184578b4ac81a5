//! Requests over time, in a fixed number of bins that double their width when time goes on.

use crate::Nanos;
use crate::trace::Op;

/// Bins.
const BINS: usize = 512;
/// Their width at first: 1 ms.
const WIDTH: u64 = 1_000_000;

/// Reads and writes in each bin.
#[derive(Clone, Debug)]
pub struct Timeline {
    bins: Vec<[u64; 2]>,
    width: u64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { bins: Vec::new(), width: WIDTH }
    }
}

impl Timeline {
    /// Adds a request.
    pub fn add(&mut self, arrival: Nanos, op: Op) {
        while arrival.0 / self.width >= BINS as u64 {
            let joined = |pair: &[[u64; 2]]| pair.iter().fold([0; 2], |[a, b], [c, d]| [a + c, b + d]);
            self.bins = self.bins.chunks(2).map(joined).collect();
            self.width *= 2;
        }
        let bin = (arrival.0 / self.width) as usize;
        if bin >= self.bins.len() {
            self.bins.resize(bin + 1, [0; 2]);
        }
        self.bins[bin][usize::from(op == Op::Write)] += 1;
    }

    /// Memory that it takes.
    pub(super) fn memory(&self) -> u64 {
        (self.bins.capacity() * size_of::<[u64; 2]>()) as u64
    }

    /// When each bin begins, in seconds, with its reads and its writes a second.
    pub fn rates(&self) -> Vec<(f64, [f64; 2])> {
        let width_s = Nanos(self.width).as_secs_f64();
        let rate = |(at, counts): (usize, &[u64; 2])| (at as f64 * width_s, counts.map(|count| count as f64 / width_s));
        self.bins.iter().enumerate().map(rate).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_double_and_lose_nothing() {
        let mut timeline = Timeline::default();
        timeline.add(Nanos(0), Op::Read);
        timeline.add(Nanos::from_millis(3), Op::Write);
        assert_eq!(timeline.rates()[3], (0.003, [0.0, 1_000.0]));
        timeline.add(Nanos::from_millis(512), Op::Read);
        assert_eq!((timeline.width, timeline.bins[1], timeline.bins.len()), (2 * WIDTH, [0, 1], 257));
        timeline.add(Nanos(u64::MAX), Op::Read);
        assert_eq!(timeline.bins.iter().flatten().sum::<u64>(), 4);
        assert!(timeline.bins.len() <= BINS);
    }
}
