//! Opening device nodes so that what was checked is what is used: a path may lead elsewhere a moment later.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl, opcode};

const BLKGETSIZE64: Opcode = opcode::read::<usize>(0x12, 114);
const BLKGETDISKSEQ: Opcode = opcode::read::<u64>(0x12, 128);

/// Which block device is behind a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Major and minor number.
    pub number: u64,
    /// The kernel counts disks as they come: another one has another number. Nothing before Linux 5.15.
    pub diskseq: Option<u64>,
    /// Size in bytes.
    pub size: u64,
}

impl Node {
    /// Asks the descriptor, not a path.
    pub fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.file_type().is_block_device() {
            return Err(Errno::NOTBLK.into());
        }
        Ok(Self { number: metadata.rdev(), diskseq: diskseq(file), size: size(file)? })
    }
}

/// Its size now.
pub fn size(file: &File) -> io::Result<u64> {
    // SAFETY: this command writes one 64-bit number.
    Ok(unsafe { ioctl(file, Getter::<BLKGETSIZE64, u64>::new()) }?)
}

/// The number of its disk among all that came since the machine started.
pub fn diskseq(file: &File) -> Option<u64> {
    // SAFETY: this command writes one 64-bit number.
    unsafe { ioctl(file, Getter::<BLKGETDISKSEQ, u64>::new()) }.ok()
}

/// What a path leads to. It is not opened yet, as that alone may set something off.
pub struct Found {
    place: File,
    path: PathBuf,
    /// What it is.
    pub metadata: Metadata,
}

impl Found {
    /// Looks it up.
    pub fn at(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH.bits() as i32;
        let place = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        Ok(Self { metadata: place.metadata()?, place, path: path.into() })
    }

    /// Opens it for reading past the page cache. Nothing that is no device is waited for, such as a pipe.
    pub fn open(&self) -> io::Result<File> {
        let flags = OFlags::DIRECT | OFlags::NONBLOCK | OFlags::NOCTTY;
        let open = |path: &Path| OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
        patient(match open(&again(&self.place)) {
            // Without /proc there is only the path, which may lead elsewhere by now.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !Path::new("/proc/self/fd").exists() => {
                open(&self.path)?
            }
            other => other?,
        })
    }
}

/// The path to what a descriptor is of.
fn again(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Only its opening must not wait: a read that may not would fail where the device has too much to do.
fn patient(file: File) -> io::Result<File> {
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Whether nobody has mounted or claimed the device at this path, which has this number.
///
/// # Errors
/// What the kernel says if somebody has; or that it is another device.
pub fn is_free(path: &Path, number: u64) -> io::Result<()> {
    let flags = OFlags::EXCL | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?;
    if Node::of(&file)?.number == number { Ok(()) } else { Err(io::Error::other("is another device")) }
}

/// Opens a device that is open once more, exclusively: the kernel refuses while it is mounted or otherwise claimed. The path it
/// was first opened by is not asked again.
pub fn open_exclusively(file: &File, node: &Node, write: bool) -> io::Result<File> {
    open_again(file, node, write, OFlags::DIRECT | OFlags::EXCL)
}

/// Opens a device that is open once more, for writing, though others use it.
pub fn open_for_writing(file: &File, node: &Node) -> io::Result<File> {
    open_again(file, node, true, OFlags::DIRECT)
}

fn open_again(file: &File, node: &Node, write: bool, flags: OFlags) -> io::Result<File> {
    let opened = OpenOptions::new().read(true).write(write).custom_flags(flags.bits() as i32).open(again(file))?;
    if Node::of(&opened)? != *node {
        return Err(io::Error::other("is not the device any more that it was when it was checked"));
    }
    Ok(opened)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that leads elsewhere once it was looked at: what it leads to then is not opened.
    #[test]
    fn what_was_looked_at_is_what_is_opened() {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, [1; 4096]).unwrap();
        let found = Found::at(&path).unwrap();
        let (pipe, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
        rustix::fs::mknodat(rustix::fs::CWD, folder.path().join("b"), pipe, mode, 0).unwrap();
        std::fs::rename(folder.path().join("b"), &path).unwrap();
        let opened = found.open().unwrap().metadata().unwrap();
        assert_eq!((opened.is_file(), opened.ino()), (true, found.metadata.ino()));
    }
}
