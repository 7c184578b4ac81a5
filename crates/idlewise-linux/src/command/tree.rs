//! Processes that are held by signals, where there is no control group to hold them: all that come from one process. It is coarser: each is
//! stopped by itself, and what the kernel writes for them later is not known to be theirs.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::guard::{Guard, Undo, resume};
use crate::ledger::Ledger;
use crate::monitor::{Counter, Moved};
use crate::scrub::Process;

/// Which processes are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// This one and those that come from it.
    Of(u32),
    /// Those that come from this process itself, but for one.
    OursBut(u32),
}

/// So many processes are remembered before it is looked which of them are gone.
const FEW: usize = 64;

/// Processes held by signals.
#[derive(Debug)]
pub struct Tree {
    which: Which,
    /// Those that are stopped now.
    stopped: BTreeMap<u32, Process>,
    /// Those that the guard was told of.
    told: BTreeMap<u32, Process>,
    /// When there are so many, those that are gone are forgotten.
    most: usize,
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
        Self { which, stopped: BTreeMap::new(), told: BTreeMap::new(), most: FEW, ledger }
    }

    /// Stops them all.
    ///
    /// # Errors
    /// If nobody is there to let them go, should this process be killed.
    pub fn hold(&mut self, guard: &mut Guard) -> io::Result<()> {
        self.forget_the_dead();
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

    /// A shell makes process after process: what is remembered is bounded by those that live.
    fn forget_the_dead(&mut self) {
        if self.told.len() <= self.most {
            return;
        }
        self.told.retain(|_, process| process.is_alive() != Some(false));
        self.most = (2 * self.told.len()).max(FEW);
        let told = &self.told;
        let is_told = |process: &Process| told.get(&process.pid) == Some(process);
        let _ = self.ledger.as_mut().map(|ledger| ledger.retain(is_told));
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

/// Asks on a thread of its own. The kernel tells nothing of a process that is being replaced by another program, and that may take for ever:
/// a file that it closes then may lie on a file system that somebody else serves.
pub fn patiently(mut ask: impl FnMut() -> Moved + Send + 'static) -> Counter {
    const PATIENCE: Duration = Duration::from_millis(10);
    let (wanted, wants) = mpsc::channel::<()>();
    let (tells, told) = mpsc::channel();
    let answer = move || {
        while wants.recv().is_ok() {
            if tells.send(ask()).is_err() {
                break;
            }
        }
    };
    // It ends with the counter; in the middle of what is never told, with the process.
    let is_there = thread::Builder::new().name("counter".into()).spawn(answer).is_ok();
    let (mut last, mut asked) = (Moved::default(), false);
    Box::new(move || {
        let patience = if asked { Duration::ZERO } else { PATIENCE };
        asked = asked || is_there && wanted.send(()).is_ok();
        match told.recv_timeout(patience) {
            Ok(moved) => (last, asked) = (moved, false),
            // Who does not tell may have written.
            Err(_) => last.written = last.written.saturating_add(1),
        }
        last
    })
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

    /// Whoever pays for the answer never waits for it for long, and takes no answer for one that writes.
    #[test]
    fn who_never_tells_is_not_waited_for() {
        let (go_on, goes_on) = mpsc::channel::<()>();
        let mut asked = 0;
        let mut counter = patiently(move || {
            asked += 1;
            if asked == 2 {
                let _ = goes_on.recv();
            }
            Moved { read: 4096 * asked, written: 1000 * asked }
        });
        // The first answer may be late on a busy machine.
        let began = std::time::Instant::now();
        while counter().read != 4096 && began.elapsed().as_secs() < 20 {}
        let written = counter().written;
        let began = std::time::Instant::now();
        for more in 1..1000 {
            assert_eq!(counter(), Moved { read: 4096, written: written + more });
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        go_on.send(()).unwrap();
        let began = std::time::Instant::now();
        while counter().read < 8192 && began.elapsed().as_secs() < 20 {}
        assert!(counter().read >= 8192);
    }

    /// A shell makes process after process; what is written for them is bounded by those that live.
    #[test]
    fn the_dead_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let mut tree = Tree::new(Which::OursBut(0), Some(Ledger::within(folder.path()).unwrap()));
        let mut sleeper = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let alive = Process::of(sleeper.id()).unwrap();
        let told = (0..1000).map(|pid| Process { pid: 1 << 22 | pid, ..alive.clone() }).chain([alive.clone()]);
        for process in told {
            tree.forget_the_dead();
            tree.ledger.as_mut().unwrap().add(process.clone()).unwrap();
            tree.told.insert(process.pid, process);
        }
        assert!(tree.told.len() <= FEW + 1 && tree.told.contains_key(&alive.pid), "{}", tree.told.len());
        let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap();
        let lines = std::fs::read_to_string(file.path()).unwrap().lines().count();
        assert!(lines <= FEW + 2, "{lines}");
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        drop(tree);
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
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
