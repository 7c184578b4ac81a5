//! From requests to idle intervals, batch by batch.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{IdleError, Idleness, IdlenessBuilder, Keep, Part, Writes};
use crate::Bytes;
use crate::Nanos;
use crate::disk::DiskModel;
use crate::trace::{Columns, Op, Request};

/// Resolution of times that is too coarse to see idle intervals with.
const TOO_COARSE: Nanos = Nanos::from_secs(1);

/// No disk takes longer. A clock that was set meanwhile says so.
const LONGEST_RESPONSE: Nanos = Nanos::from_secs(24 * 3600);

/// Reduces requests that come in order of arrival to the idle times of each volume. Requests without a recorded response, or with one of
/// more than a day, go first come first served through one disk a volume with the model's read and write times.
pub struct Reducer<'a> {
    model: &'a DiskModel,
    keep: Keep,
    /// Added to each arrival.
    ahead: Nanos,
    random: Pcg64Mcg,
    disks: Vec<IdlenessBuilder>,
    served: Vec<Served>,
    modelled: u64,
}

/// How far a volume is.
#[derive(Clone, Copy, Default)]
struct Served {
    /// When its modelled disk has served what it was given.
    free_at: Nanos,
    /// The last arrival.
    last: Nanos,
    /// Requests whose response was not recorded.
    modelled: u64,
}

impl<'a> Reducer<'a> {
    /// A reducer for a trace whose times have this resolution.
    ///
    /// # Errors
    /// [`IdleError::TooCoarse`].
    pub fn new(model: &'a DiskModel, resolution: Nanos) -> Result<Self, IdleError> {
        Self::check(resolution)?;
        let (keep, random) = (Keep::default(), Pcg64Mcg::seed_from_u64(2008));
        Ok(Self { model, keep, ahead: Nanos::ZERO, random, disks: Vec::new(), served: Vec::new(), modelled: 0 })
    }

