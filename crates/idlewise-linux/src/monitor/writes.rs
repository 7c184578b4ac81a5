//! Writes of our own. A checkpoint that is saved on a disk which is watched, by this scrub or by that of another disk, reaches it
//! as the file system's writes: its monitor is told, so that it does not take them for foreground.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::device::shares_disk;

/// Told that a save begins (true) or has ended.
type Tell = Box<dyn Fn(bool) + Send>;

/// The monitors of this process.
static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());
/// The number of the next one.
static NEXT: AtomicU64 = AtomicU64::new(0);

struct Watched {
    number: u64,
    disk: (u32, u32),
    tell: Tell,
}

/// A monitor that is told, until it is dropped.
#[derive(Debug)]
pub struct Registration(u64);

/// A save under way, until it is dropped.
#[derive(Debug)]
pub struct Announcement(Vec<u64>);

impl Registration {
    /// Of the monitor of the disk with these numbers.
    pub fn new(disk: (u32, u32), tell: Tell) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        watched().push(Watched { number, disk, tell });
        Self(number)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        watched().retain(|one| one.number != self.0);
    }
}

impl Announcement {
    /// Begins a save on the file system of this device number.
    pub fn of(file_system: u64) -> Self {
        let watched = watched();
        let reached = watched.iter().filter(|one| shares_disk(file_system, one.disk));
        Self(reached.inspect(|one| (one.tell)(true)).map(|one| one.number).collect())
    }

    /// Whether no disk that is watched is written to.
    pub fn reaches_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        watched().iter().filter(|one| self.0.contains(&one.number)).for_each(|one| (one.tell)(false));
    }
}

fn watched() -> MutexGuard<'static, Vec<Watched>> {
    // The list is whole whoever panicked.
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicI32;

    use super::*;

    #[test]
    fn only_monitors_of_disks_that_are_reached_are_told_and_only_while_they_are_there() {
        let told = Arc::new(AtomicI32::new(0));
        let tell = |told: &Arc<AtomicI32>| -> Tell {
            let told = told.clone();
            Box::new(move |begins| {
                told.fetch_add(if begins { 1 } else { -1 }, Ordering::Relaxed);
            })
        };
        // A device number that nobody has may lead anywhere.
        let nowhere = rustix::fs::makedev(0, 0x000f_ffff);
        let first = Registration::new((4095, 1), tell(&told));
        let save = Announcement::of(nowhere);
        assert_eq!((told.load(Ordering::Relaxed), save.reaches_none()), (1, false));
        let second = Registration::new((4095, 2), tell(&told));
        drop(save);
        assert_eq!(told.load(Ordering::Relaxed), 0, "the second was not there when it began");
        let save = Announcement::of(nowhere);
        assert_eq!(told.load(Ordering::Relaxed), 2);
        drop((first, second));
        drop(save);
        assert_eq!(told.load(Ordering::Relaxed), 2, "nobody is left to tell");
    }
}
