//! Traces made up.

use idlewise::trace::synth::{PUBLISHED, Shape};
use idlewise::{Bytes, Nanos};
use pyo3::prelude::*;

use crate::error::{Error, value_error};
use crate::running;
use crate::trace::Trace;
use crate::units::{Size, Time};

#[doc = doc!("synth")]
#[pyfunction]
#[pyo3(signature = (
    like=None, *, idle_mean=None, idle_cov=1.0, burstiness=0.0, requests_per_busy=1.0, together=false, tick=None, service=None,
    requests=None, request_size=None, read_share=0.7, sequential=0.0, phase=1.0, capacity=None, seed=1,
))]
#[allow(clippy::too_many_arguments, reason = "they are the options of `trace synth`")]
pub fn synth(
    py: Python,
    like: Option<&str>,
    idle_mean: Option<Time>,
    idle_cov: f64,
    burstiness: f64,
    requests_per_busy: f64,
    together: bool,
    tick: Option<Time>,
    service: Option<Time>,
    requests: Option<u64>,
    request_size: Option<Size>,
    read_share: f64,
    sequential: f64,
    phase: f64,
    capacity: Option<Size>,
    seed: u64,
) -> PyResult<Trace> {
    let shape = match (like, idle_mean) {
        (Some(name), None) => {
            let known = || PUBLISHED.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
            let published = PUBLISHED.iter().find(|row| row.name == name);
            let shape =
                published.ok_or_else(|| value_error(&format!("like '{name}': it is one of {}", known())))?.shape();
            Shape { requests: requests.unwrap_or(shape.requests), ..shape }
        }
        (None, Some(idle_mean)) => Shape {
            requests: requests.unwrap_or(100_000),
            idle_mean: idle_mean.0,
            idle_cov,
            among: Default::default(),
            files: Default::default(),
            burstiness,
            requests_per_busy,
            together,
            tick: tick.map_or(Nanos::ZERO, |tick| tick.0),
            service: service.map_or(Nanos::from_millis(5), |service| service.0),
            read_share,
            sequential,
            phase,
            length: u32::try_from(request_size.map_or(65_536, |size| size.0.0))
                .map_err(|_| value_error("request_size is below 4 GiB"))?,
            capacity: capacity.map_or(Bytes(300_000_000_000), |size| size.0),
        },
        _ => return Err(value_error("either like= or idle_mean= says what the trace is to be like")),
    };
    let name = like.unwrap_or("synthetic").to_owned();
    running::run(py, None, move |_| Ok(Trace::of_memory(&name, shape.trace(seed).map_err(Error::from)?)))
}
