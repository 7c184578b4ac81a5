//! Two parts of a disk's time: one to learn from, one to test on.

use super::{Idleness, Write};
use crate::{Nanos, TotalTime};

impl Idleness {
    /// What came before and after `share` (0 to 1) of the span. The interval at the border belongs to neither; hourly counts
    /// stay with neither.
    pub fn split(&self, share: f64) -> (Self, Self) {
        let border = self.begin.0 + (self.span().0 as f64 * share) as u64;
        // End of the busy period before, and its requests.
        let (mut end, mut requests) = (self.begin.0, self.leading_requests());
        let mut at = self.intervals.len();
        for (index, interval) in self.intervals.iter().enumerate() {
            end += interval.busy_before.0;
            if end + interval.length.0 > border {
                at = index;
                break;
            }
            end += interval.length.0;
            requests += interval.followers;
        }
        let Some(gap) = self.intervals.get(at) else {
            let none = Self { begin: self.end, intervals: Vec::new(), requests: 0, ..Self::default() };
            return (self.clone(), Self { volume: self.volume.clone(), end: self.end, ..none });
        };
        let part = |begin, end, requests, intervals: &[_], responses: &[_], writes| Self {
            volume: self.volume.clone(),
            requests,
            begin: Nanos(begin),
            end: Nanos(end),
            origin: self.origin,
            // Without each response, the mean of all stands for both parts'.
            response_sum: TotalTime((self.response_sum * requests).0 / u128::from(self.requests.max(1))),
            responses_recorded: self.responses_recorded,
            requests_per_hour: Vec::new(),
            intervals: intervals.to_vec(),
            responses: responses.to_vec(),
            writes,
        };
        let responses = self.responses.split_at((requests as usize).min(self.responses.len()));
        let (before, after): (Vec<Write>, Vec<Write>) =
            self.writes.iter().partition(|write| write.busy_period as usize <= at);
        let moved = |write: Write| Write { busy_period: write.busy_period - at as u32 - 1, ..write };
        let after = after.into_iter().map(moved).collect();
        let first = part(self.begin.0, end, requests, &self.intervals[..at], responses.0, before);
        let (begin, rest) = (end + gap.length.0, self.requests - requests);
        let second = part(begin, self.end.0, rest, &self.intervals[at + 1..], responses.1, after);
        (first.with_own_responses(), second.with_own_responses())
    }

    /// So many parts of equal time.
    pub fn parts(&self, count: usize) -> Vec<Self> {
        let (mut parts, mut rest) = (Vec::new(), self.clone());
        for left in (2..=count).rev() {
            let (part, behind) = rest.split(1.0 / left as f64);
            parts.push(part);
            rest = behind;
        }
        parts.push(rest);
        parts
    }

    fn with_own_responses(mut self) -> Self {
        if !self.responses.is_empty() {
            self.response_sum = self.responses.iter().copied().sum();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::IdlenessBuilder;
    use super::*;

    #[test]
    fn nothing_but_the_border_is_lost() {
        let mut builder = IdlenessBuilder::new("d");
        for k in 0..100u64 {
            let (arrival, response) = (k * 100, 10 + k % 7);
            builder.request(Nanos(arrival), Nanos(arrival + response));
            builder.keep_response(Nanos(response));
            if k % 3 == 0 {
                builder.keep_write(Nanos(arrival + response), crate::Bytes(arrival));
            }
        }
        let disk = builder.finish();
        for share in [0.0, 0.3, 0.5, 0.9999, 1.0] {
            let (first, second) = disk.split(share);
            assert_eq!(first.requests + second.requests, 100, "{share}");
            assert_eq!(first.response_sum + second.response_sum, disk.response_sum);
            assert_eq!(first.writes.len() + second.writes.len(), disk.writes.len());
            for part in [&first, &second].into_iter().filter(|part| part.requests > 0) {
                assert_eq!(part.leading_requests(), 1, "{share}");
                let busy: u64 = part.busy().0 + part.idle().0;
                assert_eq!(busy, part.span().0);
                assert!(part.writes.iter().all(|write| (part.begin..=part.end).contains(&write.completed)), "{share}");
            }
        }
        let parts = disk.parts(4);
        assert_eq!(parts.iter().map(|part| part.requests).collect::<Vec<_>>(), [25; 4]);
        let (first, second) = disk.split(0.5);
        assert_eq!((first.requests, second.requests), (50, 50));
    }
}
