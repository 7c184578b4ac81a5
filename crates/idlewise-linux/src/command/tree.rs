//! Processes that are held by signals, where there is no control group to hold them: all that come from one process. It is coarser: each is
//! stopped by itself, and what the kernel writes for them later is not known to be theirs.

use std::collections::BTreeMap;
use std::fs;
use std::io;

use rustix::process::{Pid, Signal, kill_process};

use super::guard::{Guard, Undo, resume};
use crate::ledger::Ledger;
use crate::monitor::Moved;
use crate::scrub::Process;

/// Which processes are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// This one and those that come from it.
    Of(u32),
    /// Those that come from this process itself, but for one.
    OursBut(u32),
}

/// Processes held by signals.
#[derive(Debug)]
pub struct Tree {
    which: Which,
    /// Those that are stopped now.
    stopped: BTreeMap<u32, Process>,
    /// Those that the guard was told of.
    told: BTreeMap<u32, Process>,
    /// For whoever comes when the guard is gone as well.
    ledger: Option<Ledger<Process>>,
}

impl Which {
    /// Their numbers, at the moment.
    pub fn processes(self) -> Vec<u32> {
        let mut found = match self {
            Self::Of(pid) => vec![pid],
            Self::OursBut(guard) => {
                let mut ours = children(std::process::id());
                ours.retain(|pid| *pid != guard);
                ours
            }
        };
        let mut next = 0;
        while let Some(&pid) = found.get(next) {
            let new: Vec<u32> = children(pid).into_iter().filter(|child| !found.contains(child)).collect();
            found.extend(new);
            next += 1;
        }
        found
    }
}

impl Tree {
    /// None is stopped yet.
    pub fn new(which: Which, ledger: Option<Ledger<Process>>) -> Self {
        Self { which, stopped: BTreeMap::new(), told: BTreeMap::new(), ledger }
    }

    /// Stops them all.
    ///
    /// # Errors
    /// If nobody is there to let them go, should this process be killed.
    pub fn hold(&mut self, guard: &mut Guard) -> io::Result<()> {
        // One that is not stopped yet may have made another.
        loop {
            let mut new = false;
            for pid in self.which.processes() {
                if self.stopped.contains_key(&pid) {
                    continue;
                }
                let Some(process) = Process::of(pid) else { continue };
                if self.told.get(&pid) != Some(&process) {
                    guard.tell(&Undo::Stopped(process.clone()))?;
                    // That it cannot be written down is no reason not to: the guard knows as well.
                    let _ = self.ledger.as_mut().map(|ledger| ledger.add(process.clone()));
                    self.told.insert(pid, process.clone());
                }
                let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
                if number.is_some_and(|number| kill_process(number, Signal::STOP).is_ok()) {
                    new = true;
                }
                self.stopped.insert(pid, process);
            }
            if !new {
                return Ok(());
            }
        }
    }

    /// Lets them go on.
    pub fn let_go(&mut self) {
        // A parent that waits for a child, as su does, stops itself if it finds the child stopped: children go first.
        std::mem::take(&mut self.stopped).values().rev().for_each(resume);
    }

    /// Lets those go on once more that stand still though they were let go: one may have stopped itself with a child of its own.
    pub fn let_go_again(&self) {
        let stands = |process: &&Process| !self.stopped.contains_key(&process.pid) && process.is_stopped();
        self.told.values().rev().filter(stands).for_each(resume);
    }

    /// Whether none is left of those that are meant, and of those that were held once.
    pub fn is_over(&self) -> bool {
        let gone = |process: &Process| process.is_alive() != Some(true);
        self.which.processes().iter().all(|pid| Process::of(*pid).is_none()) && self.told.values().all(gone)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.let_go();
        // Whoever comes next would let go of nobody.
        let _ = self.ledger.as_mut().map(Ledger::clear);
    }
}

/// Bytes that processes have asked their disks for, by what the kernel counts of each (proc_pid_io(5)). What one did that is gone stays
/// counted.
#[derive(Debug, Default)]
pub struct Asked(BTreeMap<u32, Moved>);

impl Asked {
    /// So far, of those that are there now and those that were.
    pub fn so_far(&mut self, processes: &[u32]) -> Moved {
        for &pid in processes {
            if let Ok(told) = fs::read_to_string(format!("/proc/{pid}/io")) {
                self.0.insert(pid, moved(&told));
            }
        }
        self.0.values().fold(Moved::default(), |sum, one| Moved {
            read: sum.read.saturating_add(one.read),
            written: sum.written.saturating_add(one.written),
        })
    }
}

fn moved(told: &str) -> Moved {
    let field = |name: &str| {
        let value = told.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.and_then(|value| value.parse::<u64>().ok()).unwrap_or(0)
    };
    let written = field("write_bytes").saturating_sub(field("cancelled_write_bytes"));
    Moved { read: field("read_bytes"), written }
}

/// The children of a process, by all of its threads.
pub fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_asked_for_is_what_it_read_and_wrote_but_for_what_it_took_back() {
        let told = "rchar: 9\nwchar: 8\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 4096\n";
        assert_eq!(moved(told), Moved { read: 4096, written: 4096 });
        assert_eq!(moved(""), Moved::default());
    }

    #[test]
    fn children_of_children_are_meant_too() {
        let mut shell = std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let began = std::time::Instant::now();
        let found = loop {
            let found = Which::Of(shell.id()).processes();
            if found.len() == 2 || began.elapsed().as_secs() > 20 {
                break found;
            }
        };
        assert!(found.len() == 2 && Which::OursBut(0).processes().contains(&found[1]), "{found:?}");
        assert!(!Which::OursBut(shell.id()).processes().contains(&found[1]));
        let _ = kill_process(Pid::from_raw(found[1] as i32).unwrap(), Signal::KILL);
        shell.wait().unwrap();
    }
}
