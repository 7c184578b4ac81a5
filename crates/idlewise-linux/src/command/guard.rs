//! A process beside this one that undoes what was done to others when this one is gone, however it ended.
//!
//! It is told of each thing before it is done, through a pipe. When the pipe is closed, by a kill as well, it lets all of them go.

use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::cgroup::Cgroup;
use super::family::children;
use crate::scrub::Process;

/// What is to be undone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Undo {
    /// Processes of a group are held.
    Group(Cgroup),
    /// A process is stopped by a signal.
    Stopped(Process),
    /// All were let go: who stands still now was stopped by somebody else, or stopped itself with a child that it waits for.
    Over,
}

/// The guard, as long as this process lives.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts it: `program` calls [`stand`].
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(mut program: Command) -> io::Result<Self> {
        program.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
        let apart = || {
            // What is typed at the terminal, or its end, is not for it.
            let _ = rustix::process::setsid();
            Ok(())
        };
        // SAFETY: between the fork and the program nothing is done but this system call.
        unsafe { program.pre_exec(apart) };
        let mut child = program.spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Tells it what is about to be done.
    ///
    /// # Errors
    /// If it is gone: then nothing may be done.
    pub fn tell(&mut self, undo: &Undo) -> io::Result<()> {
        let line = serde_json::to_string(undo)? + "\n";
        let pipe = self.pipe.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        pipe.write_all(line.as_bytes()).map_err(|error| io::Error::other(format!("the guard is gone: {error}")))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.tell(&Undo::Over);
        self.pipe = None;
        let _ = self.child.wait();
    }
}

/// What the guard does: it listens until there is nobody left to tell it anything, and undoes it all.
pub fn stand() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGPIPE] {
        // SAFETY: to ignore a signal installs no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let lines = io::stdin().lock().lines().map_while(Result::ok);
    let (mut told, mut most) = (Vec::<Undo>::new(), FEW);
    for one in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
        if matches!(one, Undo::Over) {
            told.retain(waits);
            continue;
        }
        told.push(one);
        if told.len() > most {
            told.retain(is_left);
            most = (2 * told.len()).max(FEW);
        }
    }
    told.iter().for_each(undo);
}

/// So many things are remembered before it is looked which of them are over.
const FEW: usize = 64;

/// Whether there may be something to undo.
fn is_left(done: &Undo) -> bool {
    match done {
        Undo::Group(_) => true,
        Undo::Stopped(process) => process.is_alive() != Some(false),
        Undo::Over => false,
    }
}

/// Whether it is a process with a child, or a group.
fn waits(done: &Undo) -> bool {
    match done {
        Undo::Stopped(process) => !children(process.pid).is_empty(),
        _ => true,
    }
}

fn undo(done: &Undo) {
    match done {
        Undo::Group(group) => drop(group.release()),
        Undo::Stopped(process) => resume(process),
        Undo::Over => {}
    }
}

/// Lets a process go on, if it is still the one that was stopped.
pub fn resume(process: &Process) {
    process.signal(Signal::CONT);
}
