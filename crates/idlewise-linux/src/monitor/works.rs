//! Other background work of idlewise that may use a disk, as its own notes tell: the scrub of that disk, and commands that are run in the gaps.

use std::collections::BTreeSet;
use std::fs;

use idlewise::Nanos;

use super::now;
use crate::command::running_in;
use crate::scrub::Process;
use crate::scrub::claim::{note_of, own_folder};

/// How often it is looked for others.
const AGAIN: Nanos = Nanos::from_secs(1);
/// No more of them are told apart.
const MOST: usize = 64;
/// What tells the number of a process from that of a control group (works.bpf.h).
const IS_PROCESS: u64 = 1 << 63;
/// The name space of processes in which the kernel counts (include/linux/proc_ns.h).
const FIRST_NAMESPACE: u64 = 0xeffffffc;

/// The others.
pub struct Works {
    disk: (u32, u32),
    looked: Option<Nanos>,
    /// Numbers of their control groups, and of their processes with a mark.
    known: BTreeSet<u64>,
}

impl Works {
    /// At a disk of these numbers; none is known yet.
    pub fn at(disk: (u32, u32)) -> Self {
        Self { disk, looked: None, known: BTreeSet::new() }
    }

    /// Looks again where it is time: who has gone and who has come, where something has changed.
    pub fn changes(&mut self) -> Option<(Vec<u64>, Vec<u64>)> {
        let now = now();
        if self.looked.is_some_and(|looked| now.since(looked) < AGAIN) {
            return None;
        }
        self.looked = Some(now);
        let found = self.find();
        if found == self.known {
            return None;
        }
        let before = std::mem::replace(&mut self.known, found);
        Some((before.difference(&self.known).copied().collect(), self.known.difference(&before).copied().collect()))
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.known.len() as u32
    }

    fn find(&self) -> BTreeSet<u64> {
        let Some(folder) = own_folder().filter(|folder| fs::exists(folder).unwrap_or(false)) else {
            return BTreeSet::new();
        };
        let me = Process::this();
        let scrub = note_of(&folder, self.disk).filter(|note| note.process != me);
        let scrub = scrub.filter(|note| note.process.pid_namespace == FIRST_NAMESPACE);
        let scrub = scrub.map(|note| u64::from(note.process.pid) | IS_PROCESS);
        let runs = running_in(&folder).into_iter().filter(|run| run.process != me).filter_map(|run| run.group);
        scrub.into_iter().chain(runs).take(MOST).collect()
    }
}
