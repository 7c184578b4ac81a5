//! Times and sizes as people give them: text with a unit, `timedelta`, or whole nanoseconds and bytes.

use std::fmt;
use std::str::FromStr;

use idlewise::{Bytes, Nanos};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDelta, PyInt, PyString};

use crate::error::value_error;

/// A time: `"1ms"`, a `timedelta`, or whole nanoseconds.
#[derive(Clone, Copy)]
pub struct Time(pub Nanos);

/// A size: `"512KiB"`, or whole bytes.
#[derive(Clone, Copy)]
pub struct Size(pub Bytes);

impl<'py> FromPyObject<'_, 'py> for Time {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if given.is_instance_of::<PyDelta>() {
            let part = |name: &str| given.getattr(name)?.extract::<i64>();
            let seconds = i128::from(part("days")?) * 86_400 + i128::from(part("seconds")?);
            let nanoseconds = seconds * 1_000_000_000 + i128::from(part("microseconds")?) * 1_000;
            let time = u64::try_from(nanoseconds).map_err(|_| value_error("a time must not be below zero"))?;
            return Ok(Self(Nanos(time)));
        }
        let expected = "a time is text such as '1ms', a timedelta, or an int of nanoseconds";
        number_or_text(&given, expected, Nanos).map(Self)
    }
}

impl FromPyObject<'_, '_> for Size {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        number_or_text(&given, "a size is text such as '512KiB', or an int of bytes", Bytes).map(Self)
    }
}

fn number_or_text<T: FromStr<Err: fmt::Display>>(
    given: &Bound<'_, PyAny>,
    expected: &str,
    of: fn(u64) -> T,
) -> PyResult<T> {
    if let Ok(text) = given.cast::<PyString>() {
        return text.to_string().parse().map_err(|error: T::Err| value_error(&error.to_string()));
    }
    if given.is_instance_of::<PyInt>() && !given.is_instance_of::<PyBool>() {
        let number = given.extract().map_err(|_| value_error(&format!("{given} is out of range: {expected}")));
        return number.map(of);
    }
    Err(PyTypeError::new_err(format!("{expected}, not {}", given.get_type().name()?)))
}
