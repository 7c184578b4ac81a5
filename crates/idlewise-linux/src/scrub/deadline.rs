//! The gentlest goal with which a pass ends in time.

use idlewise::disk::DiskModel;
use idlewise::drive::SecondClock;
use idlewise::tune::{Goal, TuneError, smallest};
use idlewise::{Bytes, Nanos};

use super::pacing::ENOUGH;
use super::retune::{Tuned, tuned};

/// Search from this mean slowdown on.
const LEAST: Nanos = Nanos(1_000);

/// What the foreground seen so far allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InTime {
    /// With this goal the pass ends in time, by simulation on the idle intervals seen.
    Goal(Goal),
    /// Too few idle intervals were seen: a disk that is hardly used, or not watched for long enough.
    Unknown,
    /// Not whatever the mean slowdown: the fastest schedule takes so long.
    Never(Nanos),
}

/// The smallest mean slowdown, within the rest of `goal`, with which the `left` of a pass takes at most `time`.
///
/// # Errors
/// If no request fits the maximum slowdown.
pub fn in_time(
    foreground: &SecondClock,
    model: &DiskModel,
    goal: &Goal,
    left: Bytes,
    time: Nanos,
) -> Result<InTime, TuneError> {
    let seen = foreground.undisturbed();
    if seen.intervals.len() < ENOUGH {
        return Ok(InTime::Unknown);
    }
    // As the scrub will be tuned, and as it will then run.
    let takes_s = |tuned: &Tuned| left.0 as f64 / tuned.predicted.throughput.0 as f64;
    let at = |goal: &Goal| {
        let tuned = tuned(seen, model, goal, foreground.charged())?;
        Ok((takes_s(&tuned) <= time.as_secs_f64()).then_some(()))
    };
    let least = Goal { mean_slowdown: LEAST, ..*goal };
    Ok(match smallest(&least, at)? {
        Ok((goal, ())) => InTime::Goal(goal),
        // A schedule that scrubs nothing takes for ever, which is cast to the longest time.
        Err(most) => {
            let fastest = tuned(seen, model, &most, foreground.charged())?;
            InTime::Never(Nanos((takes_s(&fastest) * 1e9) as u64))
        }
    })
}

#[cfg(test)]
mod tests {
    use idlewise::disk::Point;

    use super::*;

    /// Requests of 5 ms, a second after one another.
    fn foreground(requests: u64) -> SecondClock {
        let mut foreground = SecondClock::new(Nanos::ZERO);
        for request in 1..=requests {
            let arrival = Nanos::from_secs(request);
            foreground.arrived(arrival);
            foreground.completed(Nanos(arrival.0 + 5_000_000), arrival);
        }
        foreground
    }

    fn model() -> DiskModel {
        let point = |kib, ms| Point::new(Bytes::from_kib(kib), Nanos::from_millis(ms));
        DiskModel { name: "test".into(), verify: vec![point(64, 5), point(4096, 45)], read: None, write: None }
    }

    fn goal() -> Goal {
        Goal::new(Nanos::ZERO, Nanos::from_millis(50))
    }

    #[test]
    fn the_shorter_the_time_the_larger_the_slowdown() {
        let seen = foreground(400);
        let within = |seconds| {
            let (left, time) = (Bytes(1 << 30), Nanos::from_secs(seconds));
            in_time(&seen, &model(), &goal(), left, time).unwrap()
        };
        let mean = |seconds| match within(seconds) {
            InTime::Goal(goal) => goal.mean_slowdown,
            other => panic!("{seconds}: {other:?}"),
        };
        let (fast, slow) = (mean(30), mean(3_000));
        assert!(slow < fast && fast < Nanos::from_millis(50), "{slow} {fast}");
        // A few of these intervals, which are all as long, are enough: none of the others costs anything.
        assert!(slow < Nanos::from_millis(1), "{slow}");
        // 1 GiB in pieces of 4 MiB takes 11.5 s, without anybody else on the disk.
        let InTime::Never(fastest) = within(5) else { panic!("in 5 s") };
        assert!(fastest > Nanos::from_secs(11) && fastest < Nanos::from_secs(30), "{fastest}");
        assert_eq!(in_time(&foreground(5), &model(), &goal(), Bytes(1), Nanos(1)), Ok(InTime::Unknown));
    }
}
