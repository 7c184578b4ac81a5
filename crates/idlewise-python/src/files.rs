//! Files that are named by who calls: read, and written as the command writes them.

use std::path::{Path, PathBuf};

use idlewise::trace::TraceError;
use pyo3::prelude::*;

use crate::error::Error;

/// The text of a file, or the exception that names it.
pub fn text_of(path: &Path) -> PyResult<String> {
    Ok(std::fs::read_to_string(path).map_err(|error| named(path, error))?)
}

/// Writes a text into a file, or raises the exception that names it.
pub fn write_text(path: &Path, text: &str) -> PyResult<()> {
    Ok(idlewise_linux::replace_file(path, text.as_bytes()).map_err(|error| named(path, error))?)
}

/// Writes a file whole or not at all, through no link of another user.
#[pyfunction]
pub fn replace_file(py: Python, path: PathBuf, data: &[u8]) -> PyResult<()> {
    Ok(py.detach(|| idlewise_linux::replace_file(&path, data)).map_err(|error| named(&path, error))?)
}

fn named(path: &Path, error: std::io::Error) -> Error {
    Error::Trace(TraceError::Io { path: path.display().to_string(), error })
}
