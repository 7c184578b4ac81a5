//! How long an array keeps its data, by how its disks are scrubbed.

use idlewise::Nanos;
use idlewise::reliability::{Array, Drives, Layout, Rebuild, play};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::error::value_error;
use crate::units::{Size, Time};
use crate::values::to_python;

#[doc = doc!("array")]
#[pyfunction]
#[pyo3(signature = (
    layout, passes, *, capacity=None, failures=None, latent=None, read_errors=None, rebuild=None, rebuild_in_gaps=false,
    age=None, within=None, play=None, seed=1,
))]
#[allow(clippy::too_many_arguments, reason = "they are the options of `array`")]
pub fn array<'py>(
    py: Python<'py>,
    layout: &str,
    passes: Vec<Time>,
    capacity: Option<Size>,
    failures: Option<f64>,
    latent: Option<f64>,
    read_errors: Option<f64>,
    rebuild: Option<Time>,
    rebuild_in_gaps: bool,
    age: Option<Time>,
    within: Option<Time>,
    play: Option<u32>,
    seed: u64,
) -> PyResult<Bound<'py, PyAny>> {
    const TEN_YEARS: Nanos = Nanos::from_secs(3_652 * 86_400);
    let layout: Layout = layout.parse().map_err(|error| value_error(&format!("{error}")))?;
    let usual = Drives::default();
    let rebuild = match rebuild {
        Some(_) if rebuild_in_gaps => return Err(value_error("rebuild and rebuild_in_gaps exclude each other")),
        Some(time) => Rebuild::Takes(time.0),
        None if rebuild_in_gaps => Rebuild::InGaps,
        None => Rebuild::Unhindered,
    };
    let drives = Drives {
        capacity: capacity.map_or(usual.capacity, |size| size.0),
        failures: failures.unwrap_or(usual.failures),
        latent: latent.unwrap_or(usual.latent),
        read_errors,
        rebuild,
        age: age.map_or(usual.age, |age| age.0),
    };
    let within_s = within.map_or(TEN_YEARS, |within| within.0).as_secs_f64();
    let is_zero = |time: &Nanos| *time == Nanos::ZERO;
    let takes = matches!(drives.rebuild, Rebuild::Takes(time) if is_zero(&time));
    if takes || within_s == 0.0 || passes.iter().map(|pass| pass.0).chain([drives.age]).any(|time| is_zero(&time)) {
        return Err(value_error("passes, rebuild, age and within must be above zero"));
    }
    let is_share = |share: f64| share > 0.0 && share < 1.0;
    if drives.capacity.0 == 0 || !is_share(drives.failures) || !is_share(drives.latent) || play == Some(0) {
        return Err(value_error("capacity and play must be above zero, failures and latent above 0 and below 1"));
    }
    if read_errors.is_some_and(|bits| !(1e6..=1e30).contains(&bits)) {
        return Err(value_error("read_errors is a number of bits from 1e6 to 1e30, such as 1e15"));
    }
    let lengths = [None].into_iter().chain(passes.iter().map(|pass| Some(pass.0.as_secs_f64())));
    let rows: Vec<Value> =
        py.detach(|| lengths.map(|pass_s| row(&drives.array(layout, pass_s), pass_s, within_s, play, seed)).collect());
    to_python(
        py,
        &json!({
            "array": layout.to_string(),
            "disks": layout.disks(),
            "may_fail": layout.may_fail(),
            "capacity_bytes": drives.capacity.0,
            "failure_s": Drives::mean_s(drives.failures),
            "latent_s": Drives::mean_s(drives.latent),
            "within_s": within_s,
            "rows": rows,
        }),
    )
}

fn row(array: &Array, pass_s: Option<f64>, within_s: f64, cycles: Option<u32>, seed: u64) -> Value {
    let losses = array.losses();
    let mut row = json!({
        "unseen_s": array.unseen_s,
        "rebuild_s": array.rebuild_s,
        "mttdl_s": losses.mttdl_s,
        "loss_within": losses.within(within_s),
        "of_everything": losses.of_everything,
    });
    if let Some(pass_s) = pass_s {
        row["pass_s"] = pass_s.into();
    }
    if let Some(cycles) = cycles {
        let played = play(array, cycles, seed);
        row["played_out"] = json!({"losses": played.losses.0, "cycles": cycles, "seed": seed});
        if played.losses.0 > 0 {
            row["played_out"]["mttdl_s"] = played.mttdl.mean_s.into();
            row["played_out"]["margin_s"] = played.mttdl.margin_s.into();
        }
    }
    row
}
