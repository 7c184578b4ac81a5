//! What one sees while a command runs in the gaps: a line on a terminal, and a summary at the end.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use idlewise::report::percent;
use idlewise::report::printable::one_line;
use idlewise::{Bytes, Nanos};
use idlewise_linux::command::{DiskSoFar, Progress, Why};
use indicatif::{ProgressBar, ProgressStyle};

use super::share_run;
use crate::output::say;
use crate::screen;
use crate::scrub::words::{fit, idle_wait, named};

/// How often it is drawn, at most.
const HZ: u8 = 2;
const USUAL_WIDTH: usize = 80;
/// What was over sooner needs no words.
const WORTH_SAYING: Nanos = Nanos::from_secs(1);

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
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.suspend(|| say!("idlewise: {}: {text}", self.name)),
            None => say!("idlewise: {}: {text}", self.name),
        }
    }

    /// Shows where it stands, now and then.
    pub fn show(&mut self, progress: impl FnOnce() -> Progress) {
        if self.quiet || Instant::now() < self.due {
            return;
        }
        self.due = Instant::now() + Duration::from_secs(1) / u32::from(HZ);
        let progress = progress();
        for disk in &progress.disks {
            let max = disk.measured.max_slowdown;
            if max > disk.goal.max_slowdown && !self.said.contains(&disk.name) {
                self.said.push(disk.name.clone());
                let longest = disk.goal.max_slowdown;
                let text = format!(
                    "a foreground request of {} was slowed by {max}, more than the {longest} of --max-slowdown: that depends on what \
                     {} has asked the disk for when it is held",
                    disk.name, self.name
                );
                self.say(&text);
            }
        }
        if let Some(bar) = &self.bar {
            let width = console::Term::stderr().size_checked().map_or(USUAL_WIDTH, |(_, columns)| usize::from(columns));
            let line = format!("{}: {}", self.name, fit(&pieces(&progress), width.saturating_sub(self.name.len() + 3)));
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

/// The most important first.
fn pieces(progress: &Progress) -> Vec<String> {
    let mut pieces = vec![doing(progress), format!("ran {}", percent(share_run(progress)))];
    let worst = progress.disks.iter().max_by_key(|disk| disk.measured.mean_slowdown());
    pieces.extend(worst.map(slowdown));
    pieces.push(moved(progress).to_string());
    pieces
}

/// What it read and wrote, on all disks together.
fn moved(progress: &Progress) -> Bytes {
    progress.disks.iter().fold(Bytes(0), |sum, disk| sum + disk.moved())
}

/// Whether it runs, and why not.
fn doing(progress: &Progress) -> String {
    let of = progress.disk.as_ref().map(|disk| format!(", {disk}")).unwrap_or_default();
    match progress.why {
        Why::IdleWait { wait, .. } => idle_wait(Some(wait)) + &of,
        why => named(why.name()).to_owned() + &of,
    }
}

fn slowdown(disk: &DiskSoFar) -> String {
    format!("{}: mean slowdown {} (goal {})", disk.name, disk.measured.mean_slowdown(), disk.goal.mean_slowdown)
}

/// Says in the end what it cost.
pub fn summary(progress: &Progress) {
    let (ran, elapsed) = (progress.ran, progress.elapsed);
    if elapsed < WORTH_SAYING {
        return;
    }
    let share = percent(share_run(progress));
    say!("idlewise: ran for {ran} of {elapsed} ({share}), read and wrote {}", moved(progress));
    for disk in progress.disks.iter().filter(|disk| disk.measured.foreground_requests > 0) {
        let (max, goal) = (disk.measured.max_slowdown, disk.goal.max_slowdown);
        let requests = disk.measured.foreground_requests;
        say!("idlewise: {}, max {max} (limit {goal}), {requests} foreground requests", slowdown(disk));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_line_says_why_it_waits_and_for_which_disk() {
        let mut progress = Progress {
            why: Why::Foreground,
            disk: Some("sda".into()),
            elapsed: Nanos::from_secs(8),
            ran: Nanos::from_secs(2),
            spent: BTreeMap::new(),
            disks: Vec::new(),
        };
        assert_eq!(pieces(&progress), ["waiting for others' requests, sda", "ran 25.0 %", "0 B"]);
        progress.why = Why::IdleWait { wait: Nanos::from_millis(20), until: Nanos::ZERO };
        assert_eq!(doing(&progress), "waiting for 20.0 ms of idle time, sda");
    }
}
