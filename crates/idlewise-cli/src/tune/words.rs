//! A plan in plain words: why this wait and this size, and what to be careful about.

use idlewise::disk::{DiskModel, SMALLEST_REQUEST};
use idlewise::idle::{Idleness, Lengths};
use idlewise::report::percent;
use idlewise::simulate::Outcome;
use idlewise::tune::{Arrivals, Schedule, Validation};
use idlewise::{Nanos, Rate};

use crate::simulate::seconds;

/// Fewer idle intervals are too few to plan from.
const FEW_INTERVALS: usize = 200;
/// With fewer collisions, where they fall is luck.
const FEW_COLLISIONS: u64 = 30;
/// Traces shorter than this say nothing of other hours.
const A_DAY: Nanos = Nanos::from_secs(86_400);

/// Two sentences: why so long, and why so large.
pub fn reasons(schedule: &Schedule, outcome: &Outcome, disks: &[Idleness], model: &DiskModel) -> String {
    let lengths = Lengths::of(disks);
    let (size, wait) = schedule.first();
    let remaining = lengths.expected_remaining(wait).map_or("nothing".into(), seconds);
    let first = format!(
        "A disk that has been idle for {wait} stays idle for another {remaining} on average. {} of the intervals last that long, and \
         {} of the idle time lies after the wait.",
        percent(lengths.share_longer(wait).unwrap_or(0.0)),
        percent(lengths.usable_after(wait).unwrap_or(0.0)),
    );
    let requests: u64 = disks.iter().map(|disk| disk.requests).sum();
    let collisions = outcome.collisions;
    let met = match collisions {
        0 => "no foreground request collides with a scrub request".to_string(),
        many if many == requests => "every foreground request collides with a scrub request".to_string(),
        _ => format!(
            "1 in {:.0} foreground requests collides with a scrub request, which adds {} on average, summed over all requests that it \
             delays",
            requests as f64 / collisions as f64,
            outcome.delay_sum.mean(collisions)
        ),
    };
    let rate = Rate((size.0 as f64 / model.verify_time(size).as_secs_f64()) as u64);
    let smallest = SMALLEST_REQUEST;
    let small = Rate((smallest.0 as f64 / model.verify_time(smallest).as_secs_f64()) as u64);
    let second = match schedule {
        Schedule::Waiting(_) if size == smallest => format!(
            "Scrub requests of {size} run at {rate}; {met}. Of the sizes that were tried, larger ones would scrub less at the same slowdown, or take too long."
        ),
        Schedule::Waiting(_) => format!(
            "Scrub requests of {size} run at {rate}, those of {smallest} at {small}; {met}. Of the sizes that were tried, larger and smaller \
             ones would scrub less at the same slowdown."
        ),
        Schedule::Shaped(_) => format!("Sizes change with the time that the disk has been idle; {met}."),
    };
    let together = match disks.len() {
        1 => String::new(),
        many => format!(" The rates in the table are those of {many} disks together."),
    };
    format!("{first} {second}{together}")
}

/// What to be careful about, a line each.
pub fn warnings(outcome: &Outcome, disks: &[Idleness], arrivals: Arrivals) -> Vec<String> {
    let mut warnings = Vec::new();
    let span = disks.iter().map(Idleness::span).max().unwrap_or_default();
    let intervals: usize = disks.iter().map(|disk| disk.intervals.len()).sum();
    if intervals < FEW_INTERVALS {
        warnings.push(format!("the trace is too short to plan from: it has {intervals} idle intervals"));
    }
    if span < A_DAY {
        warnings
            .push(format!("the trace covers {span}: it does not show what the disk does at other hours of the day"));
    }
    if (1..FEW_COLLISIONS).contains(&outcome.collisions) && arrivals == Arrivals::Recorded {
        warnings.push(format!(
            "only {} scrub requests collide, and where they do is luck: another time the slowdown may be twice the goal; --any-moment \
             plans for that",
            outcome.collisions
        ));
    }
    warnings
}

/// Why steps were or were not taken.
pub fn validated(validation: &Validation) -> String {
    let Validation { gain, wins, folds, .. } = validation;
    let verdict = if validation.chosen { "so they are taken" } else { "so one wait and one size are kept" };
    format!(
        "Steps fitted to three quarters of the time verify {gain:.2} times as much on the fourth as Waiting does at the same \
         slowdown, more in {wins} of {folds}: {verdict}."
    )
}
