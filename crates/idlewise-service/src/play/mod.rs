//! Weeks of the service, played by the code that decides in it: `idlewise simulate --service`.
//!
//! ```text
//! trace ─► Foreground: what each hour gives, and costs ─► play: decision, as in the daemon ─► Played: passes, in time or not
//! ```
//!
//! A scrub is at work as soon as it is begun, and is held to its mean slowdown by an account, as a real one. Nothing fails, and each disk
//! stands alone.

mod hours;

pub use hours::{Foreground, Gives};

use idlewise::schedule::WEEK;
use idlewise::tune::{Goal, TuneError};
use idlewise::{Bytes, Nanos};

use crate::Wish;
use crate::decision::{Facts, Next, is_another, is_of_the_goal, next};
use crate::machine::Moment;
use crate::record::{Cost, Known};

/// It looks at the disk so often, in minutes.
const LOOK: u32 = 15;
const DAY_S: f64 = 86_400.0;
/// A Monday at 00:00, in seconds since 1970.
const MONDAY: f64 = 4.0 * DAY_S;

/// A disk that is to be played.
#[derive(Clone, Debug)]
pub struct Disk {
    /// Its name.
    pub identity: String,
    /// Its size.
    pub size: Bytes,
    /// What is wished for it.
    pub wish: Wish,
    /// The mean slowdown of the goal, in seconds.
    pub mean_s: f64,
    /// The largest.
    pub max_s: f64,
}

/// A pass that has ended. Times are seconds since the beginning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pass {
    /// When it began.
    pub began_s: f64,
    /// When it ended.
    pub ended_s: f64,
    /// When it had to.
    pub due_s: f64,
    /// What it cost the foreground while it ran.
    pub cost: Cost,
}

/// How it went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Played {
    /// The passes that ended.
    pub passes: Vec<Pass>,
    /// By how much the pass is overdue that has not ended, in seconds; zero where it is not.
    pub overdue_s: f64,
    /// Bytes verified.
    pub verified: f64,
    /// Time in which a scrub ran, in seconds.
    pub ran_s: f64,
    /// What it cost the foreground while it ran.
    pub cost: Cost,
    /// Foreground requests of all the time.
    pub requests: f64,
    /// The longest slowdown of a request.
    pub longest_s: f64,
    /// The largest mean slowdown that was allowed, in seconds.
    pub most_s: f64,
}

impl Pass {
    /// By how much it was late, in seconds; below zero where it was in time.
    pub fn late_s(&self) -> f64 {
        self.ended_s - self.due_s
    }
}

impl Played {
    /// How many of its passes ended in time.
    pub fn in_time(&self) -> usize {
        self.passes.iter().filter(|pass| pass.late_s() <= 0.0).count()
    }

    /// How many should have ended: those that did, and one that is overdue.
    pub fn due(&self) -> usize {
        self.passes.len() + usize::from(self.overdue_s > 0.0)
    }

    /// By how much the latest of these was late, in seconds; below zero where all were in time.
    pub fn latest_s(&self) -> Option<f64> {
        let open = Some(self.overdue_s).filter(|late| *late > 0.0);
        self.passes.iter().map(Pass::late_s).chain(open).max_by(f64::total_cmp)
    }

    /// The mean slowdown of all foreground requests, those that came while nothing was verified among them, in seconds.
    pub fn mean_of_all_s(&self) -> f64 {
        if self.requests > 0.0 { self.cost.slowdown_s / self.requests } else { 0.0 }
    }
}

