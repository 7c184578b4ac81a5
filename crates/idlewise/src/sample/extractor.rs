//! From requests to the intervals of a trace, in one pass and flat memory.

use crate::trace::{Columns, Op};
use crate::{Nanos, TotalTime};

use super::entropy::{Entropy, LEVELS};
use super::served::{Disks, Served};
use super::travel::{RANDOM_BEYOND, Travel};
use super::working_set::WorkingSet;

/// What is known of the requests that arrive in one interval, at least one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceInterval {
    /// Its number, from 0 on: it begins after so many times the length of an interval.
    pub index: u64,
    /// Requests.
    pub requests: u64,
    /// Reads among them.
    pub reads: u64,
    /// Requests whose travel distance is over 128 KiB.
    pub random: u64,
    /// Sum of their sizes in bytes.
    pub traffic: u64,
    /// Different sectors of 512 bytes, also those touched in part.
    pub sectors: u64,
    /// Sum of travel distances in bytes.
    pub travel: u128,
    /// Entropy of first sectors, in bits.
    pub address_entropy: f64,
    /// Entropy of arrival times, in bits.
    pub arrival_entropy: f64,
    /// How long its requests would take on disks that are made up.
    pub served: Served,
    /// Requests whose response time is known.
    pub responses: u64,
    /// Sum of their response times.
    pub response_sum: TotalTime,
}

impl TraceInterval {
    /// The one with this number, of a trace's intervals in order.
    pub fn find(intervals: &[Self], index: u64) -> Option<&Self> {
        intervals.binary_search_by_key(&index, |interval| interval.index).ok().map(|place| &intervals[place])
    }

    /// Mean response time in seconds, if one is known.
    pub fn mean_response(&self) -> Option<f64> {
        (self.responses > 0).then(|| self.response_sum.0 as f64 / self.responses as f64 / 1e9)
    }
}

/// Cuts requests that come in order of arrival into intervals, which begin with the trace's clock. Those without a request
/// are none. Each volume is its own disk: its places are near to no other volume's, and its queue is its own.
#[derive(Debug)]
pub struct Extractor {
    length: Nanos,
    intervals: Vec<TraceInterval>,
    open: Option<TraceInterval>,
    /// Where the open interval ends.
    end: u128,
    /// Finest buckets of arrival times and the requests in each.
    arrivals: Vec<(u64, u64)>,
    volumes: Vec<(WorkingSet, Travel, Disks)>,
    /// Volumes with requests in the open interval.
    touched: Vec<usize>,
}

