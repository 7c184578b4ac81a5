//! What the library says of itself as JSON, as Python's own values: the names are those of the command's `--json`.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde::Serialize;
use serde_json::{Map, Value};

/// Dicts, lists, text, numbers and `None`.
pub fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    of_value(py, &to_value(value))
}

/// As JSON has it: there a number that is none is null.
pub fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("results have only text, numbers, lists and names")
}

/// The members of an object.
pub fn members(value: &impl Serialize) -> Map<String, Value> {
    match to_value(value) {
        Value::Object(members) => members,
        other => unreachable!("{other} is no object"),
    }
}

fn of_value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => number.into_bound_py_any(py),
            (None, Some(number)) => number.into_bound_py_any(py),
            (None, None) => number.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(values) => {
            let values = values.iter().map(|value| of_value(py, value)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, values)?.into_bound_py_any(py)
        }
        Value::Object(members) => {
            let dict = PyDict::new(py);
            for (name, value) in members {
                dict.set_item(name, of_value(py, value)?)?;
            }
            dict.into_bound_py_any(py)
        }
    }
}
