//! Files that are named by who calls: read, and written as the command writes them.

use std::os::fd::{IntoRawFd, RawFd};
use std::path::{Path, PathBuf};

use idlewise::trace::{self, Found, TraceError};
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

#[doc = doc!("replace_file")]
#[pyfunction]
pub fn replace_file(py: Python, path: PathBuf, data: &[u8]) -> PyResult<()> {
    Ok(py.detach(|| idlewise_linux::replace_file(&path, data)).map_err(|error| named(&path, error))?)
}

#[doc = doc!("open_found")]
#[pyfunction]
pub fn open_found(path: PathBuf, folder: PathBuf) -> PyResult<Option<RawFd>> {
    let opened = trace::open_found(&Found { path: path.clone(), folder }).map_err(|error| named(&path, error))?;
    Ok(opened.map(IntoRawFd::into_raw_fd))
}

#[doc = doc!("half_of_free_memory")]
#[pyfunction]
pub fn half_of_free_memory() -> Option<u64> {
    idlewise_linux::half_of_free_memory().map(|half| half.0)
}

fn named(path: &Path, error: std::io::Error) -> Error {
    Error::Trace(TraceError::Io { path: path.display().to_string(), error })
}
