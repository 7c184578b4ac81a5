//! What goes wrong, as the exceptions that a Python user expects.

use std::io::ErrorKind;

use idlewise::idle::{IdleError, PartError};
use idlewise::policy::ParameterError;
use idlewise::report::printable::one_line;
use idlewise::trace::synth::SynthError;
use idlewise::trace::{Place, TraceError};
use idlewise::tune::TuneError;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

/// Why a computation has no result. It becomes an exception where it meets Python.
pub enum Error {
    /// A file of requests cannot be read.
    Trace(TraceError),
    /// Something that was given makes no sense.
    Value(String),
    /// Something that was given is of the wrong type.
    Type(String),
    /// No plan keeps the goal.
    NoPlan(String),
    /// The machine refuses something.
    Machine(String),
    /// An exception of Python.
    Raised(PyErr),
}

impl Error {
    /// What it says, without Python.
    pub fn message(&self) -> String {
        match self {
            Self::Trace(error) => in_our_words(error),
            Self::Value(text) | Self::Type(text) | Self::NoPlan(text) | Self::Machine(text) => text.clone(),
            Self::Raised(error) => error.to_string(),
        }
    }
}

/// The options that a message names are those of `scan`.
fn in_our_words(error: &TraceError) -> String {
    error.to_string().replace("--skip-bad", "skip_bad=True").replace("--columns", "columns=")
}

/// A class of `idlewise._errors`.
fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("idlewise._errors")?.getattr(name)
}

fn exception(name: &str, message: &str, place: (Option<&str>, Option<u64>, Option<usize>)) -> PyErr {
    let message = &*one_line(message);
    Python::attach(|py| {
        let made = class(py, name).and_then(|class| class.call1((message, place.0, place.1, place.2)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// An `IdlewiseError` without a place.
pub fn value_error(message: &str) -> PyErr {
    exception("IdlewiseError", message, (None, None, None))
}

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Trace(error) => of_trace(&error),
            Error::Value(message) => value_error(&message),
            Error::Type(message) => PyTypeError::new_err(one_line(&message).into_owned()),
            Error::NoPlan(message) => exception("NoPlan", &message, (None, None, None)),
            Error::Machine(message) => PyRuntimeError::new_err(one_line(&message).into_owned()),
            Error::Raised(error) => error,
        }
    }
}

/// With the place that it names.
fn of_trace(error: &TraceError) -> PyErr {
    let message = in_our_words(error);
    match error {
        TraceError::Io { path, error } => match error.raw_os_error().or(number_of(error.kind())) {
            Some(number) => {
                let text = error.to_string();
                let text = text.split(" (os error").next().unwrap_or_default();
                PyOSError::new_err((number, text.to_owned(), path.clone()))
            }
            None => PyOSError::new_err(one_line(&message).into_owned()),
        },
        TraceError::Bad { path, bad } => {
            let (line, column) = match bad.place {
                Place::Line { line, column } => (Some(line), Some(column)),
                Place::Byte(_) => (None, None),
            };
            exception("IdlewiseError", &message, (Some(path), line, column))
        }
        TraceError::Unknown { path, .. } | TraceError::Empty { path, .. } | TraceError::Parquet { path, .. } => {
            exception("IdlewiseError", &message, (Some(path), None, None))
        }
        _ => value_error(&message),
    }
}

/// What the system would call an error of ours: Python makes the exception of its kind of that.
fn number_of(kind: ErrorKind) -> Option<i32> {
    match kind {
        ErrorKind::NotFound => Some(2),
        ErrorKind::PermissionDenied => Some(13),
        ErrorKind::InvalidInput => Some(22),
        _ => None,
    }
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

impl From<PyErr> for Error {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl From<TuneError> for Error {
    fn from(error: TuneError) -> Self {
        Self::NoPlan(error.to_string())
    }
}

impl From<ParameterError> for Error {
    fn from(error: ParameterError) -> Self {
        let named = |name: &str| name.replace('-', "_");
        Self::Value(match &error {
            ParameterError::Missing { policy, parameters } => {
                let names: Vec<String> = parameters.iter().map(|name| named(name)).collect();
                format!("policy '{policy}' needs {}", names.join(" and "))
            }
            ParameterError::Unused { policy, parameter } => format!("policy '{policy}' takes no {}", named(parameter)),
            ParameterError::Range { parameter, expected } => format!("{} is {expected}", named(parameter)),
            other => other.to_string(),
        })
    }
}

/// Errors that say all there is to say.
macro_rules! values {
    ($($error:ty)*) => {
        $(impl From<$error> for Error {
            fn from(error: $error) -> Self {
                Self::Value(error.to_string())
            }
        })*
    };
}
values!(IdleError PartError SynthError arrow_schema::ArrowError);
