//! Files that are named by who calls: read, and written as the command writes them.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use idlewise::report::printable;
use idlewise::trace::{self, Found, TraceError};
use pyo3::prelude::*;

use crate::error::Error;

/// The text of a file, or the exception that names it. No file of ours is larger.
pub fn text_of(path: &Path) -> PyResult<String> {
    const LARGEST: u64 = 16 << 20;
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    read.map_err(|error| named(path, error))?;
    if text.len() as u64 > LARGEST {
        return Err(Error::Value(format!("{}: is larger than 16 MiB", path.display())).into());
    }
    Ok(text)
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

/// Of a file: mode, size, and what is another after each change of it.
type State = (u32, u64, u64, i64, i64);

#[doc = doc!("state_of_found")]
#[pyfunction]
pub fn state_of_found(path: PathBuf, folder: PathBuf) -> PyResult<Option<State>> {
    let found = trace::metadata_of_found(&Found { path: path.clone(), folder }).map_err(|error| named(&path, error))?;
    let nanos = |(seconds, nanos): (i64, i64)| seconds * 1_000_000_000 + nanos;
    Ok(found.map(|found| {
        let (changed, all_changed) = ((found.mtime(), found.mtime_nsec()), (found.ctime(), found.ctime_nsec()));
        (found.mode(), found.size(), found.ino(), nanos(changed), nanos(all_changed))
    }))
}

#[doc = doc!("is_mount_of_another")]
#[pyfunction]
pub fn is_mount_of_another(thing: RawFd, folder: RawFd) -> PyResult<bool> {
    if thing < 0 || folder < 0 {
        return Err(Error::Value("a descriptor is no negative number".into()).into());
    }
    // SAFETY: of this package's own folders, which keep them open until this returns; a closed one is an error of the system's.
    let (thing, folder) = unsafe { (BorrowedFd::borrow_raw(thing), BorrowedFd::borrow_raw(folder)) };
    Ok(trace::is_mount_of_another(&thing, &folder)?)
}

#[doc = doc!("one_line")]
#[pyfunction]
pub fn one_line(path: PathBuf) -> String {
    printable::one_line(&path.display().to_string()).into_owned()
}

#[doc = doc!("names_of_found")]
#[pyfunction]
pub fn names_of_found(path: PathBuf, folder: PathBuf) -> PyResult<Option<Vec<(OsString, bool)>>> {
    let names = trace::entries_of_found(&Found { path: path.clone(), folder });
    Ok(names.map_err(|error| match error.kind() {
        // What the caller must know: others are as if nothing were there.
        std::io::ErrorKind::InvalidData => Error::Value(format!("{}: {error}", path.display())),
        _ => named(&path, error),
    })?)
}

#[doc = doc!("half_of_free_memory")]
#[pyfunction]
pub fn half_of_free_memory() -> Option<u64> {
    idlewise_linux::half_of_free_memory().map(|half| half.0)
}

fn named(path: &Path, error: std::io::Error) -> Error {
    Error::Trace(TraceError::Io { path: path.display().to_string(), error })
}
