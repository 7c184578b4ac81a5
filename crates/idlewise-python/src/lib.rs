//! The compiled part of the Python package `idlewise`: the library as Python sees it. What each thing does is said in the package's
//! stubs and documents; here are the ways in and out.

include!(concat!(env!("OUT_DIR"), "/docstrings.rs"));

mod array;
mod batches;
mod capsule;
mod column;
mod disk;
mod error;
mod files;
mod fleet;
mod idle;
mod intervals;
mod ordered;
mod partial;
mod plan;
mod policy;
mod reading;
mod reliability;
mod requests;
mod running;
mod sample;
mod simulate;
mod synth;
mod table;
mod trace;
mod tuning;
mod units;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use pyo3::prelude::*;

/// The module `idlewise._native`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::array::array;
    #[pymodule_export]
    use super::disk::Disk;
    #[pymodule_export]
    use super::files::{
        half_of_free_memory, is_mount_of_another, names_of_found, one_line, open_found, replace_file, state_of_found,
    };
    #[pymodule_export]
    use super::fleet::fleet_page;
    #[pymodule_export]
    use super::idle::Idleness;
    #[pymodule_export]
    use super::partial::Partial;
    #[pymodule_export]
    use super::plan::Plan;
    #[pymodule_export]
    use super::policy::{Issue, Wait};
    #[pymodule_export]
    use super::reliability::reliability;
    #[pymodule_export]
    use super::run_command;
    #[pymodule_export]
    use super::sample::{SamplingPlan, sample};
    #[pymodule_export]
    use super::simulate::{Outcome, compare, explore, grid, simulate};
    #[pymodule_export]
    use super::synth::synth;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::trace::Trace;
    #[pymodule_export]
    use super::tuning::{baselines, frontier, tune, tune_each};
    #[pymodule_export]
    use super::{first_arrival, formats, policies};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::quiet();
        let end_all = wrap_pyfunction!(super::running::end_all, module)?;
        module.py().import("atexit")?.call_method1("register", (end_all,))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// The Parquet reader panics on some damaged files, and a computation that is stopped unwinds; both become exceptions, of which
/// one message is enough.
fn quiet() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let file = panic.location().map_or("", |location| location.file());
        if !file.contains("/parquet-") && !file.contains("/bytes-") {
            usual(panic);
        }
    }));
}

#[doc = doc!("policies")]
#[pyfunction]
fn policies() -> Vec<(&'static str, &'static str)> {
    idlewise::policy::POLICIES.iter().map(|entry| (entry.name, entry.about)).collect()
}

#[doc = doc!("formats")]
#[pyfunction]
fn formats() -> Vec<(&'static str, &'static str)> {
    idlewise::trace::formats::FORMATS.iter().map(|format| (format.name, format.about)).collect()
}

#[doc = doc!("first_arrival")]
#[pyfunction]
fn first_arrival(lines: &[u8]) -> Option<(&'static str, u64)> {
    idlewise::trace::Slice::first_arrival(lines).map(|(format, arrival)| (format, arrival.0))
}

#[doc = doc!("run_command")]
#[pyfunction]
fn run_command(py: Python, program: PathBuf, arguments: Vec<OsString>) -> u8 {
    let code = py.detach(|| idlewise_cli::main_within(program, arguments));
    (0..=u8::MAX).find(|&number| ExitCode::from(number) == code).unwrap_or(1)
}
