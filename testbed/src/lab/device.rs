//! The emulated disk as the kernel's block layer shows it: direct reads, counters and the I/O scheduler.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use idlewise::Bytes;
use idlewise::order::Extent;
use rustix::fs::OFlags;

/// Unit of the kernel's counters and of a random place, whatever the disk's block.
pub const SECTOR: u64 = 512;
/// No device asks for a stricter alignment of memory in direct I/O.
const ALIGNMENT: usize = 4096;

/// A block device read past the page cache.
pub struct Device {
    path: PathBuf,
    file: File,
    /// Its size.
    pub size: Bytes,
}

/// Memory for direct I/O.
pub struct Buffer {
    memory: Vec<u8>,
    start: usize,
}

impl Buffer {
    /// Memory for requests of `length`.
    pub fn new(length: Bytes) -> Self {
        let memory = vec![0; length.0 as usize + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, start }
    }
}

impl Device {
    /// Opens it for reading only.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let direct = OFlags::DIRECT.bits() as i32;
        let file = OpenOptions::new().read(true).custom_flags(direct).open(path);
        let file = file.with_context(|| path.display().to_string())?;
        let size = Bytes(rustix::fs::seek(&file, rustix::fs::SeekFrom::End(0))?);
        Ok(Self { path: path.into(), file, size })
    }

    /// Where it is, as text for commands.
    pub fn name(&self) -> anyhow::Result<&str> {
        self.path.to_str().context("a device's path is text")
    }

    /// The same device opened anew, for another thread.
    pub fn again(&self) -> anyhow::Result<Self> {
        Self::open(&self.path)
    }

    /// Reads one request, no longer than the buffer.
    pub fn read(&self, buffer: &mut Buffer, extent: Extent) -> anyhow::Result<()> {
        let memory = &mut buffer.memory[buffer.start..buffer.start + extent.length.0 as usize];
        let place = || format!("the emulated disk at byte {}", extent.offset.0);
        self.file.read_exact_at(memory, extent.offset.0).with_context(place)
    }

    fn attribute(&self, name: &str) -> anyhow::Result<PathBuf> {
        let device = self.path.file_name().context("a device has a name")?;
        Ok(Path::new("/sys/block").join(device).join(name))
    }

    /// Bytes read from it since it is there, by everyone.
    pub fn bytes_read(&self) -> anyhow::Result<u64> {
        self.sectors(2).map(|sectors| sectors * SECTOR)
    }

    /// Bytes read from it and written to it, by everyone.
    pub fn bytes_moved(&self) -> anyhow::Result<u64> {
        Ok(self.bytes_read()? + self.sectors(6)? * SECTOR)
    }

    fn sectors(&self, field: usize) -> anyhow::Result<u64> {
        let counters = std::fs::read_to_string(self.attribute("stat")?)?;
        let sectors = counters.split_whitespace().nth(field).and_then(|field| field.parse::<u64>().ok());
        sectors.context("the kernel's counters of the device cannot be read")
    }

    /// Tells the kernel that it turns, as loop devices do not: schedulers act on it.
    pub fn set_rotational(&self) -> anyhow::Result<()> {
        Ok(std::fs::write(self.attribute("queue/rotational")?, "1")?)
    }

    /// The I/O schedulers that the kernel offers, and the one in use.
    pub fn schedulers(&self) -> anyhow::Result<(Vec<String>, String)> {
        let text = std::fs::read_to_string(self.attribute("queue/scheduler")?)?;
        let bare = |name: &str| name.trim_matches(['[', ']']).to_string();
        let used = text.split_whitespace().find(|name| name.starts_with('[')).map(bare);
        Ok((text.split_whitespace().map(bare).collect(), used.context("the device has no I/O scheduler")?))
    }

    /// Puts an I/O scheduler to work.
    pub fn set_scheduler(&self, name: &str) -> anyhow::Result<()> {
        std::fs::write(self.attribute("queue/scheduler")?, name).with_context(|| format!("I/O scheduler {name}"))?;
        ensure!(self.schedulers()?.1 == name, "the kernel did not take I/O scheduler {name}");
        Ok(())
    }
}

/// Puts the I/O scheduler back that was there before.
pub struct Restored {
    device: Device,
    scheduler: String,
}

impl Restored {
    /// Remembers the scheduler of a device.
    pub fn of(device: &Device) -> anyhow::Result<Self> {
        Ok(Self { device: device.again()?, scheduler: device.schedulers()?.1 })
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        if let Err(error) = self.device.set_scheduler(&self.scheduler) {
            eprintln!("the device keeps its I/O scheduler: {error:#}");
        }
    }
}
