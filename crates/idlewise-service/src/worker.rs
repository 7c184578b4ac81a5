//! A scrub of one disk, in a process of its own: where the disk hangs, nothing else does.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use idlewise::Nanos;
use idlewise::order::Order;
use rustix::process::{Pid, Signal, kill_process};

use crate::machine::Present;
use crate::{WhenBehind, Wish};

/// One that was asked to end has so long; then it is left to itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// The slowdown that a wish allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowed {
    mean_slowdown: Option<Nanos>,
    /// The largest.
    pub max_slowdown: Option<Nanos>,
    when_behind: WhenBehind,
    spend_up_to: Option<Nanos>,
}

impl From<&Wish> for Allowed {
    fn from(wish: &Wish) -> Self {
        let &Wish { mean_slowdown, max_slowdown, when_behind, spend_up_to, .. } = wish;
        Self { mean_slowdown, max_slowdown, when_behind, spend_up_to }
    }
}

/// The process.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    /// The mean slowdown that it was told, in seconds.
    pub mean_s: f64,
    /// The slowdown that was allowed when it began.
    pub wished: Allowed,
    /// Since when it runs.
    pub began: Instant,
    asked: Option<Instant>,
}

impl Worker {
    /// Starts one, with this mean slowdown. What is left of a pass is read in the `order` of that.
    ///
    /// # Errors
    /// If no process can be made.
    pub fn start(
        program: &Path,
        disk: &Present,
        wish: &Wish,
        mean_s: f64,
        order: Option<Order>,
        states: &Path,
    ) -> std::io::Result<Self> {
        let mut command = Command::new(program);
        command
            .arg("scrub")
            .arg(&disk.path)
            .args(["--quiet", "--json", "--order", order.map_or(&wish.order, |order| order.name.as_str())])
            .arg("--state-dir")
            .arg(states);
        let Order { regions, visit, .. } = order.unwrap_or(Order::SEQUENTIAL);
        let (regions, visit) = (regions.map(|regions| regions.to_string()), visit.map(|visit| format!("{}B", visit.0)));
        let told = [("--regions", regions), ("--visit", visit)];
        for (option, value) in told.into_iter().filter_map(|(option, value)| Some((option, value?))) {
            command.arg(option).arg(value);
        }
        // Of a kind of disk the default is the command's own.
        if wish.mean_slowdown.is_some() || wish.when_behind == WhenBehind::Spend {
            command.arg("--mean-slowdown").arg(format!("{}ns", (mean_s * 1e9) as u64));
        }
        if let Some(max) = wish.max_slowdown {
            command.arg("--max-slowdown").arg(format!("{}ns", max.0));
        }
        let with_us = || {
            // Without the service nobody would end it, where no service manager does.
            rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
            Ok(())
        };
        // SAFETY: between the fork and the program nothing is done but this system call.
        unsafe { command.pre_exec(with_us) };
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        Ok(Self { child, mean_s, wished: wish.into(), began: Instant::now(), asked: None })
    }

    /// Asks it to save where it is and to end.
    pub fn ask_to_end(&mut self) {
        if self.asked.is_none() {
            self.asked = Some(Instant::now());
            // The number of one that has ended may be another's.
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        }
    }

    /// Whether it was asked so long ago that it never will: its disk hangs.
    pub fn is_lost(&self) -> bool {
        self.asked.is_some_and(|asked| asked.elapsed() > PATIENCE)
    }

    /// Once it has ended: whether as it should, by the exit codes of `idlewise scrub`. Else what it said is in the journal.
    pub fn ended(&mut self) -> Option<bool> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(self.asked.is_some() || matches!(status.code(), Some(0 | 3 | 4)))
    }
}
