//! The background activities of DSN 2008 in the idle times of a trace: passes of a scrub, updates of parity, or both at once (sections
//! 6 to 8). All of it is simulated.

use crate::Bytes;
use crate::cdh::Cdh;
use crate::idle::Idleness;
use crate::policy::Policy;
use crate::reliability::Protection;
use crate::simulate::{Detail, Lane, ParityUpdates, Run, Scrub, Service, Simulation, Tally, Work, run_while};

/// Intervals, and WRITEs, simulated in all before a pass that has not ended is extrapolated.
const MOST_INTERVALS: u64 = 50_000_000;
/// So often through the same trace, and more of it says nothing new.
const MOST_TIMES: u64 = 1_000;
/// What going once more through a trace costs besides them.
const AGAIN: u64 = 16;
/// WRITEs kept that wait for an update: some 200 MB. Where more do, updates do not keep up, and more of it says nothing new.
const MOST_WAITING: u64 = 1 << 23;
/// Runs in which the delay of two lanes is brought close to that of one, how close, and the least that the second may have.
const TRIES: u32 = 4;
const CLOSE: f64 = 0.02;
const LEAST_LEFT: f64 = 0.02;

/// What is to be done on each disk.
#[derive(Clone, Debug)]
pub struct Activities {
    /// Bytes of a pass.
    pub capacity: Bytes,
    /// How long the scrub's requests take.
    pub scrub: Service,
    /// Updates of parity, none of which came yet.
    pub updates: ParityUpdates,
    /// Bytes that have a parity of their own.
    pub segment: Bytes,
}

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Running {
    /// The scrub, alone.
    Scrub,
    /// Updates of parity, alone.
    Parity,
    /// Both: the lanes' first work is the updates, their second the scrub.
    Both,
}

/// For how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// Until so many passes have ended on each disk.
    Passes(u64),
    /// So many times through the trace.
    Times(u64),
}

/// What was done, on all disks together.
#[derive(Clone, Debug)]
pub struct Activity {
    /// The simulation's sums.
    pub run: Run,
    /// Of the scrub.
    pub passes: Option<Passes>,
    /// Of the updates.
    pub updates: Option<Updates>,
    /// How often the trace was run through, on the disk that took most.
    pub times: u64,
}

/// Passes of a scrub.
#[derive(Clone, Debug, PartialEq)]
pub struct Passes {
    /// How long each took that ended, on any disk.
    pub times: Cdh,
    /// The mean over disks of their mean in seconds; on a disk where none ended, the capacity over the rate. Infinite where one disk is
    /// not verified at all.
    pub mean_s: f64,
    /// Volumes of which nothing was verified.
    pub never: Vec<String>,
}

/// Updates of parity.
#[derive(Clone, Debug, PartialEq)]
pub struct Updates {
    /// WRITEs that came, and those whose segment was updated.
    pub writes: Tally,
    /// Times from a WRITE's completion to the update of its segment.
    pub times: Cdh,
    /// Updates that one WRITE, two, and so on, had made necessary (tables 7 and 8).
    pub hits: Vec<u64>,
    /// Mean share of the disk whose parity was dirty: what equation 4 approximates.
    pub dirty: f64,
}

/// When they may run.
pub struct Policies<'a> {
    /// The scrub, which may delay the foreground by this share of what it may where it runs alone.
    pub scrub: &'a dyn Fn(&Idleness, f64) -> Box<dyn Policy>,
    /// The updates.
    pub parity: &'a dyn Fn(&Idleness) -> Box<dyn Policy>,
    /// Whether the scrub's policy is that of both where both run; otherwise each has a lane of its own.
    pub shared: bool,
}

/// Each alone, and both at once, the updates first.
#[derive(Clone, Debug)]
pub struct Study {
    /// The scrub alone.
    pub scrub: Activity,
    /// The updates alone, as often through the trace as the scrub.
    pub parity: Activity,
    /// Both, as often. With a lane each, they delay the foreground together about as much as the scrub alone.
    pub both: Activity,
}

impl Study {
    /// How well data are protected by each alone, and where both run.
    pub fn protections(&self) -> (Protection, Protection) {
        let scan_s = |activity: &Activity| activity.passes.as_ref().map_or(f64::INFINITY, |passes| passes.mean_s);
        let dirty = |activity: &Activity| activity.updates.as_ref().map_or(0.0, |updates| updates.dirty);
        let protection = |scrub, parity| Protection { scan_s: scan_s(scrub), dirty: dirty(parity) };
        (protection(&self.scrub, &self.parity), protection(&self.both, &self.both))
    }
}

