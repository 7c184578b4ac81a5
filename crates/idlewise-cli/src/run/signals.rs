//! Signals: those for the command go to the command.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use anyhow::Context;
use idlewise_linux::files::told_by_kernel;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};

use crate::live::is_ignored;

/// By which somebody asks for the end.
const ENDS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
/// All that are told of.
const ALL: [i32; 7] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2];
/// Who sent it.
const NOBODY: u8 = 0;
const TERMINAL: u8 = 1;
const PROCESS: u8 = 2;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The end.
    End {
        /// By this signal.
        signal: i32,
        /// Whether all processes of the terminal were told.
        by_terminal: bool,
    },
    /// A pause, until SIGCONT.
    Pause {
        /// Whether all processes of the terminal were told.
        by_terminal: bool,
    },
    /// Something that only the command knows.
    Other {
        /// The signal.
        signal: i32,
    },
}

/// The signals that came and were not acted on yet.
pub struct Signals(Arc<[AtomicU8; ALL.len()]>);

impl Signals {
    /// From now on they end nothing by themselves. Those that are ignored stay so, here and in the command.
    pub fn new() -> anyhow::Result<Self> {
        let came = Arc::new(std::array::from_fn(|_| AtomicU8::new(NOBODY)));
        for (place, signal) in ALL.into_iter().enumerate().filter(|(_, signal)| !is_ignored(*signal)) {
            let came: Arc<[AtomicU8; ALL.len()]> = came.clone();
            let note = move |about: &libc::siginfo_t| {
                let by = if about.si_code == libc::SI_KERNEL { TERMINAL } else { PROCESS };
                came[place].store(by, Ordering::Relaxed);
            };
            // SAFETY: the handler stores to an atomic, which is allowed in one.
            unsafe { signal_hook_registry::register_sigaction(signal, note) }.context("a handler for signals")?;
        }
        Ok(Self(came))
    }

    /// What was asked for since this was last called.
    pub fn told(&self) -> Vec<Told> {
        let came = ALL.into_iter().zip(self.0.iter());
        let came = came.map(|(signal, by)| (signal, by.swap(NOBODY, Ordering::Relaxed)));
        came.filter(|(_, by)| *by != NOBODY).map(|(signal, by)| told(signal, by)).collect()
    }
}

fn told(signal: i32, by: u8) -> Told {
    match signal {
        SIGTSTP => Told::Pause { by_terminal: by == TERMINAL },
        _ if ENDS.contains(&signal) => Told::End { signal, by_terminal: by == TERMINAL },
        _ => Told::Other { signal },
    }
}

/// Hears of the end of children from now on; whether whoever started this process wants none to be heard of.
pub fn hear_of_children() -> bool {
    let ignored = is_ignored(SIGCHLD);
    if ignored {
        // SAFETY: the default installs no handler.
        unsafe { libc::signal(SIGCHLD, libc::SIG_DFL) };
    }
    ignored
}

/// Whether nobody in this session could let this process go on: the kernel stops nobody then who types Ctrl-Z.
pub fn is_alone() -> bool {
    let session = |pid| rustix::process::getsid(pid).ok();
    rustix::process::getppid().is_none_or(|parent| session(Some(parent)) != session(None))
}

/// Whether a signal waits for a process (proc_pid_status(5)): it was sent to the command as well.
fn waits_for(pid: u32, signal: i32) -> bool {
    let status = told_by_kernel(format!("/proc/{pid}/status")).unwrap_or_default();
    let masks = status.lines().filter_map(|line| line.strip_prefix("ShdPnd:").or(line.strip_prefix("SigPnd:")));
    let mut masks = masks.filter_map(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    masks.any(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Sends a signal to a process that is a child of this one, unless it waits for it already.
pub fn send(pid: u32, signal: i32) {
    if waits_for(pid, signal) {
        return;
    }
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        let _ = kill_process(pid, signal);
    }
}

/// Stops this process until SIGCONT.
pub fn stop_here() {
    let _ = kill_process(rustix::process::getpid(), Signal::STOP);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_terminal_told_the_command_itself_is_known() {
        assert_eq!(told(SIGINT, TERMINAL), Told::End { signal: SIGINT, by_terminal: true });
        assert_eq!(told(SIGTERM, PROCESS), Told::End { signal: SIGTERM, by_terminal: false });
        assert_eq!(
            (told(SIGTSTP, TERMINAL), told(SIGUSR1, PROCESS)),
            (Told::Pause { by_terminal: true }, Told::Other { signal: SIGUSR1 })
        );
    }
}
