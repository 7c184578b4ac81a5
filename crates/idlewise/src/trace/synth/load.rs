//! The foreground loads of the experiments (DSN 2012, section IV-B): one client that thinks between requests.

use rand::RngExt;
use rand_distr::{Distribution, Exp1};

use super::shaped::most_requests;
use super::{SynthError, generator};
use crate::disk::DiskModel;
use crate::trace::{Columns, Op, Provenance, Request, Trace};
use crate::{Bytes, Nanos};

/// Size of each request.
const REQUEST: u64 = 64 << 10;
/// What the sequential load reads in one go.
const CHUNK: u64 = 8 << 20;

/// Where the client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadKind {
    /// 64 KiB anywhere.
    Random,
    /// 8 MiB from anywhere on in requests of 64 KiB, one behind the other.
    Sequential,
}

/// A client that reads, thinks for a random time of exponential distribution, and reads again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Where it reads.
    pub kind: LoadKind,
    /// How long it thinks on average; 100 ms in the paper.
    pub think: Nanos,
    /// How long it goes on.
    pub time: Nanos,
    /// Size of the disk.
    pub capacity: Bytes,
}

impl Load {
    /// The trace of this load on a disk that serves it as the model says: a read that begins where the last one ended needs no
    /// positioning.
    ///
    /// # Errors
    /// [`SynthError::NoReads`] if the model serves no reads, and [`SynthError::Senseless`] for more requests than fit into memory.
    pub fn trace(&self, model: &DiskModel, seed: u64) -> Result<Trace, SynthError> {
        let read = model.read.ok_or_else(|| SynthError::NoReads(model.name.clone()))?;
        let each = self.think.as_secs_f64() + read.rate.time_for(Bytes(REQUEST)).as_secs_f64();
        most_requests(self.time.as_secs_f64() / each.max(1e-9))?;
        let mut random = generator(seed);
        let mut columns = Columns::default();
        columns.volume_id("synthetic_0");
        let whole = match self.kind {
            LoadKind::Random => REQUEST,
            LoadKind::Sequential => CHUNK,
        };
        let places = (self.capacity.0.saturating_sub(whole) / REQUEST).max(1);
        let (mut arrival, mut offset, mut left) = (Nanos::ZERO, 0, 0);
        while arrival < self.time {
            let jumps = left == 0;
            if jumps {
                (offset, left) = (random.random_range(0..places) * REQUEST, whole);
            }
            let response = if jumps { read.time(Bytes(REQUEST)) } else { read.rate.time_for(Bytes(REQUEST)) };
            let (place, length) = (Bytes(offset), REQUEST as u32);
            let (queued, response_time) = (Some(Nanos::ZERO), Some(response));
            columns.push(Request {
                arrival,
                offset: place,
                length,
                op: Op::Read,
                queued,
                response: response_time,
                volume: 0,
            });
            (offset, left) = (offset + REQUEST, left - REQUEST);
            let think: f64 = Exp1.sample(&mut random);
            let thinks = (think * self.think.0 as f64) as u64;
            arrival.0 = arrival.0.saturating_add(response.0).saturating_add(thinks).saturating_add(1);
        }
        let provenance = Provenance { format: "synthetic", resolution: Nanos(1), ..Provenance::default() };
        Ok(Trace::from_columns(provenance, columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::{Idleness, Statistics};

    #[test]
    fn thinks_as_long_as_it_is_told_and_reads_where_it_should() {
        let model = DiskModel::ultrastar_15k450();
        for kind in [LoadKind::Random, LoadKind::Sequential] {
            let (think, time) = (Nanos::from_millis(100), Nanos::from_secs(2_000));
            let trace = Load { kind, think, time, capacity: Bytes(300_000_000_000) }.trace(&model, 3).unwrap();
            let numbers = Statistics::of(&Idleness::of_trace(&trace, &model).unwrap());
            assert!((numbers.idle_mean_s.unwrap() - 0.1).abs() < 0.003, "{numbers:?}");
            assert!((numbers.idle_cov.unwrap() - 1.0).abs() < 0.05, "{numbers:?}");
            let ends: Vec<u64> = trace.requests().map(|r| r.offset.0 + u64::from(r.length)).collect();
            let begins: Vec<u64> = trace.requests().map(|r| r.offset.0).collect();
            let jumps = ends.iter().zip(&begins[1..]).filter(|(end, begin)| end != begin).count();
            let expected = if kind == LoadKind::Random { begins.len() - 1 } else { (begins.len() - 1) / 128 };
            assert!(jumps.abs_diff(expected) <= 1, "{jumps} jumps among {}", begins.len());
        }
    }

    #[test]
    fn too_many_requests_and_too_long_thoughts_are_no_surprise() {
        let model = DiskModel::ultrastar_15k450();
        let load =
            |think, time| Load { kind: LoadKind::Random, think, time, capacity: Bytes(1 << 40) }.trace(&model, 1);
        let error = load(Nanos(0), Nanos(u64::MAX)).unwrap_err().to_string();
        assert!(error.ends_with("expected 100 million at most"), "{error}");
        assert_eq!(load(Nanos(u64::MAX), Nanos(u64::MAX)).unwrap().columns.len(), 3);
    }
}
