//! The page of a fleet.

use std::collections::BTreeMap;

use idlewise::report::{self, FleetVolume};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error::value_error;
use crate::units::Time;

#[derive(Deserialize)]
struct Table {
    rows: Vec<FleetVolume>,
    errors: BTreeMap<String, String>,
}

#[doc = doc!("fleet_page")]
#[pyfunction]
pub fn fleet_page(py: Python, table: &str, within: Time) -> PyResult<String> {
    let Table { rows, errors } = serde_json::from_str(table).map_err(|error| value_error(&error.to_string()))?;
    Ok(py.detach(|| report::fleet_page(&rows, &errors, within.0).html()))
}
