//! Disks of one array do not work at once: a cap for each array.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many disks of each array are being scrubbed.
#[derive(Debug)]
pub struct Groups {
    most: usize,
    working: Mutex<BTreeMap<String, usize>>,
    left: Condvar,
}

/// Leave to work on a disk; given back when dropped.
#[derive(Debug)]
pub struct Leave<'g> {
    groups: &'g Groups,
    arrays: Vec<String>,
}

impl Groups {
    /// At most so many disks of one array at once.
    pub fn new(most: usize) -> Self {
        Self { most: most.max(1), working: Mutex::default(), left: Condvar::new() }
    }

    /// Waits until a disk of these arrays may be worked on; `waiting` is told now and then for which of them it waits. `None`
    /// when asked to stop.
    pub fn enter(&self, arrays: Vec<String>, stop: &AtomicBool, waiting: &mut dyn FnMut(&str)) -> Option<Leave<'_>> {
        const TICK: Duration = Duration::from_millis(200);
        let mut working = self.lock();
        loop {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            let full = arrays.iter().find(|array| working.get(*array).is_some_and(|&count| count >= self.most));
            let Some(full) = full else { break };
            waiting(full);
            working = self.left.wait_timeout(working, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
        for array in &arrays {
            *working.entry(array.clone()).or_default() += 1;
        }
        Some(Leave { groups: self, arrays })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        // Counts are whole whatever thread panicked.
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut working = self.groups.lock();
        for array in &self.arrays {
            working.entry(array.clone()).and_modify(|count| *count = count.saturating_sub(1));
        }
        self.groups.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn no_more_than_the_cap_of_one_array() {
        let groups = Groups::new(2);
        let (stop, now, most, total) =
            (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for disk in 0..8 {
                let (groups, stop, now, most, total) = (&groups, &stop, &now, &most, &total);
                scope.spawn(move || {
                    let arrays = vec!["md0".to_string(), format!("dm-{}", disk % 4)];
                    let leave = groups.enter(arrays, stop, &mut |_| ()).unwrap();
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(5));
                    now.fetch_sub(1, Ordering::SeqCst);
                    total.fetch_add(1, Ordering::SeqCst);
                    drop(leave);
                });
            }
        });
        assert_eq!((most.into_inner(), total.into_inner()), (2, 8));
    }

    #[test]
    fn who_is_in_no_array_never_waits_and_a_stop_ends_waiting() {
        let groups = Groups::new(1);
        let stop = AtomicBool::new(false);
        let _alone = groups.enter(Vec::new(), &stop, &mut |_| panic!("no array")).unwrap();
        let _also = groups.enter(Vec::new(), &stop, &mut |_| panic!("no array")).unwrap();
        let _first = groups.enter(vec!["md0".into()], &stop, &mut |_| ()).unwrap();
        let mut told = Vec::new();
        let second = groups.enter(vec!["md0".into()], &stop, &mut |array| {
            told.push(array.to_string());
            stop.store(true, Ordering::Relaxed);
        });
        assert!(second.is_none());
        assert_eq!(told, ["md0"]);
    }
}
