//! Whether a verify command reads the medium. Emulated disks and logical units of servers answer it with "good" and read nothing: QEMU's
//! SCSI and SATA disks, and Linux's own target, do. What takes no longer for megabytes than for a block has not read them.

use std::time::{Duration, Instant};

use idlewise::Bytes;
use idlewise::order::Extent;

use super::{Fault, Verifier};
use crate::device::Device;
use crate::files::told_by_kernel;

/// A disk whose time for the first grows by so much surely reads. Else it is a fast one, if any, and the second is cheap.
const FIRST: Bytes = Bytes::from_kib(1024);
const SURELY: Duration = Duration::from_millis(1);
const SECOND: Bytes = Bytes::from_kib(16 * 1024);
/// No disk verifies more in a second.
const FASTEST: u64 = 16_000_000_000;
/// So many requests for a block and as many for much are timed in turns, and the fastest of each counts: what holds up one now and then would
/// have to hold up each of them.
const PAIRS: u64 = 8;
/// Before each, the disk may have so much time to become idle.
const BUSY: Duration = Duration::from_millis(50);
const LOOK: Duration = Duration::from_millis(1);
/// One may take so long: a drive tries long to read what it cannot.
const PATIENCE: Duration = Duration::from_secs(30);

/// Who makes disks that answer without reading, by the beginning of vendor or model.
const PRETENDERS: [&str; 2] = ["QEMU", "LIO-ORG"];

/// Whether the verifier of the disk that a device is on reads.
///
/// # Errors
/// [`Fault::Refused`] if it answers without reading; or what was in the way.
pub fn prove(device: &Device, mut of_the_disk: Box<dyn Verifier>) -> Result<(), Fault> {
    if [device.vendor(), device.model()].iter().flatten().any(|name| pretends(name)) {
        return Err(refused());
    }
    let inflight = device.disk_folder().join("inflight");
    let is_idle = || told_by_kernel(&inflight).is_ok_and(|counts| counts.split_whitespace().all(|count| count == "0"));
    let wait = || {
        let began = Instant::now();
        while !is_idle() && began.elapsed() < BUSY {
            std::thread::sleep(LOOK);
        }
    };
    reads(&mut *of_the_disk, device.disk_size(), device.block, &wait)
}

fn pretends(name: &str) -> bool {
    PRETENDERS.iter().any(|begin| name.starts_with(begin))
}

fn refused() -> Fault {
    Fault::Refused("it answers without reading".into())
}

/// Asks a disk of this size for much and for little, at places that nobody has read just now, each time after a `wait`.
fn reads(verifier: &mut dyn Verifier, size: Bytes, block: u32, wait: &dyn Fn()) -> Result<(), Fault> {
    let block = Bytes(u64::from(block));
    // Of so little it cannot be told, and no disk is so small.
    if size.0 < 8 * SECOND.0 {
        return Ok(());
    }
    // Each somewhere else, from a third of it on.
    for much in [FIRST, SECOND].into_iter().filter(|much| 3 * PAIRS * much.0 <= size.0) {
        let mut times = [Duration::MAX; 2];
        for attempt in 0..PAIRS {
            for (time, length) in times.iter_mut().zip([block, much]) {
                let place = size.0 / 3 + 2 * attempt * much.0 + if length == much { much.0 } else { 0 };
                wait();
                match timed(verifier, Extent { offset: Bytes(place / block.0 * block.0), length })? {
                    Some(took) => *time = took.min(*time),
                    // Who finds an error reads.
                    None => return Ok(()),
                }
            }
        }
        let grown = times[1].saturating_sub(times[0]);
        if grown >= SURELY && grown >= fastest(much) {
            return Ok(());
        }
    }
    Err(refused())
}

/// How long that takes at least.
fn fastest(length: Bytes) -> Duration {
    Duration::from_nanos(length.0.saturating_mul(1_000_000_000) / FASTEST)
}

