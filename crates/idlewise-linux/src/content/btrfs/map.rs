//! The map of chunks as it was asked for last, and by which number of the device.

use std::io;
use std::time::Instant;

use super::chunks::stretches;
use super::mounted::Mounted;
use super::superblock::Superblock;
use super::{AGAIN, Btrfs, FRESH, ioctl};

impl Btrfs {
    /// Asks for the map of chunks, if it is not known for long enough.
    pub(super) fn ask(&mut self, mounted: &Mounted) -> io::Result<()> {
        let fresh = if self.superblock.replaces() { AGAIN } else { FRESH };
        if self.read.is_none_or(|read| read.elapsed() > fresh) {
            self.read_again()?;
        }
        if self.asked.is_none_or(|asked| asked.elapsed() > AGAIN) {
            let asked = Instant::now();
            // It may have been removed and added again.
            if !self.has_its_number(mounted)? {
                self.read_again()?;
                if !self.has_its_number(mounted)? {
                    return Err(io::Error::other("it has another number among the devices of the file system now"));
                }
            }
            let chunks = stretches(mounted, self.superblock.device)?;
            // Of others nothing is known.
            if chunks != self.chunks {
                self.chunks = chunks;
                self.forget_windows();
            }
            self.asked = Some(asked);
        }
        match self.superblock.replaces() {
            true => Err(io::Error::other("a device is being replaced by it")),
            false => Ok(()),
        }
    }

    /// `btrfs replace` gives a device another number when it is done.
    fn read_again(&mut self) -> io::Result<()> {
        // While none can be read, as while the disk stands still, what is known holds.
        if let Ok(latest) = self.latest() {
            self.superblock = latest.ok_or_else(|| io::Error::other("its superblock is gone"))?;
        }
        (self.read, self.asked) = (Some(Instant::now()), None);
        Ok(())
    }

    /// Whether the file system knows the device by the number that its superblock says. One that replaces another has none yet.
    fn has_its_number(&self, mounted: &Mounted) -> io::Result<bool> {
        let Superblock { device, device_id, .. } = self.superblock;
        let found = || ioctl::device_with_number(&self.calls, &mounted.file()?, device);
        Ok(self.superblock.replaces() || found()? == Some(device_id))
    }

    pub(super) fn forget_windows(&mut self) {
        (self.allocated, self.sums, self.blocks) = Default::default();
    }
}
