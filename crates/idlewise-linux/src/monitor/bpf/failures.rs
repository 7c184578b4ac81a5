//! Reads of some disks that fail, each with its place: `failed.bpf.c`.

use std::io;

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, RingBuffer};

use super::{MonitorError, Told, explain, failed, lock, map_of, ring_of, silence_libbpf};
use crate::device::WholeDisk;
use crate::monitor::FailedRead;

/// The program, compiled from `src/bpf/failed.bpf.c`.
const PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/failed.bpf.o"));
/// The kernel keeps a device's minor number in so many bits.
const MINOR_BITS: u32 = 20;

/// What sees them.
pub struct Failures {
    // Nothing is attached any more once these are dropped.
    _links: Vec<Link>,
    ring: RingBuffer<'static>,
    seen: Told<FailedRead>,
    lost: MapHandle,
    _object: Object,
}

// SAFETY: as for the monitor: the raw pointers inside are to memory that libbpf allocated and that no thread but the owner of this value
// touches.
unsafe impl Send for Failures {}

impl Failures {
    /// Begins to look at these.
    pub fn of(disks: &[WholeDisk]) -> Result<Self, MonitorError> {
        silence_libbpf();
        Self::load(disks).map_err(|error| MonitorError { monitor: "bpf", problem: explain(&error) })
    }

    fn load(disks: &[WholeDisk]) -> Result<Self, libbpf_rs::Error> {
        let object = ObjectBuilder::default().name("failed")?.open_memory(PROGRAM)?.load()?;
        let map = map_of(&object, "disks")?;
        for disk in disks {
            let (major, minor) = disk.numbers();
            let is_stacked = !disk.has_requests();
            map.update(&(major << MINOR_BITS | minor).to_ne_bytes(), &[is_stacked.into()], MapFlags::ANY)?;
        }
        let (ring, seen) = ring_of(&map_of(&object, "failures")?, decode)?;
        let lost = map_of(&object, ".bss")?;
        let links = object.progs_mut().map(|program| program.attach()).collect::<Result<_, _>>()?;
        Ok(Self { _links: links, ring, seen, lost, _object: object })
    }

    /// Those since it was last asked.
    ///
    /// # Errors
    /// If some could not be told of.
    pub fn take(&mut self) -> io::Result<Vec<FailedRead>> {
        self.ring.consume().map_err(|error| io::Error::other(failed(&error.to_string())))?;
        let lost = self.lost.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok().flatten();
        if lost.is_none_or(|lost| lost.iter().any(|byte| *byte != 0)) {
            return Err(io::Error::other("so many reads failed at once that not all of them are known"));
        }
        Ok(std::mem::take(&mut lock(&self.seen)))
    }
}

/// Reads a `struct read`.
fn decode(record: &[u8]) -> Option<FailedRead> {
    let record: &[u8; 16] = record.try_into().ok()?;
    let half = |at: usize| u32::from_ne_bytes(std::array::from_fn(|index| record[at + index]));
    let sector = u64::from_ne_bytes(std::array::from_fn(|index| record[index]));
    let disk = half(12);
    Some(FailedRead { disk: (disk >> MINOR_BITS, disk & ((1 << MINOR_BITS) - 1)), sector, bytes: half(8) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_the_programs_record() {
        let mut record = 77u64.to_ne_bytes().to_vec();
        record.extend([4096u32.to_ne_bytes(), (259u32 << MINOR_BITS | 300_000).to_ne_bytes()].concat());
        let read = FailedRead { disk: (259, 300_000), sector: 77, bytes: 4096 };
        assert_eq!((decode(&record), decode(&record[1..])), (Some(read), None));
    }
}
