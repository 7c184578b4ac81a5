//! A trace as commands read it: a batch after another, and whole where it is too far out of order for that.

use idlewise::Nanos;
use idlewise::disk::DiskModel;
use idlewise::idle::{Idleness, Keep, Reducer};
use idlewise::trace::{Columns, Provenance, ReadOptions, Reader, TraceError};

/// Commands that look at each request often are not given more.
pub const MOST_REQUESTS: usize = 256;

/// A trace that was read.
pub struct Read {
    pub batches: Vec<Columns>,
    pub provenance: Provenance,
}

impl Read {
    /// Reads the bytes of a file; none if they are no trace.
    pub fn of(file: &[u8], options: &ReadOptions) -> Option<Self> {
        let read = match once(file, options) {
            Err(TraceError::OutOfOrder(_)) => once(file, &ReadOptions { whole: true, ..*options }),
            read => read,
        };
        let read = read.ok()?;
        read.check(options.volumes.is_empty());
        Some(read)
    }

    /// The same, unless there are too many requests.
    pub fn short(file: &[u8]) -> Option<Self> {
        let options = ReadOptions { skip_bad: true, ..ReadOptions::default() };
        Self::of(file, &options).filter(|read| read.len() <= MOST_REQUESTS)
    }

    pub fn len(&self) -> usize {
        self.batches.iter().map(Columns::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// All requests together.
    pub fn columns(&self) -> Columns {
        let mut all = Columns::default();
        self.batches.iter().for_each(|batch| assert!(all.append(batch.clone()).is_some(), "indices that stay"));
        all
    }

    fn check(&self, from_the_first: bool) {
        let arrivals: Vec<Nanos> = self.batches.iter().flat_map(|batch| batch.arrival.iter().copied()).collect();
        assert!(arrivals.is_sorted() && !arrivals.is_empty());
        assert!(!from_the_first || arrivals[0] == Nanos::ZERO);
        for batch in &self.batches {
            assert!(!batch.is_empty() && batch.requests().all(|one| usize::from(one.volume) < batch.volumes.len()));
        }
    }

    /// The idle times of each volume, whose parts make up the whole.
    pub fn idleness(&self, model: &DiskModel, keep: Keep) -> Option<Vec<Idleness>> {
        let mut reducer = Reducer::new(model, self.provenance.resolution).ok()?.keeping(keep);
        self.batches.iter().try_for_each(|batch| reducer.requests(batch)).ok()?;
        let disks = reducer.finish(self.provenance.origin);
        assert_eq!(disks.iter().map(|disk| disk.requests).sum::<u64>(), self.len() as u64);
        for disk in &disks {
            assert_eq!(disk.idle().0 + disk.busy().0, disk.span().0);
            let followers: u64 = disk.intervals.iter().map(|interval| interval.followers).sum();
            assert_eq!(disk.leading_requests() + followers, disk.requests);
            assert!(!keep.responses || disk.responses.len() as u64 == disk.requests);
        }
        Some(disks)
    }
}

fn once(file: &[u8], options: &ReadOptions) -> Result<Read, TraceError> {
    let mut reader = Reader::of_bytes("fuzzed", file, options)?;
    let mut batches = Vec::new();
    while let Some(batch) = reader.next()? {
        batches.push(batch);
    }
    Ok(Read { batches, provenance: reader.provenance() })
}
