//! Reads of members that fail while md checks them: it counts none of those that no redundancy can make up for, and goes on. The kernel's log
//! names each place (dev-kmsg in Documentation/ABI/testing); those that can still not be read in the end are told.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::io::Errno;

use super::limits::SECTOR;
use crate::memory::Buffer;

/// No more places are kept, and of no more is it tried whether they can be read after all: a disk may try for seconds.
const MOST: usize = 4096;
const TRIED: usize = 16;
/// So much is read at each.
const PIECE: u64 = 4096;
/// No record is longer.
const LONGEST: usize = 8192;

/// The kernel's log from now on.
pub struct Failed {
    log: File,
    /// Disks, and the first byte of each piece that could not be read.
    places: BTreeSet<(String, u64)>,
}

impl Failed {
    /// Begins to listen.
    ///
    /// # Errors
    /// Why the log cannot be read.
    pub fn listen() -> io::Result<Self> {
        let mut log = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
        log.seek(SeekFrom::End(0))?;
        Ok(Self { log, places: BTreeSet::new() })
    }

    /// Takes in what was said since the last look of these disks.
    pub fn look(&mut self, disks: &BTreeSet<String>) -> io::Result<()> {
        let mut record = [0; LONGEST];
        loop {
            match self.log.read(&mut record) {
                Ok(0) => return Ok(()),
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    let place = place(&text).filter(|(disk, _)| disks.contains(disk) && self.places.len() < MOST);
                    self.places.extend(place);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // Some were overwritten before they were read.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::PIPE) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// One of them, in words.
    pub fn any(&self) -> Option<String> {
        self.places.first().map(|(disk, at)| format!("byte {at} of {disk}"))
    }

    /// How many bytes of those places still cannot be read. Others were rewritten from what redundancy there is.
    pub fn bytes(&self) -> u64 {
        let mut piece = Buffer::new(PIECE as usize);
        let mut is_dead = |(disk, at): &(String, u64)| {
            let path = Path::new("/dev").join(disk);
            let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path);
            opened.and_then(|disk| disk.read_exact_at(piece.bytes(PIECE as usize), *at)).is_err()
        };
        let dead = self.places.iter().take(TRIED).filter(|place| is_dead(place)).count();
        (dead + self.places.len().saturating_sub(TRIED)) as u64 * PIECE
    }
}

/// The place in a record such as `3,831,99,-;critical medium error, dev sdb, sector 20000 op 0x0:(READ) flags 0x0 …`: disk, and first byte of the
/// piece.
fn place(record: &str) -> Option<(String, u64)> {
    let (_, text) = record.lines().next()?.split_once(';')?;
    let (_, behind) = text.split_once(" error, dev ")?;
    let (disk, behind) = behind.split_once(", sector ")?;
    let (sector, operation) = behind.split_once(' ')?;
    let at = sector.parse::<u64>().ok()?.checked_mul(SECTOR)?;
    // A disk's name is one word: nobody else's text is taken for one.
    let is_name = disk.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    (is_name && operation.starts_with("op 0x0:")).then(|| (disk.into(), at / PIECE * PIECE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_names_what_cannot_be_read() {
        let of = |text: &str| place(&format!("3,831,99,-;{text}\n SUBSYSTEM=block\n"));
        let rest = "op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2";
        let sdb = Some(("sdb".to_string(), 20_000 * 512 / 4096 * 4096));
        assert_eq!(of(&format!("critical medium error, dev sdb, sector 20000 {rest}")), sdb);
        assert_eq!(of(&format!("I/O error, dev sdb, sector 20001 {rest}")), sdb);
        assert_eq!(of(&format!("blk_update_request: I/O error, dev sdb, sector 20007 {rest}")), sdb);
        for other in [
            "I/O error, dev sdb, sector 20000 op 0x1:(WRITE) flags 0x0",
            "I/O error, dev ../../etc/x, sector 1 op 0x0:(READ)",
            "I/O error, dev sdb, sector x op 0x0:(READ)",
            "Buffer I/O error on dev sdb, logical block 2500, async page read",
            "md/raid:md0: read error corrected (8 sectors at 20096 on sde)",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
