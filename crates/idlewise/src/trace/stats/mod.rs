//! What a trace asks of its disks, counted while its requests stream by in flat memory.

mod depth;
mod extents;
mod histogram;
mod timeline;
mod working_set;

use serde::{Serialize, Serializer};

use depth::Depth;
pub use histogram::Histogram;
pub use timeline::Timeline;
pub use working_set::{BLOCK, Blocks, WorkingSet};

use super::{Columns, Op, Request};
use crate::{Bytes, Nanos};

/// Statistics of all volumes of a trace together and, if they are wanted, of each.
#[derive(Debug, Default)]
pub struct Counter {
    all: Volume,
    /// Of each, by its index; empty where they are not wanted.
    volumes: Vec<Volume>,
    by_volume: bool,
    /// End of the last request of each volume.
    ends: Vec<Option<u64>>,
    working_set: WorkingSet,
}

/// What is counted of a volume, or of all.
#[derive(Debug, Default)]
struct Volume {
    seen: Seen,
    depth: Depth,
    last_arrival: Option<Nanos>,
}

/// What was counted. Times are in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Of reads and of writes.
    pub ops: [Ops; 2],
    /// First arrival, and the last completion or, where that is not known, arrival.
    pub span: Option<(Nanos, Nanos)>,
    /// Requests that begin where the one before them on the same volume ended.
    pub sequential: u64,
    /// Times between arrivals.
    pub between_arrivals: Histogram,
    /// Times from arrival to completion (Q2C), from arrival to issue (Q2D), and from issue to completion (D2C).
    pub q2c: Histogram,
    /// See there.
    pub q2d: Histogram,
    /// See there.
    pub d2c: Histogram,
    /// Requests that have arrived and are not complete, weighted with the time for which they were so many; empty if there
    /// were more than a million at once.
    pub depth: Histogram,
    /// Requests over time.
    pub timeline: Timeline,
}

/// Of reads, or of writes.
#[derive(Clone, Debug, Default)]
pub struct Ops {
    /// How many.
    pub requests: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// Their sizes.
    pub sizes: Histogram,
}

/// Memory that the numbers of a volume take at most, with all that is printed of them.
const OF_A_VOLUME: u64 = 16 << 10;

impl Counter {
    /// One that keeps the numbers of each volume, too.
    pub fn by_volume() -> Self {
        Self { by_volume: true, ..Self::default() }
    }

    /// Adds the next requests of a trace.
    pub fn requests(&mut self, columns: &Columns) {
        self.ends.resize(columns.volumes.len(), None);
        if self.by_volume {
            self.volumes.resize_with(columns.volumes.len(), Volume::default);
        }
        for request in columns.requests() {
            let volume = usize::from(request.volume);
            let end = request.offset.0.saturating_add(u64::from(request.length));
            let sequential = self.ends[volume].replace(end) == Some(request.offset.0);
            if let Some(own) = self.volumes.get_mut(volume) {
                own.add(&request, sequential);
            }
            self.all.add(&request, sequential);
            self.working_set.add(request.volume, request.offset.0, request.length, request.op);
        }
    }

    /// Memory that the volumes take at most, with all that is printed of them.
    pub fn memory(&self) -> Bytes {
        Bytes(self.volumes.iter().map(|volume| OF_A_VOLUME + volume.memory()).sum())
    }

    /// The numbers of all volumes together, and those of each by its index, if they were wanted.
    pub fn finish(self) -> (Statistics, Vec<Statistics>) {
        let (exact, blocks) = (self.working_set.is_exact(), self.working_set.of_volumes());
        let all = blocks.values().fold(Blocks::default(), |all, one| Blocks {
            read: all.read.saturating_add(one.read),
            written: all.written.saturating_add(one.written),
            touched: all.touched.saturating_add(one.touched),
        });
        let of = |(index, volume): (u16, Volume)| {
            Statistics::new(volume.finish(), blocks.get(&index).copied().unwrap_or_default(), exact)
        };
        let volumes = (0..).zip(self.volumes).map(of).collect();
        (Statistics::new(self.all.finish(), all, exact), volumes)
    }
}

