//! A thread that is on time: always on the same CPU, before all others, its memory in place.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::num::NonZeroU64;

use idlewise::Nanos;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

/// What [`prepare`] achieved, in force until it is dropped.
pub struct Prepared {
    /// What was not allowed.
    pub denied: Vec<String>,
    real_time: bool,
    /// The CPUs stay awake while this is open.
    awake: Option<File>,
}

impl Prepared {
    /// Whether the thread is before all others.
    pub fn is_real_time(&self) -> bool {
        self.real_time
    }

    /// For a thread that hardly sleeps: the kernel stops one before all others for 50 ms of each second, and whoever serves the
    /// device on the same CPU would wait until then.
    pub fn give_up_real_time(&mut self) {
        let priority = libc::sched_param { sched_priority: 0 };
        // SAFETY: it reads one structure, which is there.
        if unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const priority) } == 0 {
            self.real_time = false;
            self.denied
                .push("real-time priority after a while, as requests come too closely to sleep in between".into());
        }
    }

    /// Whoever sleeps runs again within this, nearly always: as measured in a virtual machine, where it takes longest.
    pub fn wakes_up_within(&self) -> Nanos {
        if self.awake.is_some() { Nanos(60_000) } else { Nanos(200_000) }
    }
}

/// Prepares the calling thread; what is not allowed is told, and does not stop it.
pub fn prepare() -> Prepared {
    let mut denied = Vec::new();
    let mut tell = |what: &str, done: io::Result<()>| {
        if let Err(error) = done {
            denied.push(format!("{what} ({error})"));
        }
    };
    tell("to stay on one CPU", pin());
    let first = first_in_line();
    let real_time = first.is_ok();
    tell("real-time priority, for which CAP_SYS_NICE or a limit on rtprio is needed", first);
    tell("its memory locked, for which CAP_IPC_LOCK or a limit on memlock is needed", lock_memory());
    // Where real-time priority is denied, sleeps would end up to 50 us late.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let awake = keep_awake();
    let awake = awake.map_err(|error| denied.push(format!("CPUs that stay awake, /dev/cpu_dma_latency ({error})")));
    Prepared { denied, real_time, awake: awake.ok() }
}

/// Idle CPUs poll until the file is closed (the kernel's PM QoS interface): to wake one up takes longer than a request may
/// be late, above all in a virtual machine.
fn keep_awake() -> io::Result<File> {
    const NO_LATENCY: i32 = 0;
    let mut file = OpenOptions::new().write(true).open("/dev/cpu_dma_latency")?;
    file.write_all(&NO_LATENCY.to_ne_bytes())?;
    Ok(file)
}

/// To the last CPU that is allowed: the first one serves most interrupts.
fn pin() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu)).unwrap_or(0);
    let mut only = CpuSet::new();
    only.set(last);
    Ok(sched_setaffinity(None, &only)?)
}

/// The lowest real-time priority: before all ordinary threads, behind the kernel's own.
fn first_in_line() -> io::Result<()> {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: it reads one structure, which is there.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const priority) })
}

fn lock_memory() -> io::Result<()> {
    // SAFETY: no argument is a pointer.
    checked(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) })
}

impl Drop for Prepared {
    /// Lets go of the memory that was locked.
    fn drop(&mut self) {
        // SAFETY: it has no argument.
        unsafe { libc::munlockall() };
    }
}

fn checked(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
