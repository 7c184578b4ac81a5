//! Tuning again as more of the foreground is seen, beside the scrub: it may take seconds, and the foreground is watched meanwhile.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use idlewise::disk::{DiskModel, Point};
use idlewise::drive::{LEFT_ALONE, SecondClock};
use idlewise::idle::Idleness;
use idlewise::policy::{Account, Budget, Terms, Waiting};
use idlewise::simulate::{Summary, scrub};
use idlewise::tune::{Arrivals, Goal, Predicted, TuneError, throttled, tune};
use idlewise::{Bytes, Nanos, Rate};

/// Times of requests larger than those measured at the beginning, of which the median counts.
const TIMES: usize = 5;
/// Time between two tunings.
const RETUNE: Nanos = Nanos::from_secs(60);

/// A wait that only the account holds to the goal must be so much faster than one that keeps it by itself.
const BETTER: f64 = 1.5;

/// When and by what it is tuned again.
pub struct Retune {
    pub goal: Goal,
    pub model: DiskModel,
    next: Nanos,
    under_way: Option<Receiver<Result<Tuned, TuneError>>>,
    /// Times of requests of a size that is not in the model.
    times: (Bytes, Vec<Nanos>),
}

/// What a tuning found, and what it will do as it will run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuned {
    pub policy: Waiting,
    pub predicted: Predicted,
}

impl Retune {
    pub fn new(goal: Goal, model: DiskModel) -> Self {
        Self { goal, model, next: Nanos::ZERO, under_way: None, times: (Bytes(0), Vec::new()) }
    }

    /// Whether it is time for the next tuning.
    pub fn is_due(&self, now: Nanos) -> bool {
        self.under_way.is_none() && now >= self.next
    }

    /// Nothing to tune by yet: it is looked again later.
    pub fn put_off(&mut self, now: Nanos) {
        self.next = Nanos(now.0.saturating_add(RETUNE.0));
    }

    /// Tunes to these idle intervals, and waits for it.
    ///
    /// # Errors
    /// If no request fits the maximum slowdown.
    pub fn at_once(&mut self, foreground: &SecondClock, now: Nanos) -> Result<Tuned, TuneError> {
        self.put_off(now);
        tuned(foreground.undisturbed(), &self.model, &self.goal, foreground.charged())
    }

    /// Begins to tune to these idle intervals; [`Self::done`] has what comes of it. Where no thread can be made, it is tuned another time.
    pub fn begin(&mut self, foreground: &SecondClock, now: Nanos) {
        self.put_off(now);
        let (model, goal) = (self.model.clone(), self.goal);
        let (seen, charged) = (foreground.undisturbed().clone(), foreground.charged());
        let (tell, told) = channel();
        let work = move || drop(tell.send(tuned(&seen, &model, &goal, charged)));
        self.under_way = thread::Builder::new().name("tune".into()).spawn(work).is_ok().then_some(told);
    }

    /// What the tuning that was begun found, once it is done.
    ///
    /// # Errors
    /// If no request fits the maximum slowdown.
    pub fn done(&mut self) -> Result<Option<Tuned>, TuneError> {
        let Some(told) = &self.under_way else { return Ok(None) };
        let tuned = match told.try_recv() {
            Err(TryRecvError::Empty) => return Ok(None),
            Err(TryRecvError::Disconnected) => None,
            Ok(tuned) => Some(tuned),
        };
        self.under_way = None;
        tuned.transpose()
    }

    /// A request of this size was verified in so much time: beyond the largest one that was measured, the model learns from it.
    pub fn took(&mut self, size: Bytes, time: Nanos) {
        let Some(last) = self.model.verify.last().filter(|last| last.size < size) else { return };
        if self.times.0 != size {
            self.times = (size, Vec::new());
        }
        self.times.1.push(time);
        if self.times.1.len() == TIMES {
            self.times.1.sort_unstable();
            // A curve never falls.
            let time = self.times.1[TIMES / 2].max(last.time);
            self.model.verify.push(Point::new(size, time));
        }
    }
}

/// The wait that scrubs most within a goal, by itself or held to it by the account, and what it will do, where a slowdown is charged to the
/// account so many times.
///
/// # Errors
/// If no request fits the maximum slowdown.
pub fn tuned(seen: &Idleness, model: &DiskModel, goal: &Goal, charged: f64) -> Result<Tuned, TuneError> {
    let seen = std::slice::from_ref(seen);
    let goal = &Goal { mean_slowdown: times(goal.mean_slowdown, 1.0 / charged), ..*goal };
    let tuned = |policy| Tuned { policy, predicted: as_it_will_run(policy, seen, model, goal) };
    let by_itself = tuned(tune(seen, model, goal, Arrivals::AnyMoment, &|_| ())?.policy());
    // Where a fixed wait leaves most of the goal unused, an account may do better by leaving intervals alone.
    let held = throttled(seen, model, goal).map(tuned).filter(|held| {
        let keeps = held.predicted.mean_slowdown <= goal.mean_slowdown;
        keeps && held.predicted.throughput.0 as f64 > BETTER * by_itself.predicted.throughput.0 as f64
    });
    let mut tuned = held.unwrap_or(by_itself);
    tuned.predicted.mean_slowdown = times(tuned.predicted.mean_slowdown, charged);
    Ok(tuned)
}

fn times(time: Nanos, factor: f64) -> Nanos {
    Nanos((time.0 as f64 * factor).round() as u64)
}

/// What a policy will do within its account, and with the intervals that are left alone to compare with.
fn as_it_will_run(policy: Waiting, seen: &[Idleness], model: &DiskModel, goal: &Goal) -> Predicted {
    let service = model.verify_time(policy.request_size);
    // What it opens with is spent soon, and would count for much where little was seen.
    let account = Account::new(goal.mean_slowdown, Terms { opening: 0, ..Terms::default() });
    let budget = || Budget::with_account(policy, account).and_p99(goal.p99_slowdown).expecting(service);
    let run = scrub(seen, model, goal.p99_slowdown, |_| Box::new(budget()));
    let p99 = run.slowdown_p99(goal.p99_slowdown);
    let predicted = Predicted::new(&Summary::new(&run.outcome, seen), p99, goal);
    let used = 1.0 - LEFT_ALONE;
    Predicted {
        mean_slowdown: times(predicted.mean_slowdown, used),
        throughput: Rate((predicted.throughput.0 as f64 * used).round() as u64),
        utilised_idle: predicted.utilised_idle * used,
        ..predicted
    }
}
