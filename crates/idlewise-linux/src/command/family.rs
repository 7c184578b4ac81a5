//! A process and all that come from it. Each is known by more than its number, which another may have a moment later.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::scrub::Process;

/// Whom the others come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Root {
    /// This one, which is one of them.
    Process(Process),
    /// This process itself, which is none of them.
    Ours,
    /// Its first child, once there is one: process 1 becomes the parent of whoever is left alone, wherever that comes from.
    FirstOfOurs(Option<Process>),
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Which it is.
    pub process: Process,
    /// The number of its parent.
    pub parent: u32,
}

/// All of them. Whose parents have ended are still meant.
#[derive(Clone, Debug)]
pub struct Family {
    root: Root,
    known: BTreeMap<u32, Process>,
    /// Those that come from this process too, and are none of them.
    others: BTreeMap<u32, Process>,
}

impl Member {
    /// The one with this number, if there is one.
    pub fn of(pid: u32) -> Option<Self> {
        Process::and_parent(pid).map(|(process, parent)| Self { process, parent })
    }
}

impl Family {
    /// A process, and whoever comes from it.
    pub fn of(process: Process) -> Self {
        Self { root: Root::Process(process), known: BTreeMap::new(), others: BTreeMap::new() }
    }

    /// Whoever comes from this process from now on.
    pub fn to_come() -> Self {
        let others = children_of(std::process::id()).into_iter().map(|child| (child.process.pid, child.process));
        let root = if std::process::id() == 1 { Root::FirstOfOurs(None) } else { Root::Ours };
        Self { root, known: BTreeMap::new(), others: others.collect() }
    }

    /// Who is there at the moment, parents first.
    pub fn members(&mut self) -> Vec<Member> {
        let first = match &mut self.root {
            Root::Process(process) => {
                Member::of(process.pid).filter(|now| now.process == *process).into_iter().collect()
            }
            root => {
                // Theirs become this process's when they have ended.
                all(Vec::new(), &mut self.others);
                let mut ours = children_of(std::process::id());
                ours.retain(|child| self.others.get(&child.process.pid) != Some(&child.process));
                if let Root::FirstOfOurs(first) = root {
                    *first = first.take().or_else(|| ours.first().map(|child| child.process.clone()));
                    ours.retain(|child| Some(&child.process) == first.as_ref());
                }
                ours
            }
        };
        all(first, &mut self.known)
    }
}

/// These, and whoever comes from them or from those that are known, parents first; from now on these are known.
fn all(mut found: Vec<Member>, known: &mut BTreeMap<u32, Process>) -> Vec<Member> {
    let mut seen = BTreeMap::new();
    let mut orphans = std::mem::take(known).into_values();
    let mut next = 0;
    loop {
        while let Some(member) = found.get(next).cloned() {
            next += 1;
            if seen.insert(member.process.pid, member.process.clone()).is_none() {
                let children = children_of(member.process.pid);
                // The list was of somebody else if this one has ended meanwhile.
                if member.process.is_here() {
                    found.extend(children);
                }
            }
        }
        let is_new = |process: &Process| !seen.contains_key(&process.pid);
        let orphan = orphans.find(is_new);
        let Some(orphan) = orphan else { break };
        found.extend(Member::of(orphan.pid).filter(|now| now.process == orphan));
    }
    let mut once = BTreeSet::new();
    found.retain(|member| once.insert(member.process.pid));
    *known = seen;
    found
}

/// The children of whoever has this number, by all of its threads.
pub fn children_of(pid: u32) -> Vec<Member> {
    let is_child = |child: &Member| child.parent == pid;
    children(pid).into_iter().filter_map(Member::of).filter(is_child).collect()
}

/// Their numbers, those included that have ended and that nobody has asked about.
pub fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    lists.flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use rustix::process::Signal;

    use super::*;

    fn numbers(family: &mut Family) -> Vec<u32> {
        family.members().into_iter().map(|member| member.process.pid).collect()
    }

    #[test]
    fn children_of_children_are_meant_too() {
        let mut ours = Family::to_come();
        let mut shell = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let mut family = Family::of(Process::of(shell.id()).unwrap());
        let began = Instant::now();
        let found = loop {
            let found = numbers(&mut family);
            if found.len() == 2 || began.elapsed().as_secs() > 20 {
                break found;
            }
        };
        assert!(found.len() == 2 && numbers(&mut ours).contains(&found[1]), "{found:?}");
        // Whoever was there before is not.
        let mut later = Family::to_come();
        assert!(!found.iter().any(|one| numbers(&mut later).contains(one)));
        // Also when the one that it came from has ended.
        shell.kill().unwrap();
        shell.wait().unwrap();
        assert_eq!(numbers(&mut family), found[1..]);
        assert!(Process::of(found[1]).unwrap().signal(Signal::KILL));
        let began = Instant::now();
        while !numbers(&mut family).is_empty() && began.elapsed().as_secs() < 20 {}
        assert_eq!(numbers(&mut family), [0; 0]);
    }

    /// A number that another process has by now is nobody's, and neither is what comes from that one.
    #[test]
    fn who_has_the_number_of_one_that_ended_is_not_meant() {
        let mut command = Command::new("sh");
        let mut shell = command.args(["-c", "sleep 60 & echo $!; wait"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let now = Process::of(shell.id()).unwrap();
        let before = Process { start_ticks: now.start_ticks - 1, ..now };
        assert_eq!(numbers(&mut Family::of(before.clone())), [0; 0]);
        let known = BTreeMap::from([(before.pid, before.clone())]);
        assert_eq!(numbers(&mut Family { known, ..Family::of(before) }), [0; 0]);
        assert!(Process::of(line.trim().parse().unwrap()).unwrap().signal(Signal::KILL));
        shell.wait().unwrap();
    }
}
