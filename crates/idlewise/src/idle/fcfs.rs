//! Completions for traces that lack them: requests go first come first served through one disk a volume.

use super::{IdleError, IdlenessBuilder};
use crate::disk::{Access, DiskModel};
use crate::trace::{Op, Trace};
use crate::{Bytes, Nanos};

pub(super) fn serve(trace: &Trace, model: &DiskModel, disks: &mut [IdlenessBuilder]) -> Result<(), IdleError> {
    let mut free_at = vec![Nanos::ZERO; disks.len()];
    for request in trace.requests() {
        let (access, name): (Option<Access>, _) = match request.op {
            Op::Read => (model.read, "read"),
            Op::Write => (model.write, "write"),
        };
        let access = access.ok_or_else(|| IdleError::NoServiceTime { model: model.name.clone(), missing: name })?;
        let volume = usize::from(request.volume);
        let service = access.time(Bytes(u64::from(request.length)));
        let completion = Nanos(free_at[volume].max(request.arrival).0.saturating_add(service.0));
        disks[volume].request(request.arrival, completion, None);
        free_at[volume] = completion;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Idleness;
    use super::*;
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
        assert_eq!(disks[0].response_sum, None);
    }

    #[test]
    fn a_model_without_write_times_is_refused_where_they_are_needed() {
        let model = DiskModel { write: None, ..DiskModel::ultrastar_15k450() };
        let trace = parse_bytes("t", LOAD.as_bytes(), &ReadOptions::default()).unwrap();
        let error = Idleness::of_trace(&trace, &model).unwrap_err().to_string();
        assert!(error.contains("[write]"), "{error}");
    }

    #[test]
    fn whole_seconds_say_nothing_about_idle_times() {
        let text = "1538323200,12910952,128,0,1063\n1538323205,6318288,8,1,1063\n";
        let trace = parse_bytes("t", text.as_bytes(), &ReadOptions::default()).unwrap();
        let error = Idleness::of_trace(&trace, &DiskModel::ultrastar_15k450()).unwrap_err();
        assert_eq!(error, IdleError::TooCoarse(Nanos::from_secs(1)));
    }
}
