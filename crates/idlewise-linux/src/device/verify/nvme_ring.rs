//! NVMe Verify through io_uring on the namespace's character device (kernel 5.19).

use std::fs::File;
use std::os::fd::AsRawFd;
use std::time::Duration;

use idlewise::Bytes;
use idlewise::order::Extent;
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::io::Errno;

use super::nvme::{Command, NVME_PERMISSION, Namespace, Parts, uring_command};
use super::{Fault, Verifier, wait_on_ring};
use crate::device::Device;
use crate::device::sg::refused;

/// Verify through a ring.
struct NvmeRing {
    ring: IoUring<squeue::Entry128, cqueue::Entry32>,
    file: File,
    namespace: Namespace,
    parts: Parts,
}

/// Verify, one at a time.
pub fn open(device: &Device, _: Bytes) -> Result<Box<dyn Verifier>, Fault> {
    let namespace = Namespace::of(device)?;
    let file = device.open_generic()?;
    let ring = IoUring::builder().build(2).map_err(|error| Fault::Refused(format!("io_uring: {error}")))?;
    let parts = namespace.parts(Extent { offset: Bytes(0), length: Bytes(0) });
    Ok(Box::new(NvmeRing { ring, file, namespace, parts }))
}

impl Verifier for NvmeRing {
    fn name(&self) -> &'static str {
        "nvme-verify"
    }

    fn start(&mut self, extent: Extent) -> Result<(), Fault> {
        self.parts = self.namespace.parts(extent);
        self.submit(extent)
    }

    fn wait(&mut self, timeout: Duration) -> Option<Result<(), Fault>> {
        if let Err(fault) = wait_on_ring(&self.ring.submitter(), timeout) {
            return Some(Err(fault));
        }
        let result = self.ring.completion().next()?.result();
        let told = match u32::try_from(result) {
            Ok(status) => self.parts.told(status),
            Err(_) => Err(refused(Errno::from_raw_os_error(-result), NVME_PERMISSION)),
        };
        match (told, self.parts.current()) {
            (Ok(()), Some(next)) => self.submit(next).err().map(Err),
            (told, _) => Some(told),
        }
    }
}

impl NvmeRing {
    fn submit(&mut self, extent: Extent) -> Result<(), Fault> {
        let command = self.namespace.verify(extent)?;
        let mut bytes = [0; 80];
        // SAFETY: both are plain bytes, and the command is the shorter one.
        unsafe { std::ptr::copy_nonoverlapping((&raw const command).cast(), bytes.as_mut_ptr(), size_of::<Command>()) };
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), uring_command()).cmd(bytes).build();
        // SAFETY: the command lies in the entry itself and points at no memory.
        let queued = unsafe { self.ring.submission().push(&entry) };
        queued.map_err(|_| Fault::Device("io_uring: the submission queue is full".into()))?;
        self.ring.submit().map_err(|error| Fault::Device(format!("io_uring: {error}")))?;
        Ok(())
    }
}
