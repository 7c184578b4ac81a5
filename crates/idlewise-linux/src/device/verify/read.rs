//! Reading past the page cache through io_uring: works on every block device, for whoever may read it.

use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use idlewise::Bytes;
use idlewise::disk::LARGEST_REQUEST;
use idlewise::order::Extent;
use io_uring::types::Fd;
use io_uring::{IoUring, opcode};
use rustix::io::Errno;

use super::{Fault, Verifier, wait_on_ring};
use crate::device::Device;
use crate::memory::Buffer;

/// The verifier that reads.
pub struct DirectRead {
    ring: IoUring,
    fd: RawFd,
    /// Freed only when the kernel is done with it.
    buffer: ManuallyDrop<Buffer>,
    /// What is being read and has not been yet.
    rest: Option<Extent>,
    /// Where the request began of which that is the rest.
    begin: u64,
}

/// The verifier that works on any device.
pub fn open(device: &Device, largest: Bytes) -> Result<Box<dyn Verifier>, Fault> {
    Ok(Box::new(DirectRead::new(device, largest.max(LARGEST_REQUEST))?))
}

impl DirectRead {
    /// A reader of `device` for stretches of at most `largest`. The device must stay open as long as the reader.
    ///
    /// # Errors
    /// A fault if the kernel offers no io_uring.
    pub fn new(device: &Device, largest: Bytes) -> Result<Self, Fault> {
        let ring = IoUring::new(2).map_err(|error| {
            Fault::Device(format!("io_uring is not available ({error}); is kernel.io_uring_disabled set?"))
        })?;
        let buffer = ManuallyDrop::new(Buffer::new(largest.0 as usize));
        Ok(Self { ring, fd: device.file.as_raw_fd(), buffer, rest: None, begin: 0 })
    }

    fn submit(&mut self, extent: Extent) -> Result<(), Fault> {
        // What is longer than the buffer is read in pieces, one over the other.
        let behind = (extent.offset.0 - self.begin) as usize % self.buffer.len();
        let length = extent.length.0.min((self.buffer.len() - behind) as u64) as u32;
        // SAFETY: `behind` is within the buffer.
        let memory = unsafe { self.buffer.as_ptr().add(behind) };
        let read = opcode::Read::new(Fd(self.fd), memory, length).offset(extent.offset.0).build();
        // SAFETY: the buffer holds `length` bytes from there on, and outlives the request: it is only freed, or exchanged, when none is in
        // service.
        let queued = unsafe { self.ring.submission().push(&read) };
        queued.map_err(|_| Fault::Device("io_uring: the submission queue is full".into()))?;
        self.rest = Some(extent);
        self.ring.submit().map_err(|error| Fault::Device(format!("io_uring: {error}")))?;
        Ok(())
    }

    /// A completion came in: done, failed, or on with what a short read left.
    fn completed(&mut self, result: i32) -> Option<Result<(), Fault>> {
        let extent = self.rest.take()?;
        let Ok(count) = u64::try_from(result) else {
            return Some(Err(fault(Errno::from_raw_os_error(-result))));
        };
        if count >= extent.length.0 {
            return Some(Ok(()));
        }
        if count == 0 {
            let ends_at = |byte| Fault::Device(format!("the device ends at byte {byte}"));
            return Some(Err(if extent.offset.0 == 0 { Fault::gone() } else { ends_at(extent.offset.0) }));
        }
        let rest = Extent { offset: Bytes(extent.offset.0 + count), length: Bytes(extent.length.0 - count) };
        self.submit(rest).err().map(Err)
    }
}

impl Verifier for DirectRead {
    fn name(&self) -> &'static str {
        "read"
    }

    fn reads(&self) -> bool {
        true
    }

    fn take_read(&mut self, spare: Vec<Buffer>) -> Vec<Buffer> {
        if self.rest.is_some() {
            return Vec::new();
        }
        let length = self.buffer.len();
        let spare = spare.into_iter().find(|spare| spare.len() >= length).unwrap_or_else(|| Buffer::new(length));
        vec![std::mem::replace(&mut *self.buffer, spare)]
    }

    fn start(&mut self, extent: Extent) -> Result<(), Fault> {
        // There is one buffer, and it is known of one request whether the kernel still writes into it.
        if self.rest.is_some() {
            return Err(Fault::Device("a request is still in service".into()));
        }
        self.begin = extent.offset.0;
        self.submit(extent)
    }

    fn wait(&mut self, timeout: Duration) -> Option<Result<(), Fault>> {
        if let Err(fault) = wait_on_ring(&self.ring.submitter(), timeout) {
            return Some(Err(fault));
        }
        let entry = self.ring.completion().next()?;
        self.completed(entry.result())
    }
}

impl Drop for DirectRead {
    fn drop(&mut self) {
        if self.rest.is_some() {
            // The kernel may still write into the buffer of a request that hangs: leave it be.
            return;
        }
        // SAFETY: dropped once, here, and no request uses it any more.
        unsafe { ManuallyDrop::drop(&mut self.buffer) }
    }
}

/// What the kernel's block layer says with an error number (blk-core.c, `blk_errors`).
fn fault(errno: Errno) -> Fault {
    match errno {
        Errno::NODATA => Fault::unreadable("medium"),
        Errno::ILSEQ => Fault::unreadable("protection"),
        // The kernel has tried it again where that may help, and says little more.
        Errno::IO => Fault::unreadable("io"),
        Errno::TIMEDOUT => Fault::Passing { kind: "timeout" },
        Errno::NOLINK | Errno::REMOTEIO => Fault::Passing { kind: "transport" },
        // io_uring itself gives a request up (ECANCELED) where the kernel had no thread for it.
        Errno::AGAIN | Errno::BUSY | Errno::NOMEM | Errno::CANCELED => Fault::Passing { kind: "not-ready" },
        Errno::NODEV | Errno::NXIO => Fault::gone(),
        Errno::INVAL => {
            Fault::Device("it takes no such read any more: is the size of its blocks another one now?".into())
        }
        other => Fault::Device(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_at_a_time() {
        let file = tempfile::Builder::new().tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        file.as_file().set_len(8192).unwrap();
        let device = Device::open_any(file.path()).unwrap();
        let mut reader = DirectRead::new(&device, Bytes(4096)).unwrap();
        let at = |offset| Extent { offset: Bytes(offset), length: Bytes(4096) };
        reader.start(at(0)).unwrap();
        assert!(matches!(reader.start(at(4096)), Err(Fault::Device(why)) if why.contains("still in service")));
        assert_eq!(reader.wait(Duration::from_secs(10)), Some(Ok(())));
        reader.start(at(4096)).unwrap();
        assert_eq!(reader.wait(Duration::from_secs(10)), Some(Ok(())));
    }
}