impl Activities {
    /// Simulates the scrub until so many passes have ended, the updates, and both. `watch` is told what is being done, and the share
    /// done of it.
    pub fn study(
        &self,
        disks: &[Idleness],
        passes: u64,
        policies: &Policies,
        watch: &dyn Fn(&'static str, f64),
    ) -> Study {
        let scrub = self.run(
            disks,
            Running::Scrub,
            Until::Passes(passes),
            &|disk| vec![Lane::new((policies.scrub)(disk, 1.0), self.scrub(disk))],
            &|done| watch("scrubbing", done),
        );
        let times = Until::Times(scrub.times);
        let parity = self.updated(disks, scrub.times, policies.parity, &|done| watch("updating parity", done));
        let both = if policies.shared {
            let works = |disk: &Idleness| vec![self.parity(), self.scrub(disk)];
            let lane = |disk: &Idleness| vec![Lane { policy: (policies.scrub)(disk, 1.0), works: works(disk) }];
            self.run(disks, Running::Both, times, &lane, &|done| watch("doing both", done))
        } else {
            let lanes = |disk: &Idleness, share: f64| {
                let parity = Lane::new((policies.parity)(disk), self.parity());
                vec![parity, Lane::new((policies.scrub)(disk, share), self.scrub(disk))]
            };
            self.both_within(disks, &scrub, &parity, &lanes, &|done| watch("doing both", done))
        };
        Study { scrub, parity, both }
    }

    /// Simulates the updates alone, so often through the trace.
    pub fn updated(
        &self,
        disks: &[Idleness],
        times: u64,
        policy: &dyn Fn(&Idleness) -> Box<dyn Policy>,
        watch: &dyn Fn(f64),
    ) -> Activity {
        let alone = |disk: &Idleness| vec![Lane::new(policy(disk), self.parity())];
        self.run(disks, Running::Parity, Until::Times(times), &alone, watch)
    }

    /// The scrub's work on a disk.
    fn scrub(&self, disk: &Idleness) -> Box<dyn Work> {
        Box::new(Scrub::new(self.scrub.clone()).timing_passes(self.capacity, disk.begin))
    }

    /// The updates' work.
    fn parity(&self) -> Box<dyn Work> {
        Box::new(self.updates.clone())
    }

    /// Runs lanes with the works of [`Self::scrub`] and [`Self::parity`] over each disk, as often as it takes. `watch` is told the
    /// share done.
    fn run(
        &self,
        disks: &[Idleness],
        running: Running,
        until: Until,
        lanes: &dyn Fn(&Idleness) -> Vec<Lane>,
        watch: &dyn Fn(f64),
    ) -> Activity {
        let (mut all, mut most, mut means, mut never) = (Run::default(), 0, Vec::new(), Vec::new());
        for (index, disk) in disks.iter().enumerate() {
            let mut before = 0;
            let round = disk.intervals.len() as u64 + disk.writes.len() as u64 + AGAIN;
            let again = |simulation: &Simulation, times: u64| {
                let scrubbed = simulation.outcome.scrubbed.0;
                let done = match until {
                    Until::Passes(passes) => scrubbed as f64 / self.capacity.0 as f64 / passes as f64,
                    Until::Times(times_asked) => times as f64 / times_asked as f64,
                };
                watch((index as f64 + done.min(1.0)) / disks.len() as f64);
                most = most.max(times);
                // A scrub that verifies nothing in a whole trace never will.
                let stuck = matches!(until, Until::Passes(_)) && std::mem::replace(&mut before, scrubbed) == scrubbed;
                let waiting: u64 =
                    simulation.tallies().iter().map(|tally| tally.came.saturating_sub(tally.completed)).sum();
                done < 1.0
                    && !stuck
                    && waiting < MOST_WAITING
                    && times < MOST_TIMES
                    && times * round < MOST_INTERVALS / disks.len() as u64
            };
            let run = run_while(disk, lanes(disk), again);
            means.push(self.mean_pass_s(&run));
            if run.outcome.scrubbed == Bytes(0) {
                never.push(disk.volume.clone());
            }
            all.add(&run);
        }
        let mean_s = means.iter().sum::<f64>() / means.len().max(1) as f64;
        self.activity(all, running, most, |times| Passes { times, mean_s, never })
    }

    fn mean_pass_s(&self, run: &Run) -> f64 {
        let times = run.details.last().map(|detail| &detail.times).filter(|times| times.count() > 0);
        if run.outcome.scrubbed == Bytes(0) {
            // Nor has a trace of no time a rate.
            return f64::INFINITY;
        }
        let rate = run.outcome.scrubbed.0 as f64 / run.foreground.span.as_secs_f64();
        times.map_or(self.capacity.0 as f64 / rate, |times| times.total().as_secs_f64() / times.count() as f64)
    }

    /// Both in two lanes, of which the scrub's may delay the foreground by a share of what it does alone: the share at which both
    /// together delay it about as much, found in a few runs.
    fn both_within(
        &self,
        disks: &[Idleness],
        scrub: &Activity,
        parity: &Activity,
        lanes: &dyn Fn(&Idleness, f64) -> Vec<Lane>,
        watch: &dyn Fn(f64),
    ) -> Activity {
        let share = |activity: &Activity| {
            let delays = |run: &Run| run.outcome.delay_sum.0 as f64 / run.foreground.requests.max(1) as f64;
            delays(&activity.run) / delays(&scrub.run).max(f64::MIN_POSITIVE)
        };
        let run = |left: f64, tries: u32| {
            let watch = |done| watch((f64::from(tries) + done) / f64::from(TRIES));
            self.run(disks, Running::Both, Until::Times(scrub.times), &|disk| lanes(disk, left), &watch)
        };
        let mut left = (1.0 - share(parity)).clamp(LEAST_LEFT, 1.0);
        let mut both = run(left, 0);
        for tries in 1..TRIES {
            let off = 1.0 - share(&both);
            if off.abs() < CLOSE {
                break;
            }
            left = (left + off).clamp(LEAST_LEFT, 1.0);
            both = run(left, tries);
        }
        both
    }

    fn activity(&self, run: Run, running: Running, times: u64, passes: impl FnOnce(Cdh) -> Passes) -> Activity {
        let span_s = run.foreground.span.as_secs_f64();
        let segments = self.capacity.0 as f64 / self.segment.0.max(1) as f64;
        let updates = |(detail, tally): (&Detail, &Tally)| Updates {
            writes: *tally,
            times: detail.times.clone(),
            hits: detail.hits.clone(),
            // Spans add up over disks, as dirty times do.
            dirty: (detail.dirty.as_secs_f64() / span_s.max(1e-9) / segments).min(1.0),
        };
        let scrub = run.details.last().filter(|_| running != Running::Parity).map(|detail| detail.times.clone());
        let parity = run.details.first().zip(run.tallies.first()).filter(|_| running != Running::Scrub);
        Activity { passes: scrub.map(passes), updates: parity.map(updates), run, times }
    }
}

impl Updates {
    /// Mean time from a WRITE to the update of its segment, in seconds, of those that were updated.
    pub fn mean_s(&self) -> Option<f64> {
        let Tally { completed, response_sum, .. } = self.writes;
        (completed > 0).then(|| response_sum.as_secs_f64() / completed as f64)
    }