/// How long it takes; nothing where it cannot be read.
fn timed(verifier: &mut dyn Verifier, extent: Extent) -> Result<Option<Duration>, Fault> {
    let began = Instant::now();
    verifier.start(extent)?;
    loop {
        match verifier.wait(PATIENCE.saturating_sub(began.elapsed())) {
            Some(Ok(())) => return Ok(Some(began.elapsed())),
            Some(Err(Fault::Unreadable { .. })) => return Ok(None),
            Some(Err(other)) => return Err(other),
            None if began.elapsed() >= PATIENCE => return Err(Fault::Passing { kind: "timeout" }),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so long for each request and each MiB of it, more where something else is in the way, and may find an error.
    struct Emulated {
        each: Duration,
        each_mib: Duration,
        fails: bool,
        /// It holds up each request but every so many-th, by 5 ms.
        but_every: Option<usize>,
        asked: Vec<Extent>,
    }

    impl Verifier for Emulated {
        fn name(&self) -> &'static str {
            "emulated"
        }

        fn start(&mut self, extent: Extent) -> Result<(), Fault> {
            self.asked.push(extent);
            Ok(())
        }

        fn wait(&mut self, _: Duration) -> Option<Result<(), Fault>> {
            let mib = self.asked.last()?.length.0 as f64 / 1_048_576.0;
            let is_held_up = self.but_every.is_some_and(|every| !self.asked.len().is_multiple_of(every));
            let held_up = if is_held_up { Duration::from_millis(5) } else { Duration::ZERO };
            std::thread::sleep(self.each + self.each_mib.mul_f64(mib) + held_up);
            Some(if self.fails { Err(Fault::unreadable("medium")) } else { Ok(()) })
        }
    }

    fn emulated(each_us: u64, each_mib_us: u64) -> Emulated {
        let [each, each_mib] = [each_us, each_mib_us].map(Duration::from_micros);
        Emulated { each, each_mib, fails: false, but_every: None, asked: Vec::new() }
    }

    #[test]
    fn what_takes_as_long_for_much_as_for_little_reads_nothing() {
        let size = Bytes(1 << 30);
        let reads = |disk: &mut Emulated, size, block| reads(disk, size, block, &|| ());
        // A hard disk is believed after the smaller ones, a fast SSD after the larger ones.
        let mut hard_disk = emulated(4000, 6000);
        assert_eq!((reads(&mut hard_disk, size, 512), hard_disk.asked.len() as u64), (Ok(()), 2 * PAIRS));
        let mut fast = emulated(50, 250);
        assert_eq!(reads(&mut fast, size, 512), Ok(()));
        assert_eq!(fast.asked.len() as u64, 4 * PAIRS);
        let mut nothing = emulated(500, 0);
        assert!(matches!(reads(&mut nothing, size, 4096), Err(Fault::Refused(_))));
        // No two ask for the same place, and each for whole blocks of the disk.
        let asked = |place: u64| nothing.asked.iter().filter(|extent| extent.offset.0 == place).count();
        assert!(nothing.asked.iter().all(|extent| asked(extent.offset.0) <= 2 && extent.offset.0 % 4096 == 0));
        assert!(nothing.asked.iter().all(|extent| extent.end() <= size));
        // Four of five of its requests are held up.
        let mut busy = Emulated { but_every: Some(5), ..emulated(500, 0) };
        assert!(matches!(reads(&mut busy, size, 4096), Err(Fault::Refused(_))));
        // Of a small one it cannot be told, and one that finds an error reads.
        assert_eq!(reads(&mut emulated(500, 0), Bytes(1 << 20), 512), Ok(()));
        assert_eq!(
            ["QEMU HARDDISK", "QEMU", "LIO-ORG", "FAULTY", "ATA"].map(pretends),
            [true, true, true, false, false]
        );
        assert_eq!(reads(&mut Emulated { fails: true, ..emulated(500, 0) }, size, 512), Ok(()));
    }
}
