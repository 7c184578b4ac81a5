//! The progress of a scrub: how far, how fast, when it is done, and why it waits.

use std::time::{Duration, Instant};

use console::Term;
use idlewise::Rate;
use idlewise::report::percent;
use idlewise::report::printable::one_line;
use idlewise_linux::device::Device;
use idlewise_linux::scrub::{Doing, Progress};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::words::{doing, fit};
use crate::dates::{date, unix_now};
use crate::output::say;
use crate::screen;

/// Time between two lines where standard error is no terminal.
const LINE: Duration = Duration::from_secs(30);
/// Columns of a terminal that does not say how wide it is.
const USUAL_WIDTH: usize = 80;
/// Columns of the bar itself, where there is room for it.
const BAR: usize = 20;
/// How often it is drawn, at most.
pub const HZ: u8 = 5;

/// Two lines on a terminal, a line now and then elsewhere, nothing when quiet.
pub struct Bar {
    bar: ProgressBar,
    quiet: bool,
    terminal: bool,
    /// When it is told next how things stand: to put that into words costs more than a scrub request.
    due: Instant,
    device: String,
    /// What was in the way of the last checkpoint, as told.
    unsaved: Option<String>,
}

impl Bar {
    /// A bar for the device, below those of others.
    pub fn new(quiet: bool, device: &Device, others: Option<&MultiProgress>) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { screen::target(HZ) };
        let mut bar = ProgressBar::with_draw_target(None, target);
        if let Some(others) = others.filter(|_| !quiet) {
            bar = others.add(bar);
        }
        bar.set_style(ProgressStyle::with_template("{prefix}\n{msg}").expect("the template is valid"));
        let name = one_line(&device.path.display().to_string()).into_owned();
        let terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let due = if terminal { Instant::now() } else { Instant::now() + LINE };
        Self { bar, quiet, terminal, due, device: name, unsaved: None }
    }

    /// Shows why it waits for its turn.
    pub fn queue(&mut self, why: &str) {
        if !self.is_due() {
            return;
        }
        self.tell(0.0, &[], &[format!("waiting, {why}")]);
    }

    /// Shows what is learnt before the scrub, of which nothing is done yet.
    pub fn learn(&mut self, progress: &Progress, done: f64) {
        if !self.is_due() {
            return;
        }
        let mut pieces = doing(progress);
        match progress.doing {
            Doing::Overdrawn { .. } => pieces.push(format!("{} of the disk's times measured", percent(done))),
            _ => pieces[0] += &format!(": {}", percent(done)),
        }
        self.tell(0.0, &["not yet begun".into()], &pieces);
    }

    /// Shows where the scrub stands.
    pub fn show(&mut self, progress: &Progress) {
        if self.is_due() {
            let done = progress.verified.0 as f64 / progress.size.0.max(1) as f64;
            self.tell(done, &how_far(progress, unix_now()), &why(progress));
        }
        self.saved(progress.unsaved.as_deref());
    }

    /// Says when a checkpoint cannot be saved, and why, and when one can again.
    pub fn saved(&mut self, unsaved: Option<&str>) {
        if self.unsaved.as_deref() == unsaved {
            return;
        }
        self.unsaved = unsaved.map(Into::into);
        match unsaved {
            Some(error) => self.warn(&format!("its checkpoint cannot be saved, going on and trying again: {error}")),
            None => self.warn("its checkpoint is saved again"),
        }
    }

    /// Says what must be known, quiet or not.
    pub fn warn(&self, line: &str) {
        let line = || say!("idlewise: {}: {line}", self.device);
        if screen::is_full() { line() } else { self.bar.suspend(line) }
    }

    /// Says what is good to know.
    pub fn say(&self, line: &str) {
        if !self.quiet {
            self.warn(line);
        }
    }

    fn is_due(&self) -> bool {
        !self.quiet && Instant::now() >= self.due
    }

    fn tell(&mut self, done: f64, how_far: &[String], why: &[String]) {
        if !self.terminal {
            self.due = Instant::now() + LINE;
            say!("{}: {}", self.device, [how_far, why].concat().join(", "));
        } else if !screen::is_behind() {
            self.due = Instant::now() + Duration::from_secs(1) / u32::from(HZ);
            let width = Term::stderr().size_checked().map_or(USUAL_WIDTH, |(_, columns)| usize::from(columns));
            let [first, second] = lines(&self.device, done, how_far, why, width);
            self.bar.set_prefix(one_line(&first).into_owned());
            self.bar.set_message(one_line(&second).into_owned());
            self.bar.tick();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How far, how fast and until when, the most important first.
fn how_far(progress: &Progress, now_unix_s: u64) -> Vec<String> {
    let rate = progress.verified_now.0 as f64 / progress.elapsed.as_secs_f64().max(1e-9);
    let mut pieces =
        vec![percent(progress.verified.0 as f64 / progress.size.0.max(1) as f64), Rate(rate as u64).to_string()];
    let left_s = progress.size.0.saturating_sub(progress.verified.0) as f64 / rate;
    // A cast of what is not finite is the largest number, which is beyond the calendar.
    let end = date(now_unix_s.saturating_add(left_s as u64)).filter(|_| rate > 0.0 && progress.doing.goes_on());
    pieces.push(end.map_or("end unknown".into(), |end| format!("ends about {end}")));
    if progress.bad_blocks > 0 {
        pieces.push(format!("{} bad blocks", progress.bad_blocks));
    }
    pieces.push(format!("{} of {}", progress.verified, progress.size));
    pieces
}

/// What it does, why it waits, and what that cost so far.
fn why(progress: &Progress) -> Vec<String> {
    let mut pieces = doing(progress);
    let measured = &progress.measured;
    if measured.foreground_requests > 0 {
        pieces.push(format!("slowdown {} mean {} max", measured.mean_slowdown(), measured.max_slowdown));
        pieces.extend(progress.account.map(|account| format!("goal {} mean", account.goal)));
    }
    pieces
}

/// Two lines of at most `width` columns.
fn lines(device: &str, done: f64, how_far: &[String], why: &[String], width: usize) -> [String; 2] {
    // The last column is left free: some terminals begin a new line there.
    let width = width.saturating_sub(1);
    let name = if device.chars().count() > width / 2 { device.rsplit('/').next().unwrap_or_default() } else { device };
    let name = fit(&[name.into()], width / 2);
    let filled = (done.clamp(0.0, 1.0) * BAR as f64) as usize;
    let head = format!("{name} [{}{}] ", "=".repeat(filled), " ".repeat(BAR - filled));
    let room = width.saturating_sub(head.chars().count());
    // Without room for the first pieces the bar itself goes.
    let needed = how_far.iter().take(3).map(|piece| piece.chars().count() + 2).sum::<usize>();
    let head = if room + 2 < needed { format!("{name} ") } else { head };
    let first = fit(how_far, width.saturating_sub(head.chars().count()));
    [head + &first, format!("  {}", fit(why, width.saturating_sub(2)))]
}

#[cfg(test)]
mod tests {
    use idlewise::drive::Measured;
    use idlewise::{Bytes, Nanos, TotalTime};

    use super::*;

    fn progress() -> Progress {
        Progress {
            doing: Doing::IdleWait,
            verified: Bytes(6_400_000_000_000),
            verified_now: Bytes(30_000_000_000),
            size: Bytes(16_000_000_000_000),
            elapsed: Nanos::from_secs(1_000),
            bad_blocks: 11,
            measured: Measured {
                foreground_requests: 2,
                slowdown_sum: TotalTime(284_000),
                max_slowdown: Nanos(184_000),
                ..Measured::default()
            },
            ..Progress::default()
        }
    }

    #[test]
    fn it_fits_into_any_terminal_and_ends_between_words() {
        let progress = progress();
        let shown = |device, width| lines(device, 0.4, &how_far(&progress, 1_795_322_940), &why(&progress), width);
        let [first, second] = shown("/dev/sda", 200);
        // 320,000 s at 30 MB/s; the time of day is that of the machine's zone.
        assert!(
            first.starts_with("/dev/sda [========            ] 40.0 %, 30.0 MB/s, ends about 2026-11-2"),
            "{first}"
        );
        assert!(first.ends_with(", 11 bad blocks, 5.82 TiB of 14.6 TiB"), "{first}");
        assert_eq!(second, "  waiting, not idle for long enough, slowdown 142 us mean 184 us max");
        let [first, _] = shown("/dev/sda", 80);
        assert!(first.contains("ends about 2026") && !first.contains("TiB"), "{first}");
        let long = "/dev/disk/by-id/ata-ST16000NM001G-2KK103_ZL2XXXXX";
        for (device, width) in [("/dev/sda", 80), ("/dev/sda", 40), (long, 80), (long, 160), ("/dev/sda", 10), ("x", 0)]
        {
            for line in shown(device, width) {
                assert!(line.chars().count() <= width.max(3), "{width}: {line}");
                let last = line.trim_end().rsplit([' ', ',', '/']).next().unwrap_or_default().to_string();
                let all = shown(device, 10_000).concat();
                assert!(all.split([' ', ',', '/']).any(|word| word == last), "{width}: cut in a word: {line}");
            }
        }
    }

    #[test]
    fn no_rate_has_no_end() {
        let stuck = Progress { verified_now: Bytes(0), ..progress() };
        assert_eq!(how_far(&stuck, 0)[2], "end unknown");
        let slow = Progress { verified_now: Bytes(1), elapsed: Nanos(u64::MAX), ..progress() };
        assert_eq!(how_far(&slow, 0)[2], "end unknown");
    }
}
