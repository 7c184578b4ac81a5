//! What a scrub without a plan learns first: how idle the disk is, and how long its requests take.

use idlewise::disk::{DiskModel, Point};
use idlewise::order::Extent;
use idlewise::tune::Goal;
use idlewise::{Bytes, Nanos};

use super::engine::ScrubError;
use super::lane::{Lane, TICK, Timed};
use super::{Doing, Progress};
use crate::monitor::now;

/// The sizes measured.
const SIZES: [Bytes; 4] = [Bytes::from_kib(64), Bytes::from_kib(256), Bytes::from_kib(1024), Bytes::from_kib(4096)];
/// A request of which little is known takes no longer than so many foreground requests earn.
const AFFORDABLE: u64 = 20;
/// Requests of each size whose times count; one before them brings the head there.
const ROUNDS: usize = 5;
/// Of them, at least.
const ENOUGH: usize = 3;
/// Requests of each size in all, where the foreground keeps coming between.
const TRIES: usize = 9;
/// After so many unreadable ones, each of which may take seconds, no more are tried.
const MOST_UNREADABLE: usize = 8;
/// Calibration begins at a multiple of this.
const ALIGNED: u64 = 1 << 20;

/// Watches what is learnt; told how things stand and the share done.
pub type Watch<'a> = &'a mut dyn FnMut(Progress, f64);

/// How long a request may take of which little is known.
pub fn affordable(goal: &Goal) -> Nanos {
    goal.max_slowdown.min(Nanos(goal.mean_slowdown.0.saturating_mul(AFFORDABLE)))
}

/// Watches the foreground for a while; stops early when asked to. Nothing of ours runs, so it does not count as measured.
pub(super) fn observe(lane: &mut Lane, time: Nanos, watch: Watch) -> Result<bool, ScrubError> {
    lane.watched.driver.tell();
    let (began, measured, before) = (now(), *lane.watched.driver.measured(), lane.watched.driver.account());
    lane.watch_only(before);
    loop {
        let elapsed = now().since(began);
        if elapsed >= time || lane.stopped() {
            lane.watched.driver.restore(measured);
            // What a collision may cost is known better; what was earned meanwhile is not to be spent.
            let learnt = lane.watched.driver.account();
            let account = before.zip(learnt).map(|(mut before, learnt)| {
                before.reserve = learnt.reserve;
                before
            });
            lane.watch_only(account);
            return Ok(lane.stopped());
        }
        watch(lane.progress(Doing::Observing), elapsed.0 as f64 / time.0.max(1) as f64);
        lane.poll(TICK)?;
    }
}

/// Measures the disk's verify curve: for each size the median of some requests that follow one another, as in a scan,
/// from a tenth into the device, or elsewhere after a run that failed. Each waits until the disk is idle. Sizes of which one request would cost too much are not
/// tried: they are measured when the plan has come to use them. `None` when asked to stop.
pub(super) fn curve(lane: &mut Lane, name: &str, goal: &Goal, watch: Watch) -> Result<Option<DiskModel>, ScrubError> {
    let mut model = DiskModel { name: name.into(), verify: Vec::new(), read: None, write: None };
    let mut place = lane.device.size.0 / 10 * lane.measured_from / ALIGNED * ALIGNED;
    for (index, size) in SIZES.into_iter().enumerate() {
        let expected = match model.verify[..] {
            [] => Nanos::ZERO,
            [one] if 2 * one.time.0 > affordable(goal).0 => break,
            [one] => Nanos(2 * one.time.0),
            _ => model.verify_time(size),
        };
        if model.verify.len() >= 2 && expected > affordable(goal) {
            break;
        }
        let share = |done: f64| (index as f64 + done) / SIZES.len() as f64;
        let watch = &mut |progress, done| watch(progress, share(done));
        let time = match median(lane, size, expected, &mut place, watch)? {
            Times::Stopped => return Ok(None),
            Times::Refused | Times::Unreadable => break,
            Times::Median(time) => time,
        };
        // A curve never falls; on a very fast disk the clock's noise may say so.
        let time = time.max(model.verify.last().map_or(Nanos(1), |point| point.time));
        model.verify.push(Point::new(size, time));
    }
    match model.verify[..] {
        // Of a disk that could not be measured nothing better is known.
        [] => model.verify = DiskModel::ultrastar_15k450().verify,
        // Where only the smallest are taken, longer ones are as many of these.
        [one] => model.verify.push(Point::new(Bytes(2 * one.size.0), Nanos(2 * one.time.0))),
        _ => {}
    }
    Ok(Some(model))
}

/// What is known of requests of one size.
enum Times {
    Median(Nanos),
    /// The device takes none so long.
    Refused,
    /// None could be verified.
    Unreadable,
    Stopped,
}

/// Median time of requests of one size: of those that follow another of ours at once, unless the foreground leaves no time for
/// enough of them. What cannot be read says nothing of the others' time, and the scan will find it again; more of it may lie
/// behind, so they go on elsewhere.
fn median(
    lane: &mut Lane,
    size: Bytes,
    mut expected: Nanos,
    place: &mut u64,
    watch: &mut dyn FnMut(Progress, f64),
) -> Result<Times, ScrubError> {
    let (mut in_place, mut others) = (Vec::new(), Vec::new());
    let (mut at_end, mut unreadable) = (true, 0);
    while in_place.len() < ROUNDS && in_place.len() + others.len() < TRIES && unreadable < MOST_UNREADABLE {
        let done = in_place.len().max(others.len() / (TRIES / ROUNDS)) as f64 / ROUNDS as f64;
        watch(lane.progress(Doing::Calibrating), done);
        if *place + size.0 > lane.device.size.0 {
            (*place, at_end) = (0, true);
        }
        let extent = Extent { offset: Bytes(*place), length: Bytes(size.0.min(lane.device.size.0)) };
        *place += size.0;
        match lane.timed(extent, expected, &mut |pause| watch(pause, done))? {
            None => return Ok(Times::Stopped),
            Some(Timed::Refused) => return Ok(Times::Refused),
            Some(Timed::Good { time, follows }) => {
                let times = if follows && !at_end { &mut in_place } else { &mut others };
                times.push(time);
                // Of the smallest nothing is expected: on a disk that nobody uses they need not wait for an account that is small.
                expected = if expected == Nanos::ZERO { expected } else { expected.max(time) };
            }
            Some(Timed::Bad { .. }) => {
                unreadable += 1;
                *place = place.saturating_add(lane.device.size.0 / 10) / ALIGNED * ALIGNED;
                at_end = true;
                continue;
            }
        }
        at_end = false;
    }
    let mut times = if in_place.len() >= ENOUGH { in_place } else { others };
    times.sort_unstable();
    Ok(times.get(times.len() / 2).map_or(Times::Unreadable, |&time| Times::Median(time)))
}
