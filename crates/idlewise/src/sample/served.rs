//! How long requests would take on disks that are made up: it tells intervals with long queues from those without, where the trace says
//! nothing of that. What matters is which interval asks for more than another, not how long it takes: the disks are no model of any.

use crate::trace::Op;
use crate::{Nanos, TotalTime};

/// Nobody waits for longer than that: a disk that is too slow for all of a trace still tells its busy hours from others.
const LONGEST_QUEUE: Nanos = Nanos::from_secs(10);
/// A disk that was not asked for anything for so long has gone to sleep, as flash storage in telephones does, and takes so long to wake up.
const ASLEEP_AFTER: Nanos = Nanos::from_secs(10);
const WAKING: Nanos = Nanos::from_millis(100);

/// A disk: time for each request, and nanoseconds for each of its bytes.
struct Disk {
    each: Nanos,
    byte: u64,
}

/// 100, 4 and 2 MB/s.
const QUICK: Disk = Disk { each: Nanos::from_micros(500), byte: 10 };
const SLOW: Disk = Disk { each: Nanos::from_millis(20), byte: 250 };
const SLOWEST: Disk = Disk { each: Nanos::from_millis(40), byte: 500 };

impl Disk {
    fn time(&self, length: u32) -> Nanos {
        Nanos(self.each.0 + u64::from(length) * self.byte)
    }
}

/// Sums of the response times of an interval's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// On a quick disk.
    pub quick: TotalTime,
    /// On a slow one.
    pub slow: TotalTime,
    /// On one half as fast.
    pub slowest: TotalTime,
    /// What the quick one would take longer if it went to sleep when nobody used it.
    pub waking: TotalTime,
    /// What the quick one would take if writes took it no time, as where they are buffered: reads are what people wait for then.
    pub reads: TotalTime,
}

/// These disks, and when each has served what it was asked for so far. Queues go on from one interval to the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disks {
    free: [Nanos; 5],
    last: Option<Nanos>,
}

impl Disks {
    /// Serves a request, which arrives no earlier than the last one.
    pub fn serve(&mut self, arrival: Nanos, length: u32, op: Op, sums: &mut Served) {
        let sleeps = self.last.is_none_or(|last| arrival.since(last) >= ASLEEP_AFTER);
        self.last = Some(arrival);
        let [quick, slow, slowest, sleepy, buffering] = &mut self.free;
        let response = queue(quick, arrival, QUICK.time(length), Nanos::ZERO);
        sums.quick += response;
        sums.slow += queue(slow, arrival, SLOW.time(length), Nanos::ZERO);
        sums.slowest += queue(slowest, arrival, SLOWEST.time(length), Nanos::ZERO);
        let waking = if sleeps { WAKING } else { Nanos::ZERO };
        sums.waking += queue(sleepy, arrival, QUICK.time(length), waking).since(response);
        if op == Op::Read {
            sums.reads += queue(buffering, arrival, QUICK.time(length), Nanos::ZERO);
        }
    }
}

/// The response time of a request that is served after those before it.
fn queue(free: &mut Nanos, arrival: Nanos, service: Nanos, waking: Nanos) -> Nanos {
    let begin = arrival.max(*free).min(Nanos(arrival.0.saturating_add(LONGEST_QUEUE.0)));
    *free = Nanos(begin.0.saturating_add(waking.0).saturating_add(service.0));
    free.since(arrival)
}

/// The response times of all requests of one volume, summed up.
#[cfg(test)]
fn of(requests: &crate::trace::Columns) -> Served {
    let (mut disks, mut sums) = (Disks::default(), Served::default());
    requests.requests().for_each(|request| disks.serve(request.arrival, request.length, request.op, &mut sums));
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Columns, Request};

    #[test]
    fn requests_wait_for_those_before_them_and_for_a_disk_that_sleeps() {
        let mut requests = Columns::default();
        for (ms, length) in [(0, 0), (0, 4000), (20_000, 0), (29_999, 0)] {
            requests.push(Request { arrival: Nanos::from_millis(ms), length, ..Request::default() });
        }
        let sums = of(&requests);
        // 0.5 ms; 0.54 ms behind that; 0.5 ms twice.
        assert_eq!(sums.quick, Nanos::from_micros(500 + 1_040 + 500 + 500).into());
        assert_eq!(sums.slow, Nanos::from_millis(20 + 41 + 20 + 20).into());
        // The first one and the third wake it up; the second one waits for that as well.
        assert_eq!(sums.waking, Nanos::from_millis(300).into());
    }

    #[test]
    fn where_writes_are_buffered_only_reads_take_time() {
        let mut requests = Columns::default();
        for op in [Op::Write, Op::Read, Op::Write, Op::Read] {
            requests.push(Request { op, ..Request::default() });
        }
        let sums = of(&requests);
        assert_eq!((sums.quick, sums.reads), (Nanos::from_micros(5_000).into(), Nanos::from_micros(1_500).into()));
    }

    #[test]
    fn a_queue_is_never_longer_than_so_long() {
        let mut requests = Columns::default();
        (0..2_000).for_each(|_| requests.push(Request::default()));
        let slowest: u64 = (1..=2_000u64).map(|place| (40 * place).min(10_040)).sum();
        assert_eq!(of(&requests).slowest, Nanos::from_millis(slowest).into());
        requests.push(Request { arrival: Nanos(u64::MAX), ..Request::default() });
        assert!(of(&requests).slowest < Nanos::from_millis(slowest + 20_000).into());
    }
}
