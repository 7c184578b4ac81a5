//! Whose disk work is run in the gaps, and how it is held.

use std::io;
use std::process::Command;

use super::asked::{Asked, patiently};
use super::cgroup::{Cgroup, release_left};
use super::family::{Family, Member, children};
use super::guard::{Guard, Undo};
use super::hierarchy::Hierarchy;
use super::left::{self, Frozen};
use super::tree::Tree;
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
    Process(Process),
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
    taken: Option<Process>,
    /// Why signals are used rather than a group.
    pub coarse: Option<String>,
}

#[derive(Debug)]
enum How {
    /// Where it was there before, it is written down that it may be frozen.
    Group(Cgroup, Option<Ledger<Frozen>>),
    Tree(Box<Tree>),
}

impl Whose {
    /// Whether they can be held from here: whoever is held together with this process never lets anybody go.
    fn check(&self) -> io::Result<()> {
        let me = std::process::id();
        let with_us = match self {
            Self::Command => false,
            Self::Process(process) => {
                // Such a thread has no memory of its own, as a process that has ended.
                let has_none = |status: String| !status.contains("\nVmSize:") && !status.contains("\nState:\tZ");
                if told_by_kernel(format!("/proc/{}/status", process.pid)).is_ok_and(has_none) {
                    return Err(io::Error::other("a thread of the kernel cannot be held"));
                }
                let all = Family::of(process.clone()).members();
                all.iter().any(|member| member.process.pid == me)
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
        let hierarchy = Hierarchy::find();
        // Before it is looked whether somebody holds it: that may be a run that was killed.
        left::release();
        if let Ok(hierarchy) = &hierarchy {
            release_left(hierarchy);
        }
        whose.check()?;
        let mut guard = Guard::start(guard)?;
        let group = hierarchy.and_then(|hierarchy| match whose {
            Whose::Command => Cgroup::create(hierarchy.of_process("self")?),
            Whose::Process(process) => Cgroup::create(hierarchy.of_process(&process.pid.to_string())?),
            Whose::Unit(name) => Cgroup::existing(hierarchy.of_unit(name)?),
        });
        let (how, coarse) = match (group, whose) {
            (Ok(group), _) => {
                guard.tell(&Undo::Group(group.clone())).inspect_err(|_| drop(group.release()))?;
                let mut ledger = None;
                if let Whose::Unit(_) = whose {
                    ledger.insert(Ledger::begin()?).add(Frozen::of(&group)?)?;
                }
                (How::Group(group, ledger), None)
            }
            (Err(error), Whose::Unit(_)) => return Err(error),
            (Err(error), _) => {
                let family = match whose {
                    Whose::Process(process) => Family::of(process.clone()),
                    _ => Family::to_come(),
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
                (How::Tree(Box::new(Tree::new(family, ledger))), Some(error.to_string() + &unnoted))
            }
        };
        let taken = if let Whose::Process(process) = whose { Some(process.clone()) } else { None };
        let held = Self { how, guard, held: false, taken, coarse };
        if let (Some(process), How::Group(group, _)) = (&held.taken, &held.how) {
            move_all(process, group)?;
        }
        Ok(held)
    }

    /// The group, if they are held by one.
    pub fn group(&self) -> Option<&Cgroup> {
        match &self.how {
            How::Group(group, _) => Some(group),
            How::Tree(_) => None,
        }
    }

    /// What counts the bytes that they ask their disks for.
    pub fn counter(&self) -> Counter {
        let mut asked = Asked::default();
        match &self.how {
            How::Group(group, _) => {
                let group = group.clone();
                patiently(move || asked.so_far(group.processes().into_iter().filter_map(Member::of).collect()))
            }
            How::Tree(tree) => {
                let mut family = tree.family().clone();
                patiently(move || asked.so_far(family.members()))
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
            How::Group(group, _) => group.freeze(held)?,
            How::Tree(tree) if held => tree.hold(&mut self.guard)?,
            How::Tree(tree) => tree.let_go(),
        }
        self.held = held;
        Ok(())
    }

    /// Now and then: takes note of the end of those that became children of this process when their parents ended (`main` is somebody else's
    /// to wait for), and lets those go on that stand still though nobody holds them.
    pub fn look_after(&mut self, main: Option<u32>) {
        let guard = self.guard.pid();
        let How::Tree(tree) = &mut self.how else { return };
        if !self.held {
            tree.let_go_again();
        }
        if self.taken.is_some() {
            return;
        }
        for pid in children(std::process::id()).into_iter().filter(|pid| *pid != guard && Some(*pid) != main) {
            let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
            let _ = rustix::process::waitpid(pid, rustix::process::WaitOptions::NOHANG);
        }
    }

    /// One of `all` that is not held, and why: it has left the group, or may not be stopped.
    pub fn outside(&self, all: Option<&mut Family>) -> Option<(u32, &'static str)> {
        match &self.how {
            How::Group(group, _) => {
                let inside = group.processes();
                let mut outside: Vec<u32> = all?.members().into_iter().map(|member| member.process.pid).collect();
                outside.retain(|pid| !inside.contains(pid));
                // It may have been made after the group was read, and be gone again.
                let is_here = |pid: u32| std::path::Path::new("/proc").join(pid.to_string()).exists();
                let inside = group.processes();
                let pid = outside.into_iter().find(|&pid| !inside.contains(&pid) && is_here(pid));
                Some((pid?, "is in another control group"))
            }
            How::Tree(tree) => Some((tree.free()?, "is another user's")),
        }
    }

    /// Whether a group has become empty, and nobody is left of a process and those that came from it.
    pub fn is_over(&mut self) -> bool {
        let is_left = self.taken.as_ref().is_some_and(Process::is_here);
        match &mut self.how {
            How::Group(group, _) => !group.is_populated() && !is_left,
            How::Tree(tree) => tree.is_over(),
        }
    }
}

/// Moves a process and those that come from it into the group. One that has not been moved yet may make another meanwhile.
fn move_all(process: &Process, group: &Cgroup) -> io::Result<()> {
    let home_of = |process: &Process| Hierarchy::find()?.of_process(&process.pid.to_string());
    let take = |process: &Process| {
        group.take(process.pid)?;
        // The kernel takes a number: it may be another's by then, and who is in the group goes home with it.
        process.is_here().then_some(()).ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it has ended"))
    };
    let home = home_of(process).ok();
    take(process)?;
    let mut family = Family::of(process.clone());
    for _ in 0..ROUNDS {
        let inside = group.processes();
        // Others are in groups of their own, whose limits and names are theirs.
        let is_at_home = |process: &Process| home_of(process).ok() == home;
        let outside = family.members().into_iter().map(|member| member.process);
        let outside = outside.filter(|process| !inside.contains(&process.pid) && is_at_home(process));
        if outside.filter(|process| take(process).is_ok()).count() == 0 {
            break;
        }
    }
    Ok(())
}

impl Drop for Held {
    fn drop(&mut self) {
        // A tree lets its processes go by itself.
        if let How::Group(group, ledger) = &mut self.how {
            let is_free = group.release().is_ok();
            let _ = ledger.as_mut().filter(|_| is_free).map(Ledger::clear);
        }
    }
}
