//! The driver of `idlewise` for C: `include/idlewise.h` says what each call does, `examples/loop.c` shows them.
//!
//! Times are nanoseconds on any clock of the caller's. A driver belongs to one thread at a time.

use std::slice;

use idlewise::disk::{DiskModel, Point};
use idlewise::drive::{Driver, Next};
use idlewise::policy::{Adaptive, Budget, Policy, Waiting};
use idlewise::tune::Goal;
use idlewise::{Bytes, Nanos};

/// A driver, as C knows it: by its address.
pub struct IdlewiseDriver(Driver<Box<dyn Policy>>);

/// How long a step of some size takes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct IdlewisePoint {
    /// Size of the step.
    pub bytes: u64,
    /// Its time in nanoseconds.
    pub ns: u64,
}

/// What to do next: `IDLEWISE_STEP` and the like.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdlewiseNext {
    /// 0 to 3, in the order of [`Next`].
    pub kind: u32,
    /// Size of the step.
    pub bytes: u64,
    /// When to ask again; 0 if at no time of its own.
    pub at_ns: u64,
}

/// What the foreground suffered.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdlewiseMeasured {
    /// Foreground requests that completed.
    pub foreground_requests: u64,
    /// Steps in service when a request arrived.
    pub collisions: u64,
    /// Mean slowdown over all requests, in nanoseconds.
    pub mean_slowdown_ns: u64,
    /// Longest slowdown, in nanoseconds.
    pub max_slowdown_ns: u64,
    /// Steps.
    pub steps: u64,
    /// Their sizes together.
    pub worked_bytes: u64,
}

fn new(policy: Box<dyn Policy>, now_ns: u64) -> *mut IdlewiseDriver {
    Box::into_raw(Box::new(IdlewiseDriver(Driver::new(policy, Nanos(now_ns)))))
}

/// Keeps the mean slowdown, on a device that serves several requests at a time too: some intervals are left alone, to compare with.
fn within(policy: impl Policy + 'static, mean_slowdown: Nanos, now_ns: u64) -> *mut IdlewiseDriver {
    let mut driver: Driver<Box<dyn Policy>> = Driver::new(Box::new(Budget::new(policy, mean_slowdown)), Nanos(now_ns));
    driver.compare(true);
    Box::into_raw(Box::new(IdlewiseDriver(driver)))
}

/// See `include/idlewise.h`.
#[unsafe(no_mangle)]
pub extern "C" fn idlewise_waiting(
    idle_wait_ns: u64,
    bytes: u64,
    mean_slowdown_ns: u64,
    now_ns: u64,
) -> *mut IdlewiseDriver {
    let waiting = Waiting { idle_wait: Nanos(idle_wait_ns), request_size: Bytes(bytes.max(1)) };
    match mean_slowdown_ns {
        0 => new(Box::new(waiting), now_ns),
        mean => within(waiting, Nanos(mean), now_ns),
    }
}

/// See `include/idlewise.h`.
///
/// # Safety
/// `points` is NULL or points to `count` points.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn idlewise_adaptive(
    points: *const IdlewisePoint,
    count: usize,
    mean_slowdown_ns: u64,
    max_slowdown_ns: u64,
    now_ns: u64,
) -> *mut IdlewiseDriver {
    if points.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the caller says that there are so many points; they are only read, and before the call returns.
    let points = unsafe { slice::from_raw_parts(points, count) };
    let verify = points.iter().map(|point| Point::new(Bytes(point.bytes), Nanos(point.ns))).collect();
    let Ok(model) = DiskModel::new("work", verify) else { return std::ptr::null_mut() };
    let goal = Goal::new(Nanos(mean_slowdown_ns), Nanos(max_slowdown_ns));
    within(Adaptive::new(&goal, &model), goal.mean_slowdown, now_ns)
}

/// See `include/idlewise.h`.
///
/// # Safety
/// `driver` is NULL, or came from this library and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn idlewise_free(driver: *mut IdlewiseDriver) {
    if !driver.is_null() {
        // SAFETY: it came from `Box::into_raw`, and the caller gives it back once.
        drop(unsafe { Box::from_raw(driver) });
    }
}

/// The driver at this address, if there is one.
///
/// # Safety
/// `driver` is NULL, or came from this library, is not freed yet, and no other thread uses it.
unsafe fn at<'a>(driver: *mut IdlewiseDriver) -> Option<&'a mut Driver<Box<dyn Policy>>> {
    // SAFETY: the caller says that the address is NULL or that of a driver that nobody else uses now.
    unsafe { driver.as_mut() }.map(|driver| &mut driver.0)
}

/// See `include/idlewise.h`.
///
/// # Safety
/// `driver` is NULL, or a driver that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn idlewise_arrived(driver: *mut IdlewiseDriver, now_ns: u64) {
    // SAFETY: as the caller says.
    if let Some(driver) = unsafe { at(driver) } {
        driver.arrived(Nanos(now_ns));
    }
}

/// See `include/idlewise.h`.
///
/// # Safety
/// `driver` is NULL, or a driver that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn idlewise_completed(driver: *mut IdlewiseDriver, now_ns: u64, arrival_ns: u64) {
    // SAFETY: as the caller says.
    if let Some(driver) = unsafe { at(driver) } {
        driver.completed(Nanos(now_ns), Nanos(arrival_ns));
    }
}

/// See `include/idlewise.h`.
///
/// # Safety
/// `driver` is NULL, or a driver that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn idlewise_step_began(driver: *mut IdlewiseDriver, now_ns: u64, bytes: u64) {
    // SAFETY: as the caller says.
    if let Some(driver) = unsafe { at(driver) } {
        driver.step_began(Nanos(now_ns), Bytes(bytes));
    }
}

/// See `include/idlewise.h`.
///
/// # Safety
/// `driver` is NULL, or a driver that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn idlewise_step_ended(driver: *mut IdlewiseDriver, now_ns: u64) {
    // SAFETY: as the caller says.
    if let Some(driver) = unsafe { at(driver) } {
        driver.step_ended(Nanos(now_ns));
    }
}

/// See `include/idlewise.h`.
///
/// # Safety
/// `driver` is NULL, or a driver that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn idlewise_ask(driver: *mut IdlewiseDriver, now_ns: u64) -> IdlewiseNext {
    // SAFETY: as the caller says.
    let next = unsafe { at(driver) }.map_or(Next::WhenIdle, |driver| driver.next(Nanos(now_ns)));
    let (kind, bytes, at_ns) = match next {
        Next::Step(size) => (0, size.0, 0),
        Next::AskAt(at) => (1, 0, at.0),
        Next::WhenIdle => (2, 0, 0),
        Next::Paused { until } => (3, 0, until.0),
    };
    IdlewiseNext { kind, bytes, at_ns }
}

/// See `include/idlewise.h`.
///
/// # Safety
/// `driver` is NULL, or a driver that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn idlewise_get_measured(driver: *const IdlewiseDriver) -> IdlewiseMeasured {
    // SAFETY: the caller says that the address is NULL or that of a driver that nobody changes now.
    let Some(driver) = (unsafe { driver.as_ref() }) else { return IdlewiseMeasured::default() };
    let measured = driver.0.measured();
    IdlewiseMeasured {
        foreground_requests: measured.foreground_requests,
        collisions: measured.collisions,
        mean_slowdown_ns: measured.mean_slowdown().0,
        max_slowdown_ns: measured.max_slowdown.0,
        steps: measured.steps,
        worked_bytes: measured.worked.0,
    }
}