impl Extractor {
    /// For intervals of this length; panics if it is zero.
    pub fn new(length: Nanos) -> Self {
        assert!(length > Nanos::ZERO, "an interval is longer than zero");
        Self {
            length,
            intervals: Vec::new(),
            open: None,
            end: 0,
            arrivals: Vec::new(),
            volumes: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// Takes the next requests.
    pub fn requests(&mut self, requests: &Columns) {
        self.volumes.resize_with(self.volumes.len().max(requests.volumes.len()), Default::default);
        for request in requests.requests() {
            if self.open.is_none() || u128::from(request.arrival.0) >= self.end {
                self.close();
                let index = request.arrival.0 / self.length.0;
                self.end = (u128::from(index) + 1) * u128::from(self.length.0);
                self.open = Some(TraceInterval { index, ..TraceInterval::default() });
            }
            let interval = self.open.as_mut().expect("an interval is open");
            interval.requests += 1;
            interval.reads += u64::from(request.op == Op::Read);
            interval.traffic += u64::from(request.length);
            if let Some(response) = request.response {
                interval.responses += 1;
                interval.response_sum += response;
            }

            let since = request.arrival.0 - interval.index * self.length.0;
            let bucket = ((u128::from(since) << LEVELS) / u128::from(self.length.0)) as u64;
            match self.arrivals.last_mut() {
                Some(last) if last.0 == bucket => last.1 += 1,
                _ => self.arrivals.push((bucket, 1)),
            }

            let volume = usize::from(request.volume);
            let (places, travel, disks) = &mut self.volumes[volume];
            disks.serve(request.arrival, request.length, request.op, &mut interval.served);
            if places.is_empty() {
                self.touched.push(volume);
            }
            places.push(request.offset.0, request.length);
            let distance = travel.to(request.offset.0, request.length);
            interval.travel += u128::from(distance);
            interval.random += u64::from(distance > RANDOM_BEYOND);
        }
    }

    /// The intervals that have requests, in order.
    pub fn finish(mut self) -> Vec<TraceInterval> {
        self.close();
        self.intervals
    }

    fn close(&mut self) {
        let Some(mut interval) = self.open.take() else { return };
        let (mut arrivals, mut addresses) = (Entropy::default(), Entropy::default());
        arrivals.add(&mut self.arrivals);
        for volume in self.touched.drain(..) {
            let places = &mut self.volumes[volume].0;
            addresses.add(places.starts());
            interval.sectors += places.finish();
        }
        interval.arrival_entropy = arrivals.mean_bits();
        interval.address_entropy = addresses.mean_bits();
        self.intervals.push(interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;
    use crate::sample::{Rule, Settings, Way, sample};
    use crate::trace::Request;

    /// Requests of `(volume, arrival in ms, offset, length)`, all writes that take 2 ms.
    fn columns(rows: &[(u16, u64, u64, u32)]) -> Columns {
        let mut columns = Columns::default();
        for name in ["a", "b"] {
            columns.volume_id(name);
        }
        for &(volume, ms, offset, length) in rows {
            let (arrival, offset) = (Nanos::from_millis(ms), Bytes(offset));
            let response = Some(Nanos::from_millis(2));
            columns.push(Request { arrival, offset, length, volume, response, op: Op::Write, queued: None });
        }
        columns
    }

    fn intervals(batches: &[Columns]) -> Vec<TraceInterval> {
        let mut extractor = Extractor::new(Nanos::from_secs(10));
        batches.iter().for_each(|batch| extractor.requests(batch));
        extractor.finish()
    }

    #[test]
    fn an_interval_begins_on_the_grid_and_ends_before_the_next() {
        let rows = [(0, 0, 0, 4096), (0, 9_999, 4096, 4096), (0, 10_000, 0, 512), (0, 45_000, 1 << 20, 512)];
        let all = intervals(&[columns(&rows)]);
        assert_eq!(all.iter().map(|i| (i.index, i.requests)).collect::<Vec<_>>(), [(0, 2), (1, 1), (4, 1)]);
        assert_eq!((all[0].traffic, all[0].sectors, all[0].travel, all[0].random), (8192, 16, 0, 0));
        // Two requests in different halves, quarters, ...: one bit at each level.
        assert_eq!((all[0].arrival_entropy, all[1].arrival_entropy), (1.0, 0.0));
        // Sectors 0 and 8 share a bucket from the fifth level of 16 on.
        assert_eq!(all[0].address_entropy, 4.0 / 16.0);
        assert_eq!((all[2].travel, all[2].random), ((1 << 20) - 8192, 1));
        assert_eq!(all[2].mean_response(), Some(0.002));
        // Batches make no difference.
        assert_eq!(intervals(&[columns(&rows[..1]), columns(&rows[1..3]), columns(&rows[3..])]), all);
    }

    #[test]
    fn the_last_nanosecond_is_an_interval_of_its_own() {
        let mut columns = columns(&[]);
        columns.volume_id("d");
        for at in [0, u64::MAX, u64::MAX] {
            columns.push(Request { arrival: Nanos(at), response: Some(Nanos(1)), ..Request::default() });
        }
        let mut extractor = Extractor::new(Nanos(1));
        extractor.requests(&columns);
        let intervals = extractor.finish();
        assert_eq!(intervals.iter().map(|i| (i.index, i.requests)).collect::<Vec<_>>(), [(0, 1), (u64::MAX, 2)]);
        let features = "Cnt".parse().unwrap();
        let way = Way::Clusters { features, rule: Rule::Bic };
        let settings = Settings { interval: Nanos(1), way, seed: 1 };
        let outcome = sample(&intervals, &settings, &|_| ()).unwrap();
        assert_eq!((outcome.intervals, outcome.systematic[0].samples), (u64::MAX, 1));
    }

    #[test]
    fn volumes_are_disks_of_their_own() {
        let one = intervals(&[columns(&[(0, 1, 0, 4096), (0, 2, 1 << 40, 512), (0, 3, 4096, 4096), (0, 4, 0, 4096)])]);
        let two = intervals(&[columns(&[(0, 1, 0, 4096), (1, 2, 1 << 40, 512), (0, 3, 4096, 4096), (1, 4, 0, 4096)])]);
        assert_eq!((one[0].sectors, one[0].random), (17, 1));
        assert_eq!((two[0].sectors, two[0].random), (8 + 1 + 8 + 8, 1));
        assert_eq!(two[0].travel, (1 << 40) + 512);
        assert!(two[0].address_entropy > one[0].address_entropy);
    }

    #[test]
    fn no_request_is_no_interval() {
        assert_eq!(intervals(&[columns(&[])]), []);
    }
}
