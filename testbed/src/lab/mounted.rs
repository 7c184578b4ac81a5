//! A file system on the emulated disk.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::device::Device;

/// A mounted file system, until it is dropped.
pub struct Mounted(PathBuf);

impl Mounted {
    /// Makes one on a device, by a command that ends in the device's path, and mounts it.
    ///
    /// # Errors
    /// What a command said, or that it is not here.
    pub fn new(make: &[&str], device: &Device, folder: &Path) -> anyhow::Result<Self> {
        run(&[make, &[device.name()?]].concat())?;
        std::fs::create_dir_all(folder)?;
        run(&["mount", device.name()?, text(folder)?])?;
        Ok(Self(folder.into()))
    }

    /// Where it is mounted.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// Has everything written to the device.
    ///
    /// # Errors
    /// If that fails.
    pub fn sync(&self) -> anyhow::Result<()> {
        run(&["sync", "-f", text(&self.0)?])
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn text(folder: &Path) -> anyhow::Result<&str> {
    folder.to_str().context("the folder's path is text")
}

fn run(words: &[&str]) -> anyhow::Result<()> {
    let done = Command::new(words[0]).args(&words[1..]).output().with_context(|| words[0].to_string())?;
    ensure!(done.status.success(), "{}: {}", words.join(" "), String::from_utf8_lossy(&done.stderr).trim());
    Ok(())
}
