//! Requests in, idle intervals out, one request at a time.

use super::{Idleness, Interval, Write};
use crate::{Bytes, Nanos};

const HOUR: Nanos = Nanos::from_secs(3600);

/// Builds the [`Idleness`] of one disk from its requests in order of arrival, in memory that grows with the intervals.
#[derive(Clone, Debug)]
pub struct IdlenessBuilder {
    disk: Idleness,
    busy_since: Nanos,
}

impl IdlenessBuilder {
    /// A disk without requests yet.
    pub fn new(volume: &str) -> Self {
        Self { disk: Idleness { volume: volume.into(), ..Idleness::default() }, busy_since: Nanos::ZERO }
    }

    /// Adds a request. Arrivals never go back.
    pub fn request(&mut self, arrival: Nanos, completion: Nanos) {
        self.requests(arrival, completion, 1, completion.since(arrival));
    }

    /// Adds requests between which the disk was never idle: when the first of them arrived and the last one completed, how many they
    /// are, and all their response times together.
    pub fn requests(&mut self, arrival: Nanos, completion: Nanos, count: u64, responses: Nanos) {
        let disk = &mut self.disk;
        if disk.requests == 0 {
            (disk.begin, disk.end, self.busy_since) = (arrival, arrival, arrival);
        }
        if arrival > disk.end {
            let (length, busy_before) = (arrival.since(disk.end), disk.end.since(self.busy_since));
            // To add to it afterwards would wait for its memory, which is not at hand yet.
            disk.intervals.push(Interval { length, followers: count, busy_before });
            self.busy_since = arrival;
        } else if let Some(current) = disk.intervals.last_mut() {
            current.followers += count;
        }
        disk.requests += count;
        let hour = arrival.0 / HOUR.0;
        match disk.requests_per_hour.last_mut() {
            Some((last, so_far)) if *last == hour => *so_far += count,
            _ => disk.requests_per_hour.push((hour, count)),
        }
        disk.end = disk.end.max(completion);
        disk.response_sum += responses;
    }

    /// Keeps the response time of the request added last.
    pub fn keep_response(&mut self, response: Nanos) {
        self.disk.responses.push(response);
    }

    /// Keeps that the request added last, which completed then, was a WRITE, and where.
    pub fn keep_write(&mut self, completed: Nanos, offset: Bytes) {
        let busy_period = u32::try_from(self.disk.intervals.len()).expect("under 4 billion idle intervals");
        self.disk.writes.push(Write { busy_period, completed, offset });
    }

    /// When the last busy period began.
    pub fn busy_since(&self) -> Nanos {
        self.busy_since
    }

    /// The intervals so far.
    pub fn so_far(&self) -> &Idleness {
        &self.disk
    }

    /// Forgets all but the last `count` intervals, and the requests before them.
    pub fn keep_last(&mut self, count: usize) {
        let intervals = &mut self.disk.intervals;
        intervals.drain(..intervals.len().saturating_sub(count));
        self.disk.requests = intervals.iter().map(|interval| interval.followers).sum();
        // The first interval left begins the span.
        let before_the_last: u64 = intervals.iter().map(|interval| interval.length.0 + interval.busy_before.0).sum();
        let busy_before = intervals.first().map_or(0, |interval| interval.busy_before.0);
        self.disk.begin = Nanos(self.busy_since.0 + busy_before - before_the_last);
    }

    /// The finished intervals.
    pub fn finish(self) -> Idleness {
        self.disk
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TotalTime;

    #[test]
    fn overlapping_requests_are_one_busy_period_and_touching_ones_too() {
        let mut builder = IdlenessBuilder::new("d");
        for (arrival, completion) in [(10, 40), (20, 30), (40, 50), (70, 70), (70, 80), (85, 85)] {
            builder.request(Nanos(arrival), Nanos(completion));
        }
        let disk = builder.finish();
        let interval =
            |length, followers, busy| Interval { length: Nanos(length), followers, busy_before: Nanos(busy) };
        assert_eq!(disk.intervals, [interval(20, 2, 40), interval(5, 1, 10)]);
        assert_eq!((disk.requests, disk.leading_requests()), (6, 3));
        assert_eq!((disk.span(), disk.idle(), disk.busy()), (Nanos(75), Nanos(25), Nanos(50)));
        assert_eq!(disk.response_sum, TotalTime(60));
    }

    #[test]
    fn the_last_intervals_keep_their_own_span() {
        let mut builder = IdlenessBuilder::new("d");
        for k in 0..10 {
            builder.request(Nanos(k * 100), Nanos(k * 100 + 30));
        }
        builder.keep_last(2);
        let disk = builder.finish();
        assert_eq!((disk.begin, disk.end, disk.requests), (Nanos(730), Nanos(930), 2));
        assert_eq!((disk.idle(), disk.busy()), (Nanos(140), Nanos(60)));
    }
}