/// Plays so many days of a disk, from a Monday on. Nothing was known of it before.
///
/// # Errors
/// If no request is short enough for its goal.
pub fn play(disk: &Disk, foreground: &mut Foreground, days: u32) -> Result<Played, TuneError> {
    let mut known = Known { since_unix_s: MONDAY, ..Known::default() };
    let mut played = Played::default();
    let mut pass: Option<Begun> = None;
    let mut hour = Hour::default();
    let (mut requests, mut minutes, mut last) = (0.0, 0, None);
    while minutes < days * 24 * 60 {
        let now = Moment { unix_s: MONDAY + f64::from(minutes) * 60.0, minute: minutes % WEEK };
        let step = look_after(disk, now.minute);
        let seconds = f64::from(step) * 60.0;
        let left = pass.as_ref().map(|pass| Bytes(pass.left.ceil() as u64));
        let (what, outlook) = next(&disk.identity, &disk.wish, &known, &disk.facts(now, left, last));
        if matches!(what, Next::Run(_)) {
            pass.get_or_insert_with(|| Begun::new(now.unix_s, disk.size));
        }
        let running = pass.as_mut().zip(if let Next::Run(mean) = what { Some(mean) } else { None });
        let running = running.map(|(running, mean)| (running.in_force(mean), running));
        let times = running.as_ref().map_or(1.0, |(mean, _)| mean / disk.mean_s);
        let gives = foreground.gives(u64::from(minutes / 60), times)?;
        played.requests += gives[0].requests * seconds;
        if let Some((mean, running)) = running {
            let gives = running.best(&gives, seconds);
            // It may end within this step.
            let ran_s = if gives.bytes > 0.0 { seconds.min(running.left / gives.bytes) } else { seconds };
            let bytes = (gives.bytes * ran_s).min(running.left);
            running.left -= bytes;
            played.verified += bytes;
            played.ran_s += ran_s;
            played.most_s = played.most_s.max(mean);
            played.longest_s = played.longest_s.max(gives.longest_s);
            // Requests are counted whole, as the service does.
            requests += gives.requests * ran_s;
            let cost = Cost { requests: requests as u64, slowdown_s: gives.slowdown_s * ran_s };
            requests -= cost.requests as f64;
            known.cost.add(cost);
            played.cost.add(cost);
            if is_of_the_goal(mean, disk.mean_s) {
                hour.add(ran_s, bytes);
            }
            if running.left < 1.0 {
                let ended = now.unix_s + ran_s;
                let [began_s, ended_s, due_s] = [running.at, ended, outlook.deadline].map(|at| at - MONDAY);
                played.passes.push(Pass { began_s, ended_s, due_s, cost: std::mem::take(&mut known.cost) });
                last = Some(ended);
                pass = None;
                hour.tell(&mut known, now.minute);
            }
        }
        minutes += step;
        if minutes % 60 == 0 {
            hour.tell(&mut known, now.minute);
        }
    }
    let end = Moment { unix_s: MONDAY + f64::from(days) * DAY_S, minute: minutes % WEEK };
    let left = pass.as_ref().map(|pass| Bytes(pass.left.ceil() as u64));
    let (_, outlook) = next(&disk.identity, &disk.wish, &known, &disk.facts(end, left, last));
    played.overdue_s = (end.unix_s - outlook.deadline).max(0.0);
    Ok(played)
}

/// Minutes to the next look: at the next quarter of an hour, or where a window opens or closes.
fn look_after(disk: &Disk, minute: u32) -> u32 {
    let quarter = LOOK - minute % LOOK;
    disk.wish.windows.changes_after(minute).map_or(quarter, |change| change.min(quarter))
}

/// A pass that is not over.
struct Begun {
    at: f64,
    left: f64,
    /// Of the scrub that runs: its mean slowdown, and what that may still cost the foreground, in seconds.
    mean_s: f64,
    account_s: f64,
}

impl Begun {
    fn new(at: f64, size: Bytes) -> Self {
        Self { at, left: size.0 as f64, mean_s: 0.0, account_s: 0.0 }
    }

    /// The mean slowdown of its scrub, which is begun anew where it may have another.
    fn in_force(&mut self, mean_s: f64) -> f64 {
        if is_another(mean_s, self.mean_s) {
            (self.mean_s, self.account_s) = (mean_s, 0.0);
        }
        self.mean_s
    }

    /// What gives the most in the coming seconds, each as far as the account of the scrub allows. A scrub tunes itself again, so it uses
    /// all that it may spend only where that is worth it.
    fn best(&mut self, all: &[Gives], seconds: f64) -> Gives {
        let mut best = (Gives::default(), 0.0);
        for gives in all {
            let (earned, cost) = (self.mean_s * gives.requests * seconds, gives.slowdown_s * seconds);
            let share = if cost > 0.0 { ((self.account_s + earned) / cost).clamp(0.0, 1.0) } else { 1.0 };
            let held = Gives { bytes: share * gives.bytes, slowdown_s: share * gives.slowdown_s, ..*gives };
            if held.bytes > best.0.bytes || best.0 == Gives::default() {
                best = (held, earned - share * cost);
            }
        }
        self.account_s += best.1;
        best.0
    }
}

/// What the present hour has given.
#[derive(Default)]
struct Hour {
    wanted_s: f64,
    bytes: f64,
}

impl Hour {
    fn add(&mut self, wanted_s: f64, bytes: f64) {
        (self.wanted_s, self.bytes) = (self.wanted_s + wanted_s, self.bytes + bytes);
    }

    fn tell(&mut self, known: &mut Known, minute: u32) {
        let Self { wanted_s, bytes } = std::mem::take(self);
        known.week.add(minute, wanted_s, bytes as u64);
    }
}

impl Disk {
    fn facts(&self, now: Moment, left: Option<Bytes>, last: Option<f64>) -> Facts {
        Facts {
            now,
            size: self.size,
            left,
            last,
            usual_mean_s: self.mean_s,
            usual_max_s: self.max_s,
            on_battery: false,
            taken: None,
            retry: None,
            paused: None,
        }
    }

    /// With what is wished, where nothing is known of its kind.
    pub fn new(identity: String, size: Bytes, wish: Wish, usual: (Nanos, Nanos)) -> Self {
        let mean_s = wish.mean_slowdown.unwrap_or(usual.0).as_secs_f64();
        let max_s = wish.max_slowdown.unwrap_or(usual.1).as_secs_f64();
        Self { identity, size, wish, mean_s, max_s }
    }

    /// The goal of its scrub.
    pub fn goal(&self) -> Goal {
        let time = |seconds: f64| Nanos((seconds * 1e9).round() as u64);
        Goal::new(time(self.mean_s), time(self.max_s))
    }
}

#[cfg(test)]
mod tests;
