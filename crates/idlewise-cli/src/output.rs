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

/// Writes a text file whole or not at all.
pub fn file(path: &Path, content: &str) -> anyhow::Result<()> {
    bytes(path, content.as_bytes())
}

/// Writes a file whole or not at all.
pub fn bytes(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    idlewise_linux::replace_file(path, content).with_context(|| path.display().to_string())
}