    /// The same, which keeps this of each request.
    pub fn keeping(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// The same, whose clock shows this when that of the requests shows zero.
    pub fn from(self, ahead: Nanos) -> Self {
        Self { ahead, ..self }
    }

    /// Whether times of this resolution tell of idle intervals; a trace may show only at its end how coarse its clock is.
    ///
    /// # Errors
    /// [`IdleError::TooCoarse`].
    pub fn check(resolution: Nanos) -> Result<(), IdleError> {
        if resolution >= TOO_COARSE { Err(IdleError::TooCoarse(resolution)) } else { Ok(()) }
    }

    /// Takes the next requests.
    ///
    /// # Errors
    /// [`IdleError::NoServiceTime`] where the model's times are needed and it lacks them.
    pub fn requests(&mut self, requests: &Columns) -> Result<(), IdleError> {
        for name in &requests.volumes[self.disks.len().min(requests.volumes.len())..] {
            self.disks.push(IdlenessBuilder::new(name));
            self.served.push(Served::default());
        }
        for mut request in requests.requests() {
            request.arrival = Nanos(request.arrival.0.saturating_add(self.ahead.0));
            let volume = usize::from(request.volume);
            let completion = match request.response.filter(|&response| response <= LONGEST_RESPONSE) {
                Some(response) => Nanos(request.arrival.0.saturating_add(response.0)),
                None => self.serve(&request)?,
            };
            self.served[volume].last = request.arrival;
            let (disk, response) = (&mut self.disks[volume], completion.since(request.arrival));
            disk.request(request.arrival, completion);
            if self.keep.responses {
                disk.keep_response(response);
            }
            let writes = match self.keep.writes {
                Writes::None => false,
                Writes::Recorded => request.op == Op::Write,
                Writes::Drawn(share) => self.random.random::<f64>() < share,
            };
            if writes {
                disk.keep_write(completion, request.offset);
            }
        }
        Ok(())
    }

    fn serve(&mut self, request: &Request) -> Result<Nanos, IdleError> {
        let (access, missing) = match request.op {
            Op::Read => (self.model.read, "read"),
            Op::Write => (self.model.write, "write"),
        };
        let access = access.ok_or_else(|| IdleError::NoServiceTime { model: self.model.name.clone(), missing })?;
        let service = access.time(Bytes(u64::from(request.length)));
        let served = &mut self.served[usize::from(request.volume)];
        served.free_at = Nanos(served.free_at.max(request.arrival).0.saturating_add(service.0));
        served.modelled += 1;
        self.modelled += 1;
        Ok(served.free_at)
    }

    /// Memory that what is kept takes at most, with all that is computed from it at a time.
    pub fn memory(&self) -> Bytes {
        Bytes(self.disks.iter().map(|disk| disk.so_far().memory().0).sum())
    }

    /// Requests whose response was not recorded.
    pub fn modelled(&self) -> u64 {
        self.modelled
    }

    /// The idle times of the volumes that have requests; `origin` is the first arrival on the source's clock.
    pub fn finish(self, origin: Nanos) -> Vec<Idleness> {
        let disks = self.disks.into_iter().map(IdlenessBuilder::finish).zip(self.served);
        let of = |(disk, served): (Idleness, Served)| {
            let responses_recorded = served.modelled < disk.requests;
            Idleness { responses_recorded, origin, ..disk }
        };
        disks.filter(|(disk, _)| disk.requests > 0).map(of).collect()
    }

    /// The same as parts of a longer trace, whose clock is that of the requests.
    pub fn parts(self) -> Vec<Part> {
        let disks = self.disks.into_iter().zip(self.served).filter(|(disk, _)| disk.so_far().requests > 0);
        let part = |(disk, Served { last, modelled, .. }): (IdlenessBuilder, Served)| {
            let busy_since = disk.busy_since();
            Part::new(disk.finish(), busy_since, last, modelled)
        };
        disks.map(part).collect()
    }
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::*;
    use crate::TotalTime;
    use crate::trace::{ReadOptions, parse_bytes};

    const LOAD: &str = "0.000 ; 0 ; 8 ; R\n0.001 ; 8 ; 8 ; W\n0.100 ; 0 ; 8 ; R\n";

    #[test]
    fn requests_queue_and_the_gap_begins_when_the_last_one_ends() {
        let model = DiskModel::ultrastar_15k450();
        let trace = parse_bytes("t", LOAD.as_bytes(), &ReadOptions::default()).unwrap();
        let disks = Idleness::of_trace(&trace, &model).unwrap();
        // 4 KiB: 4 ms + 45.511 us each, the second behind the first.
        assert_eq!(disks[0].intervals[0].length, Nanos(100_000_000 - 2 * 4_045_511));
        assert_eq!(disks[0].end, Nanos(104_045_511));
        assert!(!disks[0].responses_recorded);
    }

    #[test]
    fn a_model_without_write_times_is_refused_where_they_are_needed() {
        let model = DiskModel { write: None, ..DiskModel::ultrastar_15k450() };
        let trace = parse_bytes("t", LOAD.as_bytes(), &ReadOptions::default()).unwrap();
        let error = Idleness::of_trace(&trace, &model).unwrap_err().to_string();
        assert!(error.contains("[write]"), "{error}");
    }

    #[test]
    fn only_what_was_not_recorded_is_modelled() {
        let text =
            "Timestamp,Response,IOType,LUN,Offset,Size\n1.0,0.002,R,0,0,4096\n1.1,,R,0,0,4096\n1.2,0.001,R,0,0,4096\n";
        let trace = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        let model = DiskModel::ultrastar_15k450();
        let mut reducer = Reducer::new(&model, trace.provenance.resolution).unwrap();
        reducer.requests(&trace.columns).unwrap();
        assert_eq!(reducer.modelled(), 1);
        let disk = reducer.finish(trace.provenance.origin).remove(0);
        let lengths: Vec<u64> = disk.intervals.iter().map(|interval| interval.length.0).collect();
        assert_eq!(lengths, [98_000_000, 100_000_000 - 4_045_511]);
        assert_eq!((disk.response_sum, disk.responses_recorded), (TotalTime(3_000_000 + 4_045_511), true));
    }

    #[test]
    fn a_response_over_which_the_clock_was_set_is_not_taken_for_one() {
        let text = "Timestamp,Response,IOType,LUN,Offset,Size\n1.0,0.002,R,0,0,4096\n1.1,1400000000,R,0,0,4096\n1400000002.0,0.001,R,0,0,4096\n";
        let trace = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        let disk = Idleness::of_trace(&trace, &DiskModel::ultrastar_15k450()).unwrap().remove(0);
        assert_eq!(disk.intervals.len(), 2);
        assert!(disk.busy() < Nanos::from_millis(10), "{}", disk.busy());
    }

    #[test]
    fn responses_are_recorded_or_not_by_volume() {
        let text = "1,a,0,Read,0,4096,20\n5,b,0,Read,0,4096,20\n";
        let mut trace = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        let requests: Vec<Request> = trace.columns.requests().collect();
        trace.columns = trace.columns.with_volumes_of();
        trace.columns.push(requests[0]);
        trace.columns.push(Request { response: None, ..requests[1] });
        let disks = Idleness::of_trace(&trace, &DiskModel::ultrastar_15k450()).unwrap();
        assert_eq!(disks.iter().map(|disk| disk.responses_recorded).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn whole_seconds_say_nothing_about_idle_times() {
        let text = "1538323200,12910952,128,0,1063\n1538323205,6318288,8,1,1063\n";
        let trace = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        let error = Idleness::of_trace(&trace, &DiskModel::ultrastar_15k450()).unwrap_err();
        assert_eq!(error, IdleError::TooCoarse(Nanos::from_secs(1)));
    }
}
