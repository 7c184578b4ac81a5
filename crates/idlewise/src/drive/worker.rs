//! The background's side of a shared driver: it asks, works, and tells of its steps.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use super::shared::Shared;
use super::{Driver, Measured, Next, SecondClock};
use crate::policy::{Account, Policy};
use crate::{Bytes, Nanos};

/// How often a worker that waits looks, at least.
const TICK: Duration = Duration::from_millis(100);

/// The background's side, which drives the policy.
pub struct Worker<P> {
    shared: Arc<Shared>,
    driver: Driver<P>,
    /// Beginnings and ends of steps that the driver was not told of yet.
    steps: Vec<(Nanos, Event)>,
    /// Whether requests were outstanding when it last looked.
    was_busy: bool,
    /// Size of the last step.
    step: Bytes,
}

/// A step of background work: it ends when this is dropped. Hold it only while the device works: what a program computes meanwhile would
/// count as the device's time.
#[must_use = "the step ends when this is dropped"]
pub struct Step<'a, P: Policy> {
    worker: &'a mut Worker<P>,
    size: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// So much less was done than its size.
    StepEnded(Bytes),
    Completed {
        arrival: Nanos,
    },
    Arrived,
    StepBegan(Bytes),
}

impl<P: Policy> Worker<P> {
    /// One that has told of nothing yet.
    pub(super) fn new(shared: Arc<Shared>, driver: Driver<P>) -> Self {
        Self { shared, driver, steps: Vec::new(), was_busy: false, step: Bytes(0) }
    }

