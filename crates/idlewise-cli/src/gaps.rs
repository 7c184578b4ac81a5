//! What `run` and `owner-scrub` have in common: the goal for work that is held as a whole, and the line that one sees meanwhile.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use idlewise::Nanos;
use idlewise::report::printable::one_line;
use idlewise_linux::command::DiskSoFar;
use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::UsageError;
use crate::output::say;
use crate::screen;
use crate::scrub::words::fit;

/// How often the line is drawn, at most.
const HZ: u8 = 2;
const USUAL_WIDTH: usize = 80;

/// What others may suffer.
#[derive(clap::Args, Clone, Copy)]
pub struct Limits {
    /// Mean added response time that foreground requests may suffer, such as 1ms
    ///
    /// The mean is over all foreground requests of a disk, not only over those that are delayed. [default: 1ms for a hard disk, 10us
    /// for an SSD or NVMe disk]
    #[arg(long, value_name = "TIME")]
    pub mean_slowdown: Option<Nanos>,

    /// Say so when a foreground request was delayed by more than this, such as 50ms [default: 50ms for a hard disk, 5ms for an SSD, 1ms
    /// for an NVMe disk]
    ///
    /// It is watched, not enforced: a foreground request waits for what the disk has already been asked for.
    #[arg(long, value_name = "TIME")]
    pub max_slowdown: Option<Nanos>,

    /// Idle time of a disk before the work goes on [default: chosen from what is seen, and again every minute]
    #[arg(long, value_name = "TIME")]
    pub idle_wait: Option<Nanos>,
}

impl Limits {
    /// Refuses what nothing can keep.
    pub fn check(self) -> Result<(), UsageError> {
        let zero = self.mean_slowdown == Some(Nanos::ZERO);
        let less = self.max_slowdown.zip(self.mean_slowdown).is_some_and(|(max, mean)| max < mean);
        let wrong = [
            (zero, "--mean-slowdown 0: nothing could run; say what others may suffer, such as 1ms"),
            (less, "--max-slowdown is less than --mean-slowdown"),
        ];
        wrong.into_iter().find(|(is, _)| *is).map_or(Ok(()), |(_, text)| Err(UsageError(text.into())))
    }
}

/// The line.
pub struct Line {
    bar: Option<ProgressBar>,
    name: String,
    due: Instant,
    /// Disks of which it was said that a request waited for longer than wanted.
    said: Vec<String>,
    quiet: bool,
}

impl Line {
    /// None unless standard error is a terminal.
    pub fn new(quiet: bool, name: &str) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::with_draw_target(None, screen::target(HZ));
            bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is valid"));
            bar
        });
        let due = Instant::now() + Duration::from_secs(1);
        Self { bar, name: one_line(name).into_owned(), due, said: Vec::new(), quiet }
    }

    /// Says what is good to know.
    pub fn say(&self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Says what must be known, whoever wants to see no progress.
    pub fn warn(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| say!("idlewise: {}: {text}", self.name)),
            None => say!("idlewise: {}: {text}", self.name),
        }
    }

    /// Shows now and then what it cost the disks, and the pieces of a line about the work, the most important first.
    pub fn show(&mut self, so_far: impl FnOnce() -> (Vec<DiskSoFar>, Vec<String>)) {
        if self.quiet || Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + Duration::from_secs(1) / u32::from(HZ);
        let (disks, pieces) = so_far();
        for disk in &disks {
            let max = disk.measured.max_slowdown;
            if max > disk.goal.max_slowdown && !self.said.contains(&disk.name) {
                self.said.push(disk.name.clone());
                let longest = disk.goal.max_slowdown;
                let text = format!(
                    "a foreground request of {} was slowed by {max}, more than the {longest} of --max-slowdown: that depends on what \
                     the disk was asked for before the work was held",
                    disk.name
                );
                self.say(&text);
            }
        }
        if let Some(bar) = &self.bar {
            let width = console::Term::stderr().size_checked().map_or(USUAL_WIDTH, |(_, columns)| usize::from(columns));
            let line = format!("{}: {}", self.name, fit(&pieces, width.saturating_sub(self.name.len() + 3)));
            bar.set_message(one_line(&line).into_owned());
            bar.tick();
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.iter().for_each(ProgressBar::finish_and_clear);
    }
}

/// What the work has cost a disk, and how much it may.
pub fn slowdown(disk: &DiskSoFar) -> String {
    let least = if disk.is_at_least { "at least " } else { "" };
    format!("{}: mean slowdown {least}{} (goal {})", disk.name, disk.measured.mean_slowdown(), disk.goal.mean_slowdown)
}

/// Of several disks, the one that it has cost most.
pub fn worst(disks: &[DiskSoFar]) -> Option<String> {
    disks.iter().max_by_key(|disk| disk.measured.mean_slowdown()).map(slowdown)
}
