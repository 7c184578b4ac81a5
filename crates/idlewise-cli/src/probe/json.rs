//! The fields of `probe --json`.

use idlewise::Nanos;
use idlewise::disk::DiskModel;
use idlewise_linux::device::verify::Fault;
use idlewise_linux::probe::{Interfered, Repeat, Scan, Service};
use serde::Serialize;

use super::Findings;

/// Those of the disk model, and what else was found.
#[derive(Serialize)]
pub struct Json<'a> {
    #[serde(flatten)]
    model: &'a DiskModel,
    verifier: &'static str,
    verifiers_passed: Vec<Passed>,
    service: Vec<Times>,
    scans_by_size: Vec<Scanned>,
    scans_by_regions: Vec<Scanned>,
    repeated: Vec<Repeated>,
    repeated_cache_off: Vec<Repeated>,
    answered_from_cache: bool,
    /// How much of a verify a read waits for, by size.
    interference: Vec<Waited>,
    /// Requests that met blocks that cannot be read.
    unreadable_requests: usize,
}

#[derive(Serialize)]
struct Passed {
    name: &'static str,
    reason: String,
}

#[derive(Serialize)]
struct Times {
    size_bytes: u64,
    sequential_s: f64,
    moved_s: f64,
}

#[derive(Serialize)]
struct Scanned {
    size_bytes: u64,
    regions: u64,
    rate_bytes_per_s: u64,
}

#[derive(Serialize)]
struct Waited {
    /// Size of the verifies.
    size_bytes: u64,
    /// Mean response time of a read alone.
    alone_s: f64,
    /// Mean response time of a read that arrived during a verify.
    meanwhile_s: f64,
    /// How much was left of the verify then, on average.
    left_s: f64,
    /// What the read took longer, over what was left.
    part: f64,
    /// Standard error of that.
    part_standard_error: f64,
}

#[derive(Serialize)]
struct Repeated {
    size_bytes: u64,
    first_s: f64,
    again_s: f64,
}

impl<'a> From<&'a Findings> for Json<'a> {
    fn from(found: &'a Findings) -> Self {
        let seconds = Nanos::as_secs_f64;
        let scanned = |scans: &[Scan]| -> Vec<Scanned> {
            let one =
                |scan: &Scan| Scanned { size_bytes: scan.size.0, regions: scan.regions, rate_bytes_per_s: scan.rate.0 };
            scans.iter().map(one).collect()
        };
        let repeated = |repeats: &[Repeat]| -> Vec<Repeated> {
            let one = |repeat: &Repeat| Repeated {
                size_bytes: repeat.size.0,
                first_s: seconds(repeat.first),
                again_s: seconds(repeat.again),
            };
            repeats.iter().map(one).collect()
        };
        let times = |one: &Service| Times {
            size_bytes: one.size.0,
            sequential_s: seconds(one.sequential),
            moved_s: seconds(one.moved),
        };
        let interference = |one: &Interfered| Waited {
            size_bytes: one.size.0,
            alone_s: seconds(one.alone),
            meanwhile_s: seconds(one.meanwhile),
            left_s: seconds(one.left),
            part: one.part,
            part_standard_error: one.error,
        };
        let passed = |(name, fault): &(&'static str, Fault)| Passed { name, reason: fault.to_string() };
        Self {
            model: &found.model,
            verifier: found.verifier,
            verifiers_passed: found.passed.iter().map(passed).collect(),
            service: found.service.iter().map(times).collect(),
            scans_by_size: scanned(&found.scans.by_size),
            scans_by_regions: scanned(&found.scans.by_regions),
            repeated: repeated(&found.cache.as_it_is),
            repeated_cache_off: repeated(&found.cache.off),
            answered_from_cache: found.cache.answers(),
            interference: found.interfered.iter().map(interference).collect(),
            unreadable_requests: found.unreadable.len(),
        }
    }
}