impl Volume {
    fn add(&mut self, request: &Request, sequential: bool) {
        let seen = &mut self.seen;
        let ops = &mut seen.ops[usize::from(request.op == Op::Write)];
        ops.requests += 1;
        ops.bytes = ops.bytes.saturating_add(u64::from(request.length));
        ops.sizes.add(u64::from(request.length), 1);
        seen.sequential += u64::from(sequential);
        if let Some(last) = self.last_arrival.replace(request.arrival) {
            seen.between_arrivals.add(request.arrival.since(last).0, 1);
        }
        let end = request.end();
        let (begin, last) = seen.span.unwrap_or((request.arrival, request.arrival));
        seen.span = Some((begin, last.max(end.unwrap_or(request.arrival))));
        if let Some(response) = request.response {
            seen.q2c.add(response.0, 1);
        }
        if let Some(queued) = request.queued {
            seen.q2d.add(queued.0, 1);
            if let Some(response) = request.response {
                seen.d2c.add(response.since(queued).0, 1);
            }
        }
        if let Some(end) = end {
            self.depth.request(request.arrival, end);
        }
        seen.timeline.add(request.arrival, request.op);
    }

    fn memory(&self) -> u64 {
        let Seen { ops, between_arrivals, q2c, q2d, d2c, timeline, .. } = &self.seen;
        let histograms = [&ops[0].sizes, &ops[1].sizes, between_arrivals, q2c, q2d, d2c];
        histograms.map(Histogram::memory).iter().sum::<u64>() + timeline.memory() + self.depth.memory()
    }

    fn finish(self) -> Seen {
        Seen { depth: self.depth.finish(), ..self.seen }
    }
}

/// The numbers of `idlewise trace stats`. Names are those of `--json`; what is not known is `None`.
#[derive(Clone, Debug, Serialize)]
pub struct Statistics {
    /// Requests.
    pub requests: u64,
    /// First arrival to last completion.
    pub span_s: f64,
    /// Requests a second over the span.
    pub requests_per_s: Option<f64>,
    /// Bytes a second over the span.
    pub bytes_per_s: Option<f64>,
    /// Reads.
    pub reads: Moved,
    /// Writes.
    pub writes: Moved,
    /// Share of the requests that begin where the one before them on the same volume ended.
    pub sequential_share: f64,
    /// Between arrivals.
    pub between_arrivals_s: Option<Spread>,
    /// From arrival to completion.
    pub q2c_s: Option<Spread>,
    /// From arrival until the device was given the request.
    pub q2d_s: Option<Spread>,
    /// From then to completion.
    pub d2c_s: Option<Spread>,
    /// Requests that have arrived and are not complete, over time.
    pub queue_depth: Option<Spread>,
    /// Different blocks of 4 KiB.
    pub working_set: WorkingSetSize,
    /// What was counted.
    #[serde(skip)]
    pub seen: Seen,
}

/// Reads, or writes.
#[derive(Clone, Debug, Serialize)]
pub struct Moved {
    /// How many.
    pub requests: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// Sizes in bytes.
    pub size_bytes: Option<Spread>,
}

/// Mean, percentiles and maximum. Percentiles are at most 1/256 too low; those of numbers up to 512 are exact.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Mean, exact.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest, exact.
    pub max: f64,
}

/// The blocks that were read and written, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WorkingSetSize {
    /// Read at least once.
    #[serde(serialize_with = "in_bytes", rename = "read_bytes")]
    pub read: u64,
    /// Written at least once.
    #[serde(serialize_with = "in_bytes", rename = "written_bytes")]
    pub written: u64,
    /// Read or written.
    #[serde(serialize_with = "in_bytes", rename = "touched_bytes")]
    pub touched: u64,
    /// Whether that is exact; if not it is an estimate, see [`WorkingSet`].
    pub exact: bool,
}

fn in_bytes<S: Serializer>(blocks: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    blocks.saturating_mul(BLOCK).serialize(serializer)
}

