//! A driver that many threads share: those of the foreground tell of their requests, one works in the gaps.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crossbeam_queue::ArrayQueue;

use super::{Driver, Worker};
use crate::Nanos;
use crate::policy::Policy;

/// Threads of the foreground are spread over so many counters, so that they do not wait for one another.
const STRIPES: usize = 16;
/// Requests that are kept for each of them until the worker looks.
pub(super) const KEPT: usize = 1 << 13;

/// The foreground's side: cheap, without a lock, and shared by reference or by clone.
#[derive(Clone)]
pub struct Foreground(Arc<Shared>);

/// A request of the foreground: it completes when this is dropped, whether it was served, failed or was given up. One that never is keeps
/// the device busy for ever.
#[must_use = "the request completes when this is dropped"]
pub struct Request<'a> {
    shared: &'a Shared,
    arrival: Nanos,
}

pub(super) struct Shared {
    epoch: Instant,
    pub(super) stripes: [Stripe; STRIPES],
    /// Requests that could not be kept.
    pub(super) lost: AtomicU64,
    /// Whether the worker wants to be woken when the last request completes.
    pub(super) waits: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// On cache lines of its own.
#[repr(align(128))]
pub(super) struct Stripe {
    /// Arrivals less completions: a request may arrive on one and complete on another.
    outstanding: AtomicI64,
    /// Arrival and completion of requests.
    pub(super) completed: ArrayQueue<(Nanos, Nanos)>,
}

/// A driver of `policy` for a device that is idle now, in two parts: one for the threads of the foreground, one for the thread that
/// works.
///
/// # Examples
/// ```
/// use idlewise::drive;
/// use idlewise::policy::{Budget, Waiting};
/// use idlewise::{Bytes, Nanos};
///
/// // Once nobody has asked for anything for 2 ms, steps of 64 KiB, at a mean slowdown of 100 us.
/// let waiting = Waiting { idle_wait: Nanos::from_millis(2), request_size: Bytes::from_kib(64) };
/// let (foreground, mut worker) = drive::shared(Budget::new(waiting, Nanos::from_micros(100)));
/// std::thread::scope(|threads| {
///     threads.spawn(|| {
///         let _request = foreground.request();
///         // The request is served here.
///     });
///     threads.spawn(|| {
///         let step = worker.ready();
///         assert_eq!(step.size(), Bytes::from_kib(64));
///         // So much is compacted here.
///     });
/// });
/// ```
pub fn shared<P: Policy>(policy: P) -> (Foreground, Worker<P>) {
    let stripe = || Stripe { outstanding: AtomicI64::new(0), completed: ArrayQueue::new(KEPT) };
    let shared = Arc::new(Shared {
        epoch: Instant::now(),
        stripes: std::array::from_fn(|_| stripe()),
        lost: AtomicU64::new(0),
        waits: AtomicBool::new(false),
        waker: Mutex::new(None),
    });
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let driver = Driver::new(policy, Nanos::ZERO).with_epoch(since_1970.into());
    (Foreground(shared.clone()), Worker::new(shared, driver))
}

impl Foreground {
    /// A request arrives.
    pub fn request(&self) -> Request<'_> {
        Request { shared: &self.0, arrival: self.0.arrived() }
    }

    /// The same where a guard is in the way, as between two callbacks: what it returns is given to [`completed`](Self::completed).
    pub fn arrived(&self) -> Nanos {
        self.0.arrived()
    }

    /// A request completed that [`arrived`](Self::arrived) then.
    pub fn completed(&self, arrival: Nanos) {
        self.0.completed(arrival);
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.shared.completed(self.arrival);
    }
}

impl Shared {
    pub(super) fn now(&self) -> Nanos {
        self.epoch.elapsed().into()
    }

    /// That of the present thread.
    fn stripe(&self) -> &Stripe {
        static THREADS: AtomicUsize = AtomicUsize::new(0);
        thread_local!(static STRIPE: Cell<usize> = Cell::new(THREADS.fetch_add(1, Ordering::Relaxed) % STRIPES));
        &self.stripes[STRIPE.get()]
    }

    fn arrived(&self) -> Nanos {
        // Counted before the time is taken: who sees the count at zero afterwards knows of every earlier request.
        self.stripe().outstanding.fetch_add(1, Ordering::AcqRel);
        self.now()
    }

    fn completed(&self, arrival: Nanos) {
        let stripe = self.stripe();
        if stripe.completed.push((arrival, self.now())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        stripe.outstanding.fetch_sub(1, Ordering::SeqCst);
        if self.waits.load(Ordering::SeqCst) && self.outstanding() == 0 {
            self.wake();
        }
    }

    /// Requests outstanding: exact while none arrives or completes.
    pub(super) fn outstanding(&self) -> i64 {
        self.stripes.iter().map(|stripe| stripe.outstanding.load(Ordering::SeqCst)).sum()
    }

    fn wake(&self) {
        if self.waits.swap(false, Ordering::SeqCst)
            && let Some(waker) = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            waker.wake();
        }
    }

    /// From now on the worker is woken by whoever completes the last request.
    pub(super) fn wait(&self, waker: Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker);
        self.waits.store(true, Ordering::SeqCst);
    }
}
