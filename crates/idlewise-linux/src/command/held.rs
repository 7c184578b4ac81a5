//! Whose disk work is run in the gaps, and how it is held.

use std::io;
use std::process::Command;

use super::cgroup::{Cgroup, release_left};
use super::guard::{Guard, Undo};
use super::hierarchy::Hierarchy;
use super::left;
use super::tree::{Asked, Tree, Which, children, patiently};
use crate::files::told_by_kernel;
use crate::ledger::Ledger;
use crate::monitor::Counter;
use crate::scrub::Process;

/// Processes that make others, or go back, are moved so often; who is outside then is told of.
const ROUNDS: usize = 100;

/// Who is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A command that is about to be started.
    Command,
    /// A process that runs, and those that come from it.
    Process(u32),
    /// A unit of systemd that runs.
    Unit(String),
}

/// Processes that are held and let go.
#[derive(Debug)]
pub struct Held {
    how: How,
    guard: Guard,
    /// Whether they are held now.
    held: bool,
    /// The process that was taken over.
    pid: Option<u32>,
    /// Why signals are used rather than a group.
    pub coarse: Option<String>,
}

#[derive(Debug)]
enum How {
    Group(Cgroup),
    Tree(Tree, Which),
}

impl Whose {
    /// Whether they can be held from here: whoever is held together with this process never lets anybody go.
    fn check(&self) -> io::Result<()> {
        let me = std::process::id();
        let with_us = match self {
            Self::Command => false,
            Self::Process(pid) => {
                let is_there = Process::of(*pid).is_some();
                is_there.then_some(()).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such process"))?;
                // Such a thread has no memory of its own, as a process that has ended.
                let has_none = |status: String| !status.contains("\nVmSize:") && !status.contains("\nState:\tZ");
                if told_by_kernel(format!("/proc/{pid}/status")).is_ok_and(has_none) {
                    return Err(io::Error::other("a thread of the kernel cannot be held"));
                }
                Which::Of(*pid).processes().contains(&me)
            }
            Self::Unit(name) => Cgroup::existing(Hierarchy::find()?.of_unit(name)?)?.processes().contains(&me),
        };
        if with_us {
            return Err(io::Error::other("idlewise itself comes from it, and would be held as well"));
        }
        Ok(())
    }
}

impl Held {
    /// Takes them over, without holding them yet; `guard` is the program that calls [`stand`](super::stand).
    ///
    /// # Errors
    /// If they are not there, or can be held in no way.
    pub fn new(whose: &Whose, guard: Command) -> io::Result<Self> {
        whose.check()?;
        let mut guard = Guard::start(guard)?;
        let hierarchy = Hierarchy::find();
        left::release();
        if let Ok(hierarchy) = &hierarchy {
            release_left(hierarchy);
        }
        let group = hierarchy.and_then(|hierarchy| match whose {
            Whose::Command => Cgroup::create(hierarchy.of_process("self")?),
            Whose::Process(pid) => Cgroup::create(hierarchy.of_process(&pid.to_string())?),
            Whose::Unit(name) => Cgroup::existing(hierarchy.of_unit(name)?),
        });
        let (how, coarse) = match (group, whose) {
            (Ok(group), _) => {
                guard.tell(&Undo::Group(group.clone())).inspect_err(|_| drop(group.release()))?;
                (How::Group(group), None)
            }
            (Err(error), Whose::Unit(_)) => return Err(error),
            (Err(error), _) => {
                let which = match whose {
                    Whose::Process(pid) => Which::Of(*pid),
                    _ => Which::OursBut(guard.pid()),
                };
                if *whose == Whose::Command {
                    // Whose parent ends is this process's from then on, and stays among those that come from it.
                    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
                }
                let (ledger, unnoted) = match Ledger::begin() {
                    Ok(ledger) => (Some(ledger), String::new()),
                    Err(why) => (
                        None,
                        format!("; if idlewise and its guard are both killed, only kill -CONT lets it go on ({why})"),
                    ),
                };
                (How::Tree(Tree::new(which, ledger), which), Some(error.to_string() + &unnoted))
            }
        };
        let pid = if let Whose::Process(pid) = whose { Some(*pid) } else { None };
        let mut held = Self { how, guard, held: false, pid, coarse };
        if let (Whose::Process(pid), How::Group(group)) = (whose, &held.how) {
            held.move_all(*pid, &group.clone())?;
        }
        Ok(held)
    }

