//! Standard output: text or JSON, and no complaint when the reader has seen enough.

use std::io::{ErrorKind, Write};
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

/// Prints a text as it is.
pub fn text(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("standard output"),
        _ => Ok(()),
    }
}

/// Prints a value as JSON.
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    text(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// Makes sure that a file can be written before the work whose result it will hold; it is not touched.
pub fn check(path: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    anyhow::ensure!(folder.is_dir(), "{}: there is no folder {}", path.display(), folder.display());
    anyhow::ensure!(!path.is_dir(), "{}: is a folder", path.display());
    let writable = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK);
    writable.with_context(|| format!("{}: no permission to write there", path.display()))
}

/// Writes a text file whole or not at all.
pub fn file(path: &Path, content: &str) -> anyhow::Result<()> {
    bytes(path, content.as_bytes())
}

/// Writes a file whole or not at all.
pub fn bytes(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    idlewise_linux::replace_file(path, content).with_context(|| path.display().to_string())
}
