//! The player: one thread, one io_uring, absolute deadlines.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use idlewise::replay::{ReplayRun, Schedule};
use idlewise::trace::{Columns, Op};
use idlewise::{Bytes, Nanos};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use rustix::io::Errno;

use super::thread::Prepared;
use crate::memory::Buffer;
use crate::monitor::now;

/// Requests in flight at most.
pub const DEPTH: u32 = 1024;
/// A thread before all others sleeps at least an eighth of so long a time: the kernel allows it to be awake for 950 ms in a row.
const WATCHED: Nanos = Nanos::from_millis(400);
const LEAST_ASLEEP: u64 = 8;
/// How often a wait looks up.
const TICK: Nanos = Nanos::from_millis(100);
/// A device that answers nothing for so long ends a replay; when asked to stop, it is not waited for as long.
pub const PATIENCE: Nanos = Nanos::from_secs(60);
const PATIENCE_TO_STOP: Nanos = Nanos::from_millis(500);
/// Marks a read that is no request of the trace.
const NO_REQUEST: u64 = u64::MAX;
/// Stands for what has not happened.
pub const NEVER: Nanos = Nanos(u64::MAX);

/// What is to be played, and where.
pub struct Score<'a> {
    pub requests: &'a Columns,
    pub runs: &'a [ReplayRun],
    pub device: Fd,
    /// Where the device ends.
    pub end: Bytes,
    /// Where all reads go to; as long as the longest request.
    pub sink: &'a Buffer,
    /// What all writes write, or `None` to read in their place; as long.
    pub zeros: Option<&'a Buffer>,
    /// How many requests of a warm-up are in flight at once.
    pub warm_up_depth: u32,
    pub stop: &'a AtomicBool,
    /// Counts the requests issued.
    pub done: &'a AtomicUsize,
}

/// Times on the clock of [`now`], by request of the trace.
pub struct Times {
    pub issued: Vec<Nanos>,
    pub ended: Vec<Nanos>,
    /// Requests that the device answered with an error, or in part.
    pub failed: u64,
    /// Requests that were never answered: the kernel may still write into their buffers.
    pub unanswered: u32,
    /// The device answered nothing for [`PATIENCE`].
    pub hangs: bool,
}

/// Plays what is due when; in a warm-up, without waiting. One schedule for each row of parts that are on time.
pub struct Player<'a> {
    score: Score<'a>,
    thread: &'a mut Prepared,
    /// So much of a wait, the last of it, is spent awake: a sleeper wakes up late.
    awake: Nanos,
    /// When the thread began to be watched, and how long it has slept since.
    watched: (Nanos, Nanos),
    ring: IoUring,
    in_flight: u32,
    /// When the device last answered, or was asked for the first time since it had nothing to answer.
    answered: Nanos,
    times: Times,
}

impl<'a> Player<'a> {
    /// # Errors
    /// Where the kernel has no io_uring.
    pub fn new(score: Score<'a>, thread: &'a mut Prepared) -> io::Result<Self> {
        let ring = IoUring::new(DEPTH)?;
        let never = vec![NEVER; score.requests.len()];
        let times = Times { issued: never.clone(), ended: never, failed: 0, unanswered: 0, hangs: false };
        let awake = thread.wakes_up_within();
        Ok(Self { score, thread, awake, watched: (now(), Nanos::ZERO), ring, in_flight: 0, answered: now(), times })
    }

    /// Plays all runs, or until asked to stop.
    ///
    /// # Errors
    /// What io_uring says, with what was played until then.
    pub fn play(mut self, schedules: &mut [Schedule]) -> (Times, io::Result<()>) {
        let played = self.runs(schedules);
        self.times.unanswered = self.in_flight;
        (self.times, played)
    }

    fn runs(&mut self, schedules: &mut [Schedule]) -> io::Result<()> {
        self.warm_the_ring()?;
        let mut schedules = schedules.iter_mut();
        for (on_time, requests) in self.score.runs.iter().flat_map(ReplayRun::stretches) {
            match on_time.then(|| schedules.next()).flatten() {
                Some(schedule) => self.on_time(schedule)?,
                None => self.warm_up(requests)?,
            }
            self.drain()?;
            if self.is_over() {
                break;
            }
        }
        Ok(())
    }

    fn stopped(&self) -> bool {
        self.score.stop.load(Ordering::Relaxed)
    }

    /// Whether to end early: asked to stop, or the device hangs.
    fn is_over(&mut self) -> bool {
        self.times.hangs |= self.in_flight > 0 && now().since(self.answered) > PATIENCE;
        self.times.hangs || self.stopped()
    }

