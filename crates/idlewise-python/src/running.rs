//! Computations beside Python: without its lock, told of progress, and stopped by Ctrl-C.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Weak};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;

use crate::error::Error;

/// How often somebody who presses Ctrl-C is heard, and progress is told.
const TICK: Duration = Duration::from_millis(50);
/// How long a computation that is to stop is waited for; most stop at once.
const PATIENCE: Duration = Duration::from_secs(2);
/// Computations that wait for one another, such as of a policy that simulates; each has a thread.
const DEEPEST: usize = 64;
/// As much as a program's first thread has.
const STACK: usize = 8 << 20;

/// What a computation says of itself, and is told.
#[derive(Default)]
pub struct Watch {
    stopped: AtomicBool,
    /// The share done, as bits.
    done: AtomicU64,
    raised: Mutex<Option<PyErr>>,
    /// Of which this one is a part of so many, and which.
    outer: Option<(Arc<Watch>, usize, usize)>,
}

/// The computations of this process, so that none outlives the interpreter.
static ALIVE: Mutex<Vec<Weak<Alive>>> = Mutex::new(Vec::new());
/// The interpreter ends: no more may begin.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Held by who computes and by who waits for it.
struct Alive(Arc<Watch>);

thread_local! {
    /// How many computations wait for what this thread does.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// What unwinds a computation that nobody waits for any more.
struct Stopped;

impl Watch {
    /// Takes the share done. Where the computation is to stop, it does not return.
    pub fn share(&self, done: f64) {
        self.done.store(done.to_bits(), Ordering::Relaxed);
        if let Some((outer, at, of)) = &self.outer {
            outer.share((*at as f64 + done) / *of as f64);
        }
        self.go_on();
    }

    /// That of one of so many parts of a computation.
    pub fn within(outer: &Arc<Self>, at: usize, of: usize) -> Self {
        Self { outer: Some((outer.clone(), at, of)), ..Self::default() }
    }

    /// Does not return where the computation is to stop.
    pub fn go_on(&self) {
        if self.stopped.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Stopped));
        }
    }

    /// Stops the computation, which has raised an exception; the first is the one that counts.
    pub fn raise(&self, error: PyErr) -> ! {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stopped.store(true, Ordering::Relaxed);
        resume_unwind(Box::new(Stopped))
    }
}

/// Runs `work` on a thread of its own, while this one waits without Python's lock. `progress` is called with the share done.
pub fn run<T: Send + 'static>(
    py: Python,
    progress: Option<&Bound<PyAny>>,
    work: impl FnOnce(&Arc<Watch>) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    refuse_after_fork()?;
    let depth = DEPTH.get() + 1;
    if depth > DEEPEST {
        return Err(PyRecursionError::new_err("computations of idlewise that wait for one another are too many"));
    }
    if ENDS.load(Ordering::Relaxed) {
        return Err(Error::Machine("the interpreter ends".into()).into());
    }
    let watch = Arc::new(Watch::default());
    let alive = Arc::new(Alive(watch.clone()));
    let mut all = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|one| one.strong_count() > 0);
    all.push(Arc::downgrade(&alive));
    drop(all);
    let computes = alive.clone();
    let (sender, mut receiver) = channel();
    let watched = watch.clone();
    let thread = std::thread::Builder::new().name("idlewise".into()).stack_size(STACK);
    let started = thread.spawn(move || {
        DEPTH.set(depth);
        // Who waited may be gone.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(|| work(&watched))));
        drop(computes);
    });
    started.map_err(|error| Error::Machine(format!("no thread to compute with: {error}")))?;
    loop {
        let result;
        (receiver, result) = py.detach(move || {
            let result = receiver.recv_timeout(TICK);
            (receiver, result)
        });
        let told = match result {
            Ok(Ok(result)) => return told(progress, 1.0).and(Ok(result?)),
            Ok(Err(panic)) => return Err(why(&watch, &*panic)),
            Err(RecvTimeoutError::Disconnected) => return Err(why(&watch, &())),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals().and_then(|()| told(progress, f64::from_bits(watch.done.load(Ordering::Relaxed))))
            }
        };
        if let Err(error) = told {
            watch.stopped.store(true, Ordering::Relaxed);
            // A policy in Python must not outlive the interpreter.
            let _ = py.detach(move || receiver.recv_timeout(PATIENCE));
            return Err(error);
        }
    }
}

/// Stops all computations, and waits until nobody computes or waits any more. For `atexit`: a policy in Python that is asked after it, or a
/// thread that comes back to Python, would end the process by a signal.
#[pyfunction]
pub fn end_all(py: Python) -> PyResult<()> {
    // SAFETY: this thread is attached to the interpreter, which lives.
    let interpreter = unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) };
    if interpreter != 0 {
        // A sub-interpreter ends alone: others go on.
        return Ok(());
    }
    ENDS.store(true, Ordering::Relaxed);
    loop {
        let all = ALIVE.lock().unwrap_or_else(PoisonError::into_inner);
        let alive: Vec<Arc<Alive>> = all.iter().filter_map(Weak::upgrade).collect();
        drop(all);
        if alive.is_empty() {
            return Ok(());
        }
        alive.iter().for_each(|one| one.0.stopped.store(true, Ordering::Relaxed));
        drop(alive);
        py.detach(|| std::thread::sleep(TICK));
        py.check_signals()?;
    }
}

fn told(progress: Option<&Bound<PyAny>>, done: f64) -> PyResult<()> {
    progress.map_or(Ok(()), |progress| progress.call1((done,)).map(drop))
}

/// What Python raised; or else it is a fault of ours.
fn why(watch: &Watch, panic: &(dyn Any + Send)) -> PyErr {
    let raised = watch.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    let fault = || Error::Machine(format!("a fault of idlewise: {}", text.unwrap_or("it ended early"))).into();
    raised.unwrap_or_else(fault)
}

/// The threads that computations share do not live on in a process that was forked: it would wait for them for ever.
fn refuse_after_fork() -> Result<(), Error> {
    static OWNER: AtomicU32 = AtomicU32::new(0);
    let own = std::process::id();
    match OWNER.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed) {
        Err(other) if other != own => Err(Error::Machine(
            "this process was forked from one that used idlewise, and has none of its threads: start processes by 'spawn' or \
             'forkserver' (multiprocessing.set_start_method)"
                .into(),
        )),
        _ => Ok(()),
    }
}