    /// Moves a process and those that come from it into the group. One that has not been moved yet may make another meanwhile.
    fn move_all(&mut self, pid: u32, group: &Cgroup) -> io::Result<()> {
        let home = Hierarchy::find()?.of_process(&pid.to_string()).ok();
        group.take(pid)?;
        for _ in 0..ROUNDS {
            let inside = group.processes();
            // Others are in groups of their own, whose limits and names are theirs.
            let is_at_home =
                |pid: &u32| Hierarchy::find().and_then(|all| all.of_process(&pid.to_string())).ok() == home;
            let outside: Vec<u32> =
                Which::Of(pid).processes().into_iter().filter(|pid| !inside.contains(pid) && is_at_home(pid)).collect();
            let moved = outside.iter().filter(|pid| group.take(**pid).is_ok()).count();
            if moved == 0 {
                break;
            }
        }
        Ok(())
    }

    /// The group, if they are held by one.
    pub fn group(&self) -> Option<&Cgroup> {
        match &self.how {
            How::Group(group) => Some(group),
            How::Tree(..) => None,
        }
    }

    /// Their numbers, at the moment.
    pub fn processes(&self) -> Vec<u32> {
        match &self.how {
            How::Group(group) => group.processes(),
            How::Tree(_, which) => which.processes(),
        }
    }

    /// What counts the bytes that they ask their disks for.
    pub fn counter(&self) -> Counter {
        let mut asked = Asked::default();
        match &self.how {
            How::Group(group) => {
                let group = group.clone();
                patiently(move || asked.so_far(&group.processes()))
            }
            How::Tree(_, which) => {
                let which = *which;
                patiently(move || asked.so_far(&which.processes()))
            }
        }
    }

    /// Whether they are held now.
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Holds them, or lets them go.
    ///
    /// # Errors
    /// If that is not possible any more.
    pub fn hold(&mut self, held: bool) -> io::Result<()> {
        match &mut self.how {
            How::Group(group) => group.freeze(held)?,
            How::Tree(tree, _) if held => tree.hold(&mut self.guard)?,
            How::Tree(tree, _) => tree.let_go(),
        }
        self.held = held;
        Ok(())
    }

    /// Now and then: takes note of the end of those that became children of this process when their parents ended (`main` is somebody else's
    /// to wait for), and lets those go on that stand still though nobody holds them.
    pub fn look_after(&self, main: Option<u32>) {
        let How::Tree(tree, which) = &self.how else { return };
        if !self.held {
            tree.let_go_again();
        }
        let Which::OursBut(guard) = which else { return };
        for pid in children(std::process::id()).into_iter().filter(|pid| pid != guard && Some(*pid) != main) {
            let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
            let _ = rustix::process::waitpid(pid, rustix::process::WaitOptions::NOHANG);
        }
    }

    /// Processes that come from this one and are in no group that is held: they have left it.
    pub fn outside(&self, main: u32) -> Vec<u32> {
        let How::Group(group) = &self.how else { return Vec::new() };
        let inside = group.processes();
        let all = Which::Of(main).processes();
        all.into_iter().filter(|pid| !inside.contains(pid) && Process::of(*pid).is_some()).collect()
    }

    /// Whether a group has become empty, and nobody is left of a process and those that came from it.
    pub fn is_over(&self) -> bool {
        let is_left = self.pid.is_some_and(|pid| Process::of(pid).is_some());
        match &self.how {
            How::Group(group) => group.processes().is_empty() && !is_left,
            How::Tree(tree, _) => tree.is_over(),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // A tree lets its processes go by itself.
        if let How::Group(group) = &self.how {
            let _ = group.release();
        }
    }
}
