//! Which programs are attached. Each costs every request of the machine some tens of nanoseconds.
//!
//! Those that see who waits for a place in the disk's queue (`waiting.bpf.h`) are needed only where places can run out. A scrub leaves half
//! of them free, so they are attached once others take nearly the other half, and taken off again when that was long ago. Waits within the
//! few milliseconds until they are attached count as short.

use std::ffi::OsStr;
use std::sync::atomic::Ordering;

use idlewise::Nanos;
use libbpf_rs::{Link, Object, ProgramInput, ProgramType};

use super::now;
use super::shared::{Settings, Variables};

/// Tells the others which process this is.
const INTRODUCE: &str = "introduce";
/// The programs of `waiting.bpf.h`.
const OF_WAITING: [&str; 6] = ["on_failure", "on_back_merge", "on_front_merge", "on_place", "on_split", "on_submit"];
/// The programs of `bios.bpf.h`, for a volume without requests.
const OF_BIOS: [&str; 2] = ["on_bio_end", "on_bio"];
/// The program that sees who has something written at once.
const OF_SYNC: &str = "on_sync";
/// A disk with fewer places is too slow for the cost to matter, and they run out at once.
const MANY: u32 = 32;
/// So long after the last crowd the programs are taken off.
const CALM: Nanos = Nanos::from_secs(60);

/// What is attached.
pub struct Attached {
    _links: Vec<Link>,
    /// Those of `waiting.bpf.h`, in their order.
    waiting: Vec<Link>,
    /// That of who has something written at once, while there are works of idlewise beside others.
    sync: Vec<Link>,
    when: When,
    /// Since when they are attached, or when the last crowd was seen.
    crowd: Nanos,
}

/// When it is looked who waits for a place in the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// While there is a crowd.
    Crowded,
    /// There is no queue.
    Never,
}

/// What a program is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Requests,
    Waiting,
    Sync,
    Bios,
}

impl Part {
    fn of(program: &OsStr) -> Self {
        let is_in = |names: &[&str]| names.iter().any(|name| program == *name);
        match () {
            () if is_in(&OF_WAITING) => Self::Waiting,
            () if is_in(&OF_BIOS) => Self::Bios,
            () if program == OF_SYNC => Self::Sync,
            () => Self::Requests,
        }
    }
}

/// Whether a program is of any use where it is bios that are watched, or requests: what the kernel has not is not loaded.
pub fn is_needed(program: &OsStr, bios: bool) -> bool {
    program == INTRODUCE || (Part::of(program) == Part::Bios) == bios
}

impl Attached {
    /// Tells the program which process this is, and attaches it in the order of its file.
    pub fn new(object: &Object, settings: &Settings) -> Result<Self, libbpf_rs::Error> {
        let when = match () {
            () if settings.bios => When::Never,
            () if settings.recording || settings.group != 0 || settings.crowd < MANY => When::Always,
            () => When::Crowded,
        };
        for program in object.progs_mut().filter(|program| program.prog_type() == ProgramType::Syscall) {
            program.test_run(ProgramInput::default())?;
        }
        let waiting = if when == When::Always { attach(object, Part::Waiting)? } else { Vec::new() };
        let watching = if settings.bios { Part::Bios } else { Part::Requests };
        // It knows of each bio what comes of it.
        let sync = if settings.group != 0 && !settings.bios { attach(object, Part::Sync)? } else { Vec::new() };
        Ok(Self { _links: attach(object, watching)?, waiting, sync, when, crowd: now() })
    }

    /// Attaches what sees who has something written at once, now that there is another work.
    pub fn see_syncs(&mut self, object: &Object) -> Result<(), libbpf_rs::Error> {
        if self.sync.is_empty() {
            self.sync = attach(object, Part::Sync)?;
        }
        Ok(())
    }

    /// Attaches or takes off what sees who waits; whether it was taken off just now.
    pub fn turn(&mut self, object: &Object, shared: &Variables) -> Result<bool, libbpf_rs::Error> {
        if self.when != When::Crowded {
            return Ok(false);
        }
        if shared.crowd_seen.load(Ordering::Relaxed) != 0 {
            shared.crowd_seen.store(0, Ordering::Relaxed);
            self.crowd = now();
            if self.waiting.is_empty() {
                self.waiting = attach(object, Part::Waiting)?;
            }
        } else if !self.waiting.is_empty() && now().since(self.crowd) > CALM {
            self.waiting.clear();
            return Ok(true);
        }
        Ok(false)
    }
}

fn attach(object: &Object, part: Part) -> Result<Vec<Link>, libbpf_rs::Error> {
    let mut links = Vec::new();
    for program in object.progs_mut().filter(|program| program.prog_type() != ProgramType::Syscall) {
        if Part::of(program.name()) == part {
            links.push(program.attach()?);
        }
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use libbpf_rs::MapCore as _;

    use super::*;
    use crate::device::Device;
    use crate::monitor::bpf::Bpf;
    use crate::monitor::bpf::tests::Loop;
    use crate::monitor::{Monitor, Purpose};

    #[test]
    fn root_waits_are_looked_for_while_there_is_a_crowd() {
        let Some(disk) = Loop::new() else { return };
        let device = Device::open(&disk.0).unwrap();
        let open = |purpose| Bpf::open(&device.whole(), purpose).unwrap();
        let mut monitor = open(Purpose::Scrub { end: device.size.0 });
        let turned = |monitor: &mut Bpf| {
            monitor.poll(std::time::Duration::ZERO, &mut Vec::new()).unwrap();
            monitor.attached.waiting.len()
        };
        assert_eq!(turned(&mut monitor), 0);
        monitor.shared.crowd_seen.store(1, Ordering::Relaxed);
        assert_eq!([(); 2].map(|()| turned(&mut monitor)), [OF_WAITING.len(); 2]);
        // Long after that, and whoever was thought to wait is forgotten.
        monitor.waiters.update(&7u32.to_ne_bytes(), &[0; 24], libbpf_rs::MapFlags::ANY).unwrap();
        monitor.shared.waiting.store(1, Ordering::Relaxed);
        monitor.attached.crowd = Nanos(now().0 - CALM.0 - 1);
        assert_eq!((turned(&mut monitor), monitor.shared.waiting.load(Ordering::Relaxed)), (0, 0));
        assert_eq!(open(Purpose::Recording).attached.waiting.len(), OF_WAITING.len());
    }
}
