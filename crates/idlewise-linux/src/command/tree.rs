//! Processes that are held by signals, where there is no control group to hold them: all that come from one process. It is coarser: each is
//! stopped by itself, and what the kernel writes for them later is not known to be theirs.

use std::collections::BTreeMap;
use std::io;

use rustix::process::Signal;

use super::family::{Family, Member};
use super::guard::{Guard, Undo, resume};
use crate::ledger::Ledger;
use crate::scrub::Process;

/// So many processes are remembered before it is looked which of them are gone.
const FEW: usize = 64;

/// Processes held by signals.
#[derive(Debug)]
pub struct Tree {
    family: Family,
    /// Those that are stopped now.
    stopped: BTreeMap<u32, Process>,
    /// Those that the guard was told of.
    told: BTreeMap<u32, Process>,
    /// One that could not be stopped, such as another user's.
    free: Option<u32>,
    /// When there are so many, those that are gone are forgotten.
    most: usize,
    /// For whoever comes when the guard is gone as well.
    ledger: Option<Ledger<Process>>,
}

impl Tree {
    /// None is stopped yet.
    pub fn new(family: Family, ledger: Option<Ledger<Process>>) -> Self {
        Self { family, stopped: BTreeMap::new(), told: BTreeMap::new(), free: None, most: FEW, ledger }
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
            for Member { process, .. } in self.family.members() {
                let pid = process.pid;
                // Whom its owner has stopped is not ours to let go.
                if self.stopped.get(&pid) == Some(&process) || process.is_stopped() {
                    continue;
                }
                if self.told.get(&pid) != Some(&process) {
                    guard.tell(&Undo::Stopped(process.clone()))?;
                    // That it cannot be written down is no reason not to: the guard knows as well.
                    let _ = self.ledger.as_mut().map(|ledger| ledger.add(process.clone()));
                    self.told.insert(pid, process.clone());
                }
                let signalled = process.signal(Signal::STOP);
                if !signalled && process.is_here() {
                    self.free.get_or_insert(pid);
                }
                new |= signalled;
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

    /// Lets those go on once more that stand still though they were let go: one that waits for a child may have stopped itself with it.
    pub fn let_go_again(&mut self) {
        let members = self.family.members();
        let waits = |process: &Process| members.iter().any(|child| child.parent == process.pid);
        let told = self.told.values().rev();
        told.filter(|process| waits(process) && process.is_stopped()).for_each(resume);
    }

    /// Whether none is left.
    pub fn is_over(&mut self) -> bool {
        self.family.members().is_empty()
    }

    /// One of them that could not be stopped.
    pub fn free(&self) -> Option<u32> {
        self.free
    }

    /// Who is meant.
    pub fn family(&self) -> &Family {
        &self.family
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.let_go();
        // Whoever comes next would let go of nobody.
        let _ = self.ledger.as_mut().map(Ledger::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shell makes process after process; what is written for them is bounded by those that live.
    #[test]
    fn the_dead_are_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let mut tree = Tree::new(Family::to_come(), Some(Ledger::within(folder.path()).unwrap()));
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

    /// Who was stopped by its owner stays so, and a number that is another's by now is not stopped.
    #[test]
    fn only_who_is_meant_is_stopped_and_let_go() {
        let sleeper = || std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (mut stopped_before, mut stranger) = (sleeper(), sleeper());
        let process = Process::of(stopped_before.id()).unwrap();
        let reused = Process::of(stranger.id()).unwrap();
        let gone = Process { start_ticks: reused.start_ticks - 1, ..reused.clone() };
        let until = |stopped: bool| {
            let began = std::time::Instant::now();
            while process.is_stopped() != stopped && began.elapsed().as_secs() < 20 {}
            assert_eq!(process.is_stopped(), stopped);
        };
        let guard = || {
            let mut program = std::process::Command::new("cat");
            program.arg("-");
            Guard::start(program).unwrap()
        };
        let mut guard = guard();
        let mut hold = |of: &Process| {
            let mut tree = Tree::new(Family::of(of.clone()), None);
            tree.hold(&mut guard).unwrap();
            tree
        };
        let tree = hold(&process);
        until(true);
        drop(tree);
        until(false);
        assert!(process.signal(Signal::STOP));
        until(true);
        drop(hold(&process));
        until(true);
        let tree = hold(&gone);
        assert!(tree.stopped.is_empty() && !reused.is_stopped());
        for child in [&mut stopped_before, &mut stranger] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