    /// Updates that were done, as a share of WRITEs: the paper's completed ratio (table 6).
    pub fn completed_ratio(&self) -> f64 {
        self.hits.iter().sum::<u64>() as f64 / self.writes.came.max(1) as f64
    }

    /// Shares of the updates that one WRITE, two, and so on, had made necessary.
    pub fn shares(&self) -> Vec<f64> {
        let updates = self.hits.iter().sum::<u64>().max(1) as f64;
        self.hits.iter().map(|&hits| hits as f64 / updates).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nanos;
    use crate::disk::{DiskModel, Point};
    use crate::idle::IdlenessBuilder;
    use crate::policy::Waiting;
    use crate::reliability::dirty_share;

    const MS: u64 = 1_000_000;

    fn takes(ms: u64) -> Service {
        let point = |size| Point::new(Bytes(size), Nanos::from_millis(ms));
        Service::OfSize(DiskModel { name: "t".into(), verify: vec![point(1), point(2)], read: None, write: None })
    }

    /// A WRITE of 10 ms every second, each to a segment of its own.
    fn disk() -> Idleness {
        let mut builder = IdlenessBuilder::new("d");
        for k in 0..100 {
            let arrival = Nanos(k * 1_000 * MS);
            builder.request(arrival, Nanos(arrival.0 + 10 * MS));
            builder.keep_write(Nanos(arrival.0 + 10 * MS), Bytes(k * 1_000));
        }
        builder.finish()
    }

    fn activities() -> Activities {
        let updates = ParityUpdates::new(takes(20), takes(10), Bytes(1_000));
        Activities { capacity: Bytes(1_000_000), scrub: takes(10), updates, segment: Bytes(1_000) }
    }

    fn waiting() -> Box<Waiting> {
        Box::new(Waiting { idle_wait: Nanos::from_millis(100), request_size: Bytes(1_000) })
    }

    #[test]
    fn passes_updates_and_both_by_hand() {
        let (activities, disks) = (activities(), [disk()]);
        let run = |running, until, lanes: &dyn Fn(&Idleness) -> Vec<Lane>| {
            activities.run(&disks, running, until, lanes, &|_| ())
        };
        // 89 requests of 1 kB a second: 1 MB takes 11.2 s, across the end of the trace as well.
        let scrub = run(Running::Scrub, Until::Passes(20), &|disk| vec![Lane::new(waiting(), activities.scrub(disk))]);
        let passes = scrub.passes.unwrap();
        assert!((passes.mean_s / 11.236 - 1.0).abs() < 0.02 && passes.times.count() >= 20, "{}", passes.mean_s);
        assert_eq!((scrub.times, scrub.updates), (3, None));
        // Each update ends 100 + 30 ms after its WRITE, and equation 4 says the same as the sum of dirty times.
        let parity = run(Running::Parity, Until::Times(2), &|_| vec![Lane::new(waiting(), activities.parity())]);
        let updates = parity.updates.unwrap();
        assert!((updates.mean_s().unwrap() - 0.130).abs() < 1e-3, "{:?}", updates.mean_s());
        let equation_4 = dirty_share(0.130, 1.0, 1_000.0, 1e6);
        assert!((updates.dirty / equation_4 - 1.0).abs() < 0.02, "{} {equation_4}", updates.dirty);
        assert_eq!(updates.shares(), [1.0]);
        // Both in one lane: the update first, three requests fewer for the scrub.
        let both = run(Running::Both, Until::Passes(20), &|disk| {
            vec![Lane { policy: waiting(), works: vec![activities.parity(), activities.scrub(disk)] }]
        });
        assert!((both.updates.unwrap().mean_s().unwrap() - 0.130).abs() < 1e-3);
        assert!((both.passes.unwrap().mean_s / (11.236 * 89.0 / 86.0) - 1.0).abs() < 0.02);
    }

    #[test]
    fn what_never_ends_is_extrapolated_or_infinite() {
        let mut large = activities();
        large.capacity = Bytes(1 << 50);
        let lanes = |disk: &Idleness| vec![Lane::new(waiting(), large.scrub(disk))];
        let long = large.run(&[disk()], Running::Scrub, Until::Passes(1), &lanes, &|_| ());
        let rate = large.capacity.0 as f64 / long.passes.unwrap().mean_s;
        assert!(long.times == MOST_TIMES && (rate / 89_000.0 - 1.0).abs() < 0.02, "{rate}");
        let (mut activities, disks) = (activities(), [disk()]);
        let never = Box::new(Waiting { idle_wait: Nanos::from_secs(9), request_size: Bytes(1_000) });
        let lanes = |disk: &Idleness| vec![Lane::new(never.clone(), activities.scrub(disk))];
        let idle = activities.run(&disks, Running::Scrub, Until::Passes(1), &lanes, &|_| ());
        let passes = idle.passes.unwrap();
        assert_eq!((passes.mean_s, idle.times, passes.never), (f64::INFINITY, 1, vec!["d".to_string()]));
        let mut moment = IdlenessBuilder::new("d");
        moment.request(Nanos(0), Nanos(0));
        let at_once = activities.run(&[moment.finish()], Running::Scrub, Until::Passes(1), &lanes, &|_| ());
        assert_eq!(at_once.passes.unwrap().mean_s, f64::INFINITY);
        activities.capacity = Bytes(1_000_000_000);
        let lanes = |disk: &Idleness| vec![Lane::new(waiting(), activities.scrub(disk))];
        let once = activities.run(&disks, Running::Scrub, Until::Times(1), &lanes, &|_| ()).passes.unwrap();
        assert!(once.times.count() == 0 && (once.mean_s / 11_236.0 - 1.0).abs() < 0.02, "{}", once.mean_s);
    }
}
