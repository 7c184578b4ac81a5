//! Setting the emulated disk up, and taking it down again.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use anyhow::{Context, bail, ensure};
use fuser::{BackgroundSession, Config, MountOption};
use idlewise::{Bytes, Nanos};
use tempfile::TempDir;

use crate::server::{FILE, Medium, Server};
use crate::timing::Timing;

const SECTOR: u64 = 512;

/// What disk to emulate.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Its size.
    pub size: Bytes,
    /// Ranges of 512-byte blocks that cannot be read.
    pub bad_blocks: Vec<Range<u64>>,
    /// Size of the medium's sectors, if one that is written as a whole can be read again, and one of which a part is bad takes no less;
    /// else bad blocks stay bad.
    pub sector: Option<Bytes>,
    /// How long a read of them takes to fail: drives try again and again.
    pub recovery: Nanos,
    /// A 512-byte block whose reads are never answered.
    pub hang: Option<u64>,
    /// Which disk's times requests take.
    pub timing: Timing,
}

/// An emulated disk, there until it is dropped.
pub struct EmulatedDisk {
    read: Arc<Mutex<Vec<Range<u64>>>>,
    loop_device: PathBuf,
    // Unmounts when dropped, which needs the loop device to be gone and the folder to be there.
    _session: BackgroundSession,
    folder: TempDir,
}

/// What the machine lacks for an emulated disk, if anything.
pub fn missing() -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        return Some("root".into());
    }
    let files = ["/dev/fuse", "/dev/loop-control"].into_iter().find(|file| !Path::new(file).exists());
    files
        .map(String::from)
        .or_else(|| Command::new("losetup").arg("--version").output().err().map(|_| "losetup".into()))
}

impl EmulatedDisk {
    /// Mounts the disk's file and puts a loop device on it.
    ///
    /// # Errors
    /// What the machine lacks, or what a step said.
    pub fn new(options: &Options) -> anyhow::Result<Self> {
        if let Some(missing) = missing() {
            bail!("the emulated disk needs {missing}");
        }
        let folder = tempfile::Builder::new().prefix("idlewise-disk-").tempdir()?;
        let data = data_file(options.size)?;
        let bad: Vec<_> = options.bad_blocks.iter().map(|range| range.start * SECTOR..range.end * SECTOR).collect();
        // What cannot be read counts as read.
        let read = Arc::new(Mutex::new(bad.clone()));
        let (hang, recovery) = (options.hang.map(|block| block * SECTOR), options.recovery);
        let sector = options.sector.map(|sector| sector.0);
        let medium = Medium { data, bad, recovery, hang, sector, read: Arc::clone(&read) };
        let server = Server::new(medium, options.size.0, options.timing.disk(options.size));
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("emulated-disk".into())];
        let session = fuser::spawn_mount(server, folder.path(), &config).context("mounting FUSE")?;
        let loop_device = attach(&folder.path().join(FILE))?;
        Ok(Self { read, loop_device, _session: session, folder })
    }

    /// How many bytes from the first one on have been read, or cannot be, without a gap.
    pub fn read_up_to(&self) -> u64 {
        let mut stretches = self.read.lock().expect("nobody panics with it");
        stretches.sort_by_key(|stretch| stretch.start);
        stretches.dedup_by(|next, stretch| {
            let meets = next.start <= stretch.end;
            if meets {
                stretch.end = stretch.end.max(next.end);
            }
            meets
        });
        stretches.first().filter(|first| first.start == 0).map_or(0, |first| first.end)
    }

    /// The block device.
    pub fn path(&self) -> &Path {
        &self.loop_device
    }
}

impl Drop for EmulatedDisk {
    fn drop(&mut self) {
        let detached = Command::new("losetup").arg("-d").arg(&self.loop_device).status();
        if !detached.is_ok_and(|status| status.success()) {
            eprintln!("emulated disk: {} could not be detached", self.loop_device.display());
        }
        // Whoever still has the loop device open keeps the file open: unmount for all others now, for them later.
        let _ = rustix::mount::unmount(self.folder.path(), rustix::mount::UnmountFlags::DETACH);
    }
}

/// Sparse memory: only what is written takes space, and no other disk gets in the way.
fn data_file(size: Bytes) -> anyhow::Result<File> {
    let file = File::from(rustix::fs::memfd_create("emulated-disk", rustix::fs::MemfdFlags::CLOEXEC)?);
    file.set_len(size.0).with_context(|| format!("a sparse file of {size}"))?;
    Ok(file)
}

fn attach(file: &Path) -> anyhow::Result<PathBuf> {
    let output = Command::new("losetup").args(["--find", "--show", "--direct-io=on"]).arg(file).output()?;
    ensure!(output.status.success(), "losetup: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(PathBuf::from(String::from_utf8(output.stdout)?.trim()))
}