    /// Blocks until a step may begin; it begins at once.
    pub fn ready(&mut self) -> Step<'_, P> {
        let size = self.wait_until(None).expect("without an end it waits for a step");
        self.begin(size)
    }

    /// Waits for a step for so long at most, for a program that may have to stop meanwhile.
    ///
    /// # Examples
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use std::time::Duration;
    ///
    /// use idlewise::drive;
    /// use idlewise::policy::Waiting;
    /// use idlewise::{Bytes, Nanos};
    ///
    /// let stop = AtomicBool::new(false);
    /// let waiting = Waiting { idle_wait: Nanos::from_millis(1), request_size: Bytes::from_kib(64) };
    /// let (foreground, mut worker) = drive::shared(waiting);
    /// let mut left = Bytes::from_kib(1024);
    /// while left > Bytes(0) && !stop.load(Ordering::Relaxed) {
    ///     let Some(step) = worker.ready_within(Duration::from_millis(100)) else {
    ///         continue; // Ask `worker.account()` or `worker.ask()` why, if somebody wants to know.
    ///     };
    ///     let mut done = Bytes(0);
    ///     // Piece by piece, and no further when a request waits.
    ///     while done < step.size().min(left) && !step.is_awaited() {
    ///         done = done + Bytes::from_kib(16);
    ///     }
    ///     step.end_with(done);
    ///     left = Bytes(left.0 - done.0);
    /// }
    /// assert_eq!(worker.measured().worked, Bytes::from_kib(1024));
    /// # drop(foreground);
    /// ```
    pub fn ready_within(&mut self, time: Duration) -> Option<Step<'_, P>> {
        let size = self.wait_until(Instant::now().checked_add(time))?;
        Some(self.begin(size))
    }

    /// The size of the step that may begin, at the latest at `end`.
    fn wait_until(&mut self, end: Option<Instant>) -> Option<Bytes> {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            let (time, until_idle) = match self.ask() {
                Next::Step(size) => return Some(size),
                next => self.pause(next),
            };
            let left = end.map_or(time, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() && end.is_some() {
                return None;
            }
            let time = time.min(left);
            if until_idle {
                if self.waits(waker.clone()) {
                    thread::park_timeout(time);
                }
            } else {
                thread::sleep(time);
            }
        }
    }

    /// Waits for a step without blocking; it may be dropped at any time. `sleep` is that of the caller's runtime, such as `tokio::time::sleep`.
    pub async fn ready_async<S: Future>(&mut self, mut sleep: impl FnMut(Duration) -> S) -> Step<'_, P> {
        loop {
            let (time, until_idle) = match self.ask() {
                Next::Step(size) => return self.begin(size),
                next => self.pause(next),
            };
            let mut sleep = pin!(sleep(time));
            let mut woken = false;
            poll_fn(|context| {
                if std::mem::replace(&mut woken, until_idle) && !self.shared.waits.load(Ordering::SeqCst) {
                    return Poll::Ready(());
                }
                if until_idle && !self.waits(context.waker().clone()) {
                    return Poll::Ready(());
                }
                sleep.as_mut().poll(context).map(drop)
            })
            .await;
        }
    }

    /// What to do now, for workers that wait in their own way; times are those of [`now`](Self::now). Whoever does the step calls
    /// [`begin`](Self::begin) first.
    pub fn ask(&mut self) -> Next {
        self.was_busy = self.shared.outstanding() > 0;
        if self.was_busy {
            return Next::WhenIdle;
        }
        self.tell();
        self.driver.next(self.shared.now())
    }

    /// Begins a step of this size, which ends when it is dropped.
    pub fn begin(&mut self, size: Bytes) -> Step<'_, P> {
        self.steps.push((self.shared.now(), Event::StepBegan(size)));
        self.step = size;
        Step { worker: self, size }
    }

    /// Whether the foreground is waiting: a step of several requests to the device had better end before the next of them. A foreground
    /// request that is served between two of them counts as not slowed.
    pub fn is_awaited(&self) -> bool {
        self.shared.outstanding() > 0
    }

    /// The step that was [left open](Step::leave_open) ended.
    pub fn step_ended(&mut self) {
        self.step_ended_with(self.step);
    }

    /// The same where no more than so much was done.
    pub fn step_ended_with(&mut self, done: Bytes) {
        self.steps.push((self.shared.now(), Event::StepEnded(Bytes(self.step.0.saturating_sub(done.0)))));
    }

    /// The present time on the clock that [`ask`](Self::ask) answers with.
    pub fn now(&self) -> Nanos {
        self.shared.now()
    }

    /// Whether the present interval is left alone on purpose, see [`compare`](Self::compare).
    pub fn is_comparing(&self) -> bool {
        self.driver.is_comparing(self.shared.now())
    }

    /// Asks to be woken when the device becomes idle; whether that is still to come.
    fn waits(&self, waker: Waker) -> bool {
        self.shared.wait(waker);
        !self.was_busy || self.shared.outstanding() > 0
    }

    /// How long to wait, and whether less if the device becomes idle.
    fn pause(&self, next: Next) -> (Duration, bool) {
        let left = |at: Nanos| Duration::from(at.since(self.shared.now()));
        match next {
            // Foreground work may end the interval before, and the next one may be used sooner.
            Next::AskAt(at) => (left(at).min(TICK), false),
            // Requests that complete meanwhile earn.
            Next::Paused { until } => (left(until).min(TICK), false),
            Next::WhenIdle | Next::Step(_) => (TICK, true),
        }
    }

    /// Tells the driver what happened, in the order of time.
    fn tell(&mut self) {
        let mut events = std::mem::take(&mut self.steps);
        for stripe in &self.shared.stripes {
            while let Some((arrival, completion)) = stripe.completed.pop() {
                events.extend([(arrival, Event::Arrived), (completion, Event::Completed { arrival })]);
            }
        }
        events.sort_unstable();
        for (at, event) in events {
            match event {
                Event::Arrived => self.driver.arrived(at),
                Event::Completed { arrival } => self.driver.completed(at, arrival),
                Event::StepBegan(size) => self.driver.step_began(at, size),
                Event::StepEnded(less) => {
                    self.driver.step_ended(at);
                    self.driver.step_was_less(less);
                }
            }
        }
    }

    /// Leaves some of the usable intervals alone, drawn by lot, to learn what work costs beyond what is seen; see [`Driver::compare`].
    pub fn compare(&mut self, some: bool) {
        self.driver.compare(some);
    }

    /// From now on another policy decides.
    pub fn set_policy(&mut self, policy: P) -> P {
        self.driver.set_policy(policy)
    }

    /// Size of the first step in the idle interval that was used last, and the idle time before it.
    pub fn last_used(&self) -> Option<(Bytes, Nanos)> {
        self.driver.last_used()
    }

    /// What the foreground suffered: requests count once the device is idle behind them.
    pub fn measured(&mut self) -> Measured {
        if self.shared.outstanding() == 0 {
            self.tell();
        }
        *self.driver.measured()
    }

    /// The foreground on the clock on which the background work never happened.
    pub fn clock(&self) -> &SecondClock {
        self.driver.clock()
    }

    /// How the account of the slowdown stands, if the policy keeps one.
    pub fn account(&self) -> Option<Account> {
        self.driver.account()
    }

    /// Requests that came faster than they could be kept, and are in no sum. Some thousands are kept from one look of the worker to the
    /// next: a worker that waits in [`ready`](Self::ready) looks often enough, one that is long in a step may not.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl<P: Policy> Step<'_, P> {
    /// How much to do.
    pub fn size(&self) -> Bytes {
        self.size
    }

    /// Whether the foreground is waiting: see [`Worker::is_awaited`].
    pub fn is_awaited(&self) -> bool {
        self.worker.is_awaited()
    }

    /// Ends it when no more than so much was done.
    pub fn end_with(self, done: Bytes) {
        self.worker.step_ended_with(done);
        std::mem::forget(self);
    }

    /// The size, where a guard is in the way, as between two callbacks: the step goes on until [`Worker::step_ended`]. Until then no other
    /// begins: forgotten, [`Worker::ready`] never returns.
    pub fn leave_open(self) -> Bytes {
        let size = self.size;
        std::mem::forget(self);
        size
    }
}

