//! What a scrub buys: mean times to data loss.

use idlewise::reliability::{Errors, Gains, Protection};
use pyo3::prelude::*;
use serde_json::json;

use crate::error::value_error;
use crate::units::Time;
use crate::values::to_python;

#[doc = doc!("reliability")]
#[pyfunction]
#[pyo3(signature = (
    scan_time, *, dirty=0.0, visible=None, latent=None, recovery=None, latent_recovery=None, temporal=1.0,
    spatial=[1.0, 1.0, 1.0, 0.0], parity_factor=48.0,
))]
#[allow(clippy::too_many_arguments, reason = "they are the options of `reliability`")]
pub fn reliability<'py>(
    py: Python<'py>,
    scan_time: Time,
    dirty: f64,
    visible: Option<Time>,
    latent: Option<Time>,
    recovery: Option<Time>,
    latent_recovery: Option<Time>,
    temporal: f64,
    spatial: [f64; 4],
    parity_factor: f64,
) -> PyResult<Bound<'py, PyAny>> {
    let usual = Errors::default();
    let seconds = |time: Option<Time>, usual: f64| time.map_or(usual, |time| time.0.as_secs_f64());
    let errors = Errors {
        visible_s: seconds(visible, usual.visible_s),
        latent_s: seconds(latent, usual.latent_s),
        visible_recovery_s: seconds(recovery, usual.visible_recovery_s),
        latent_recovery_s: seconds(latent_recovery, usual.latent_recovery_s),
        temporal,
        spatial,
    };
    let scan_s = scan_time.0.as_secs_f64();
    let above_zero =
        [scan_s, errors.visible_s, errors.latent_s, errors.visible_recovery_s].iter().all(|&time| time > 0.0);
    let share = |share: &f64| (0.0..=1.0).contains(share);
    if !above_zero {
        return Err(value_error("scan_time, visible, latent and recovery must be above zero"));
    }
    if !(share(&dirty) && temporal > 0.0 && share(&temporal) && spatial.iter().all(share)) {
        return Err(value_error("dirty and each of spatial are from 0 to 1, temporal is above 0 and at most 1"));
    }
    if !(1.0..f64::INFINITY).contains(&parity_factor) {
        return Err(value_error("parity_factor must be at least 1"));
    }
    let protection = Protection { scan_s, dirty };
    let gains = Gains::of(&errors, parity_factor, protection, protection);
    to_python(
        py,
        &json!({
            "scan_s": scan_s,
            "mttdl_none_s": gains.none_s,
            "mttdl_scrub_s": gains.scrub_s,
            "mttdl_parity_s": gains.parity_s,
            "mttdl_both_s": gains.both_s,
            "gain_scrub": gains.scrub_s / gains.none_s,
            "gain_parity": gains.parity_s / gains.none_s,
            "gain_both": gains.both_s / gains.none_s,
            "mttdl_both_visible_kept_s": gains.both_visible_kept_s,
            "gain_both_visible_kept": gains.both_visible_kept_s / gains.none_s,
            "dirty": dirty,
        }),
    )
}
