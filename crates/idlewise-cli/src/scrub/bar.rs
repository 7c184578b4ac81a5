//! The progress of a scrub: how far, how fast, how long still, and why it waits.

use std::time::{Duration, Instant};

use crate::output::say;
use idlewise::report::printable::one_line;
use idlewise::{Nanos, Rate};
use idlewise_linux::device::Device;
use idlewise_linux::scrub::{Doing, Progress};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time between two lines where standard error is no terminal.
const LINE: Duration = Duration::from_secs(30);

/// A bar on a terminal, a line now and then elsewhere, nothing when quiet.
pub struct Bar {
    bar: ProgressBar,
    quiet: bool,
    terminal: bool,
    last_line: Instant,
    device: String,
    /// What was in the way of the last checkpoint, as told.
    unsaved: Option<String>,
}

impl Bar {
    /// A bar for the device, below those of others.
    pub fn new(quiet: bool, device: &Device, others: Option<&MultiProgress>) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(5) };
        let mut bar = ProgressBar::with_draw_target(Some(device.size.0), target);
        if let Some(others) = others.filter(|_| !quiet) {
            bar = others.add(bar);
        }
        let style = ProgressStyle::with_template("{prefix} [{bar:30}] {msg}").expect("the template is valid");
        bar.set_style(style.progress_chars("=> "));
        let name = one_line(&device.path.display().to_string()).into_owned();
        bar.set_prefix(name.clone());
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        Self { bar, quiet, terminal, last_line: Instant::now(), device: name, unsaved: None }
    }

    /// Shows for which array or disk it waits.
    pub fn queue(&mut self, whole: &str) {
        self.tell(0, &format!("waiting, another part of {whole} is being scrubbed"));
    }

    /// Shows what is learnt before the scrub.
    pub fn learn(&mut self, doing: &Doing, done: f64) {
        let text = format!("{} {:.0} %", words(doing), done * 100.0);
        self.tell((done * self.bar.length().unwrap_or(0) as f64) as u64, &text);
    }

    /// Shows where the scrub stands.
    pub fn show(&mut self, progress: &Progress) {
        let seconds = progress.elapsed.as_secs_f64();
        let rate = progress.verified_now.0 as f64 / seconds.max(1e-9);
        let left = progress.size.0.saturating_sub(progress.verified.0) as f64 / rate;
        let left = if left.is_finite() { Nanos((left * 1e9) as u64).to_string() } else { "unknown".into() };
        let bad = if progress.bad_blocks > 0 { format!(", {} bad blocks", progress.bad_blocks) } else { String::new() };
        let text = format!(
            "{} of {}, {}, left {left}{bad}, slowdown {} mean {} max: {}",
            progress.verified,
            progress.size,
            Rate(rate as u64),
            progress.measured.mean_slowdown(),
            progress.measured.max_slowdown,
            words(&progress.doing)
        );
        self.tell(progress.verified.0, &text);
        if self.unsaved != progress.unsaved {
            self.unsaved.clone_from(&progress.unsaved);
            let line = match &self.unsaved {
                Some(error) => format!("cannot be saved, going on and trying again: {error}"),
                None => "its checkpoint is saved again".into(),
            };
            self.warn(&line);
        }
    }

    /// Says what must be known, quiet or not.
    pub fn warn(&self, line: &str) {
        self.bar.suspend(|| say!("idlewise: {}: {line}", self.device));
    }

    /// Says what is good to know.
    pub fn say(&self, line: &str) {
        if !self.quiet {
            self.warn(line);
        }
    }

    fn tell(&mut self, position: u64, text: &str) {
        if self.quiet {
            return;
        }
        if self.terminal {
            self.bar.set_position(position);
            self.bar.set_message(one_line(text).into_owned());
        } else if self.last_line.elapsed() >= LINE {
            self.last_line = Instant::now();
            say!("{}: {text}", self.device);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// What it does, and why it waits.
fn words(doing: &Doing) -> String {
    match doing {
        Doing::Observing => "watching the foreground".into(),
        Doing::Calibrating => "measuring the disk".into(),
        Doing::Verifying => "verifying".into(),
        Doing::Narrowing => "narrowing down unreadable blocks".into(),
        Doing::ForegroundActive => "waiting, the foreground is active".into(),
        Doing::IdleWait => "waiting, not idle for long enough".into(),
        Doing::PolicyStopped => "waiting for the next idle interval".into(),
        Doing::Retrying => "waiting, the last request was disturbed".into(),
        Doing::Others(who) => format!("waiting, {who}"),
        Doing::Hung(time) => format!("a request has hung for {time}"),
    }
}