impl<P: Policy> Drop for Step<'_, P> {
    fn drop(&mut self) {
        self.worker.step_ended();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::shared;
    use crate::drive::shared::KEPT;
    use crate::policy::{Budget, Decision, Waiting};

    const SIZE: Bytes = Bytes::from_kib(64);

    fn waiting(ms: u64) -> Waiting {
        Waiting { idle_wait: Nanos::from_millis(ms), request_size: SIZE }
    }

    #[test]
    fn a_worker_waits_for_the_last_request_of_all_threads() {
        let (foreground, mut worker) = shared(waiting(5));
        let open = foreground.arrived();
        let began = Instant::now();
        thread::scope(|threads| {
            threads.spawn(|| {
                thread::sleep(Duration::from_millis(40));
                // On another thread than it arrived on.
                foreground.completed(open);
            });
            assert_eq!(worker.ready().size(), SIZE);
        });
        assert!(began.elapsed() >= Duration::from_millis(45), "{:?}", began.elapsed());
        assert_eq!(
            (worker.ask(), worker.measured().foreground_requests, worker.measured().steps),
            (Next::Step(SIZE), 1, 1)
        );
    }

    #[test]
    fn a_request_that_comes_during_a_step_is_slowed_by_it() {
        let (foreground, mut worker) = shared(Budget::new(waiting(0), Nanos::from_millis(100)));
        let step = worker.ready();
        let request = foreground.request();
        let began = Instant::now();
        thread::sleep(Duration::from_millis(20));
        drop(step);
        thread::sleep(Duration::from_millis(10));
        drop(request);
        let response = Nanos::from(began.elapsed());
        assert_eq!(worker.ask(), Next::Step(SIZE));
        let measured = worker.measured();
        assert_eq!((measured.collisions, measured.foreground_requests), (1, 1));
        // On one server it would have been done when its own time behind the step was over.
        assert!((Nanos::from_millis(1)..response).contains(&measured.max_slowdown), "{response:?} {measured:?}");
    }

    #[test]
    fn a_worker_that_may_have_to_stop_waits_for_so_long_only() {
        let (foreground, mut worker) = shared(waiting(0));
        let request = foreground.request();
        assert!(worker.ready_within(Duration::from_millis(20)).is_none());
        drop(request);
        // Nobody asked in between.
        assert_eq!(worker.measured().foreground_requests, 1);
        assert_eq!(worker.ready_within(Duration::from_secs(10)).map(|step| step.size()), Some(SIZE));
    }

    #[test]
    fn a_step_that_is_left_open_goes_on_until_it_is_ended() {
        let (foreground, mut worker) = shared(waiting(0));
        assert_eq!(worker.ready().leave_open(), SIZE);
        assert_eq!((worker.ask(), worker.is_awaited()), (Next::WhenIdle, false));
        let request = foreground.request();
        assert!(worker.is_awaited());
        worker.step_ended();
        drop(request);
        assert_eq!((worker.ask(), worker.measured().steps), (Next::Step(SIZE), 1));
    }

    /// Waits in its first interval for long, and not at all in those behind it.
    struct LaterSooner(Nanos);

    impl Policy for LaterSooner {
        fn decide(&mut self, _: Nanos) -> Decision {
            if self.0 > Nanos::ZERO {
                Decision::Wait { until: self.0 }
            } else {
                Decision::Issue { size: SIZE, count: 1 }
            }
        }

        fn foreground_arrived(&mut self, _: Nanos, _: Nanos) {
            self.0 = Nanos::ZERO;
        }
    }

    #[test]
    fn a_worker_that_sleeps_hears_of_the_next_interval() {
        let (foreground, mut worker) = shared(LaterSooner(Nanos::from_secs(10)));
        let began = Instant::now();
        thread::scope(|threads| {
            threads.spawn(|| {
                thread::sleep(Duration::from_millis(20));
                drop(foreground.request());
            });
            assert_eq!(worker.ready().size(), SIZE);
        });
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }

    #[test]
    fn an_async_worker_is_woken_and_sleeps() {
        let (foreground, mut worker) = shared(waiting(3));
        let request = foreground.request();
        let (mut sleeps, began) = (0, Instant::now());
        thread::scope(|threads| {
            let mut ready = pin!(worker.ready_async(|time| {
                sleeps += 1;
                sleep(time)
            }));
            let waker = Waker::from(Arc::new(Unpark(thread::current())));
            let mut context = std::task::Context::from_waker(&waker);
            assert!(ready.as_mut().poll(&mut context).is_pending());
            threads.spawn(|| drop(request));
            let size = loop {
                match ready.as_mut().poll(&mut context) {
                    Poll::Ready(step) => break step.size(),
                    Poll::Pending => thread::park_timeout(Duration::from_millis(1)),
                }
            };
            assert_eq!(size, SIZE);
        });
        // It wakes no more often than it sleeps for a millisecond, however long a busy machine takes; that may be longer than its wait.
        let most = 20 + began.elapsed().as_millis();
        assert!((1..most).contains(&sleeps), "{sleeps}");
    }

    /// As a runtime's, but that it is to be polled.
    async fn sleep(time: Duration) {
        let until = Instant::now() + time;
        poll_fn(|_| if Instant::now() >= until { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    #[test]
    fn what_cannot_be_kept_is_told() {
        let (foreground, mut worker) = shared(waiting(0));
        (0..KEPT + 5).for_each(|_| drop(foreground.request()));
        assert_eq!((worker.ask(), worker.lost()), (Next::Step(SIZE), 5));
        assert_eq!(worker.measured().foreground_requests, KEPT as u64);
    }
}