impl Spread {
    /// Of numbers that are to be divided by `unit`; `None` without any.
    pub fn of(histogram: &Histogram, unit: f64) -> Option<Self> {
        let at = |share| histogram.quantile(share).map(|value| value as f64 / unit);
        Some(Self {
            mean: histogram.mean()? / unit,
            p50: at(0.5)?,
            p90: at(0.9)?,
            p99: at(0.99)?,
            max: histogram.most()? as f64 / unit,
        })
    }
}

impl Statistics {
    fn new(seen: Seen, blocks: Blocks, exact: bool) -> Self {
        let requests: u64 = seen.ops.iter().map(|ops| ops.requests).sum();
        let bytes: f64 = seen.ops.iter().map(|ops| ops.bytes as f64).sum();
        let span_s = seen.span.map_or(0.0, |(begin, end)| end.since(begin).as_secs_f64());
        let per_s = |count: f64| (span_s > 0.0).then(|| count / span_s);
        let moved =
            |ops: &Ops| Moved { requests: ops.requests, bytes: ops.bytes, size_bytes: Spread::of(&ops.sizes, 1.0) };
        let times = |histogram| Spread::of(histogram, 1e9);
        Self {
            requests,
            span_s,
            requests_per_s: per_s(requests as f64),
            bytes_per_s: per_s(bytes),
            reads: moved(&seen.ops[0]),
            writes: moved(&seen.ops[1]),
            sequential_share: seen.sequential as f64 / requests.max(1) as f64,
            between_arrivals_s: times(&seen.between_arrivals),
            q2c_s: times(&seen.q2c),
            q2d_s: times(&seen.q2d),
            d2c_s: times(&seen.d2c),
            queue_depth: Spread::of(&seen.depth, 1.0),
            working_set: WorkingSetSize { read: blocks.read, written: blocks.written, touched: blocks.touched, exact },
            seen,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{ReadOptions, parse_bytes};

    #[test]
    fn counts_by_hand() {
        // Times in units of 100 ns; the second read of a goes on where the first ended.
        let text = "0,a,0,Read,0,4096,30\n10,a,0,Read,4096,8192,10\n20,b,0,Write,0,512,10\n60,a,0,Write,0,4096,10\n";
        let trace = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        let mut counter = Counter::by_volume();
        counter.requests(&trace.columns);
        assert!(counter.memory() > Bytes(2 * OF_A_VOLUME) && counter.memory() < Bytes(4 * OF_A_VOLUME));
        let (all, volumes) = counter.finish();
        let mut together = Counter::default();
        together.requests(&trace.columns);
        assert_eq!(together.memory(), Bytes(0));
        let (same, none) = together.finish();
        assert_eq!((same.sequential_share, same.q2c_s, none.len()), (all.sequential_share, all.q2c_s, 0));
        assert_eq!((all.requests, all.reads.bytes, all.writes.bytes), (4, 12_288, 4_608));
        assert_eq!((all.sequential_share, all.span_s, volumes[0].requests), (0.25, 7e-6, 3));
        let set = |read, written, touched| WorkingSetSize { read, written, touched, exact: true };
        assert_eq!((all.working_set, volumes[1].working_set), (set(3, 2, 4), set(0, 1, 1)));
        let between = all.between_arrivals_s.unwrap();
        assert_eq!((between.p50, between.max), (1e-6, 4e-6));
        // Depth: 1 for 1 us, 2 for 2 us, 0 for 3 us, 1 for 1 us.
        let depth = all.queue_depth.unwrap();
        assert_eq!((depth.mean, depth.p50, depth.p99, depth.max), (6.0 / 7.0, 1.0, 2.0, 2.0));
        assert_eq!((all.q2c_s.unwrap().mean, all.q2d_s), (1.5e-6, None));
        assert_eq!(all.requests_per_s, Some(4.0 / 7e-6));
    }

    #[test]
    fn of_nothing_nothing_is_said() {
        let (all, volumes) = Counter::default().finish();
        assert_eq!((all.requests, all.requests_per_s, all.queue_depth, volumes.len()), (0, None, None, 0));
    }
}
