//! Waiting with every pair of some request sizes and idle waits.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;
use serde::Serialize;

use crate::disk::DiskModel;
use crate::idle::Idleness;
use crate::policy::Waiting;
use crate::simulate::{Summary, scrub};
use crate::{Bytes, Nanos};

/// What one pair does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Size of each request.
    pub request_size_bytes: u64,
    /// Idle wait.
    pub idle_wait_s: f64,
    /// What it does in simulation.
    #[serde(flatten)]
    pub summary: Summary,
    /// Slowdown that 99 % of the foreground requests do not exceed.
    pub slowdown_p99_s: f64,
}

/// Each size with each wait, by size. `progress` is told the share done.
pub fn grid(
    disks: &[Idleness],
    model: &DiskModel,
    sizes: &[Bytes],
    waits: &[Nanos],
    progress: &(dyn Fn(f64) + Sync),
) -> Vec<Cell> {
    let pairs: Vec<(Bytes, Nanos)> =
        sizes.iter().flat_map(|&size| waits.iter().map(move |&wait| (size, wait))).collect();
    let done = AtomicUsize::new(0);
    let cell = |&(request_size, idle_wait): &(Bytes, Nanos)| {
        let run = scrub(disks, model, None, |_| Box::new(Waiting { idle_wait, request_size }));
        progress((done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / pairs.len() as f64);
        Cell {
            request_size_bytes: request_size.0,
            idle_wait_s: idle_wait.as_secs_f64(),
            summary: Summary::new(&run.outcome, disks),
            slowdown_p99_s: run.slowdown_p99(None).as_secs_f64(),
        }
    };
    pairs.par_iter().map(cell).collect()
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::*;
    use crate::simulate::simulate;
    use crate::trace::synth::PUBLISHED;

    #[test]
    fn each_cell_is_a_simulation_of_its_pair() {
        let model = DiskModel::ultrastar_15k450();
        let disks = Idleness::of_trace(&PUBLISHED[0].shape().trace(1).unwrap(), &model).unwrap();
        let sizes = [64, 1024].map(Bytes::from_kib);
        let waits = [10, 100, 1_000].map(Nanos::from_millis);
        let cells = grid(&disks, &model, &sizes, &waits, &|_| ());
        let pairs = sizes.into_iter().flat_map(|size| waits.map(|wait| (size, wait)));
        for (cell, (request_size, idle_wait)) in cells.iter().zip(pairs) {
            let outcome = simulate(&disks, &model, |_| Box::new(Waiting { idle_wait, request_size }));
            assert_eq!((cell.request_size_bytes, cell.idle_wait_s), (request_size.0, idle_wait.as_secs_f64()));
            assert_eq!(cell.summary, Summary::new(&outcome, &disks));
        }
        assert_eq!(cells.len(), 6);
        // The longer the wait, the fewer the requests that any scrub request delays, and so their percentiles.
        assert!(cells[0].slowdown_p99_s > 0.0 && cells[2].slowdown_p99_s <= cells[0].slowdown_p99_s);
    }
}