    /// The first call of anything is slow: reads behind the end of the device, which does not hear of them.
    fn warm_the_ring(&mut self) -> io::Result<()> {
        const ROUNDS: u64 = 16;
        let Score { device, sink, end, .. } = self.score;
        for _ in 0..ROUNDS {
            let entry = opcode::Read::new(device, sink.as_ptr(), sink.len() as u32).offset(end.0).build();
            // SAFETY: the buffer has this length; it is counted as in flight until its end is seen, and while anything is, the
            // buffers are not freed.
            unsafe { self.ring.submission().push(&entry.user_data(NO_REQUEST)) }.map_err(io::Error::other)?;
            self.sent();
            self.ring.submit()?;
            self.drain()?;
        }
        Ok(())
    }

    /// As fast as the device takes them.
    fn warm_up(&mut self, requests: Range<usize>) -> io::Result<()> {
        for index in requests {
            while self.in_flight >= self.score.warm_up_depth {
                if self.is_over() {
                    return Ok(());
                }
                self.reap(TICK, None)?;
            }
            self.issue(index)?;
        }
        Ok(())
    }

    fn on_time(&mut self, schedule: &mut Schedule) -> io::Result<()> {
        // A little later than now, so that the first request is on time as well; awake until then.
        schedule.begin(Nanos(now().0 + self.awake.0));
        while !schedule.is_over() && !self.is_over() {
            let next = schedule.upcoming().filter(|_| self.in_flight < DEPTH);
            let sleep = next.map_or(TICK, |(_, due)| due.since(Nanos(now().0 + self.awake.0)));
            match next.filter(|_| sleep == Nanos::ZERO) {
                Some((index, due)) => {
                    while now() < due {
                        self.take(Some(schedule));
                        std::hint::spin_loop();
                    }
                    self.issue(index)?;
                    schedule.issued();
                    self.take(Some(schedule));
                }
                None => self.reap(sleep.min(TICK), Some(schedule))?,
            }
        }
        Ok(())
    }

    fn issue(&mut self, index: usize) -> io::Result<()> {
        let Score { requests, device, sink, zeros, .. } = &self.score;
        let (length, offset) = (requests.length[index], requests.offset[index].0);
        let entry = match zeros.filter(|_| requests.op[index] == Op::Write) {
            Some(zeros) => opcode::Write::new(*device, zeros.as_ptr(), length).offset(offset).build(),
            None => opcode::Read::new(*device, sink.as_ptr(), length).offset(offset).build(),
        };
        // SAFETY: the buffers are as long as the longest request and live until none is in flight. Requests share them:
        // nobody looks at what is read.
        unsafe { self.ring.submission().push(&entry.user_data(index as u64)) }.map_err(io::Error::other)?;
        self.times.issued[index] = now();
        self.watch(self.times.issued[index]);
        // From here on the kernel may have it, whatever the call says.
        self.sent();
        self.ring.submit()?;
        self.score.done.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Counts one more in flight.
    fn sent(&mut self) {
        if self.in_flight == 0 {
            self.answered = now();
        }
        self.in_flight += 1;
    }

    /// Real-time priority is for a thread that sleeps.
    fn watch(&mut self, at: Nanos) {
        let (since, slept) = self.watched;
        let time = at.since(since);
        if time >= WATCHED {
            if self.thread.is_real_time() && slept.0 < time.0 / LEAST_ASLEEP {
                self.thread.give_up_real_time();
            }
            self.watched = (at, Nanos::ZERO);
        }
    }

    /// Takes in completions, sleeping up to `wait` for one.
    fn reap(&mut self, wait: Nanos, schedule: Option<&mut Schedule>) -> io::Result<()> {
        let timeout = Timespec::from(Duration::from_nanos(wait.0));
        let began = now();
        match self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&timeout)) {
            Err(error) if !matches!(Errno::from_io_error(&error), Some(Errno::TIME | Errno::INTR)) => {
                return Err(error);
            }
            _ => {}
        }
        self.watched.1.0 += now().since(began).0;
        self.take(schedule);
        Ok(())
    }

    /// Takes in the completions that are there.
    fn take(&mut self, mut schedule: Option<&mut Schedule>) {
        let completions = self.ring.completion();
        if completions.is_empty() {
            return;
        }
        let at = now();
        self.answered = at;
        for entry in completions {
            self.in_flight -= 1;
            if entry.user_data() == NO_REQUEST {
                continue;
            }
            let index = entry.user_data() as usize;
            let all = i32::try_from(self.score.requests.length[index]).unwrap_or(i32::MAX);
            if entry.result() < all {
                self.times.failed += 1;
            } else {
                self.times.ended[index] = at;
            }
            if let Some(schedule) = &mut schedule {
                schedule.ended(index, at);
            }
        }
    }

    /// Waits for what is in flight.
    fn drain(&mut self) -> io::Result<()> {
        let began = now();
        while self.in_flight > 0 && !self.times.hangs {
            if self.is_over() && now().since(began) > PATIENCE_TO_STOP {
                break;
            }
            self.reap(TICK, None)?;
        }
        Ok(())
    }
}
