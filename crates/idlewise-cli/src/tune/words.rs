//! A plan in plain words: why this wait and this size, and what to be careful about.

use idlewise::Rate;
use idlewise::disk::{DiskModel, SMALLEST_REQUEST};
use idlewise::idle::{Idleness, Lengths};
use idlewise::report::percent;
use idlewise::simulate::Outcome;
use idlewise::tune::{Arrivals, Caution, Schedule, Validation, cautions};

use crate::simulate::seconds;

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
    let line = |caution: Caution| match caution {
        Caution::FewCollisions(_) => format!("{caution}; --any-moment plans for that"),
        _ => caution.to_string(),
    };
    cautions(outcome, disks, arrivals).into_iter().map(line).collect()
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
