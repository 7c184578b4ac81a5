//! How much of a verify a foreground read waits for that arrives in the middle of it. On a disk that serves one request at a time it is all
//! that is left; on one that serves many it is little.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use idlewise::disk::{Interference, LARGEST_REQUEST, SMALLEST_REQUEST};
use idlewise::order::Extent;
use idlewise::{Bytes, Nanos};

use super::{Probe, Service, Watch, mean};
use crate::device::verify::{DirectRead, Fault, Verifier};
use crate::monitor::now;
use crate::scrub::ScrubError;
use crate::scrub::lane::Timed;

/// Reads that arrive beside verifies of each size, and as many alone.
const ROUNDS: usize = 24;
/// Attempts, where something is in the way.
const TRIES: usize = 48;
/// Size of a foreground read, on devices whose blocks are no larger.
const READ: u64 = 4096;
/// No measurement shows that nobody ever waits.
const LEAST: f64 = 0.001;
/// How often it looks whether either is done.
const LOOK: Duration = Duration::from_micros(20);

/// What verifies of one size cost reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interfered {
    /// Size of the verifies.
    pub size: Bytes,
    /// Mean response time of a read alone.
    pub alone: Nanos,
    /// That of a read that arrived during a verify.
    pub meanwhile: Nanos,
    /// How much was left of the verify then, on average.
    pub left: Nanos,
    /// What the read took longer, over what was left.
    pub part: f64,
    /// Standard error of `part`.
    pub error: f64,
}

impl Interfered {
    /// For a disk model: one standard error more than was measured, as a promise depends on it. Where a read takes longer alone by more than
    /// chance, as a processor has to wake up first, that says nothing of the disk: it is full.
    pub fn interference(&self) -> Interference {
        match self.part + 2.0 * self.error < 0.0 {
            true => Interference::FULL,
            false => Interference::new((self.part.max(0.0) + self.error).max(LEAST)),
        }
    }
}

/// What is read during the next verify, when, and how that went.
#[derive(Clone, Copy, Debug)]
struct Next {
    read: Extent,
    /// So long after the verify began; at once and without a verify if `None`.
    after: Option<Duration>,
    answer: Option<Answer>,
}

/// How long a read took, and how much was left of the verify when it came.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Answer {
    response: Nanos,
    left: Nanos,
}

/// Verifies what it is asked to, and reads elsewhere while that is in service. It is done when both are, even if one failed: neither takes a
/// request while it serves another.
struct WithRead {
    verifier: Box<dyn Verifier>,
    reader: Box<dyn Verifier>,
    next: Arc<Mutex<Next>>,
    read_at: Nanos,
    /// When the verify and the read were done.
    verified: Option<Nanos>,
    answered: Option<Nanos>,
    /// What was in the way of the first that failed.
    failed: Option<Fault>,
}

impl Verifier for WithRead {
    fn name(&self) -> &'static str {
        self.verifier.name()
    }

    fn reads(&self) -> bool {
        self.verifier.reads()
    }

    fn start(&mut self, extent: Extent) -> Result<(), Fault> {
        let next = *lock(&self.next);
        (self.verified, self.answered, self.failed) = (None, None, None);
        match next.after {
            Some(after) => {
                self.verifier.start(extent)?;
                thread::sleep(after);
            }
            None => self.verified = Some(now()),
        }
        self.read_at = now();
        self.failed = self.reader.start(next.read).err();
        self.answered = self.failed.as_ref().map(|_| self.read_at);
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Option<Result<(), Fault>> {
        let until = Nanos(now().0.saturating_add(Nanos::from(timeout).0));
        loop {
            for (done, verifier) in [(&mut self.answered, &mut self.reader), (&mut self.verified, &mut self.verifier)] {
                if done.is_none()
                    && let Some(result) = verifier.wait(Duration::ZERO)
                {
                    *done = Some(now());
                    self.failed = self.failed.take().or(result.err());
                }
            }
            if let (Some(verified), Some(answered)) = (self.verified, self.answered) {
                if let Some(fault) = self.failed.take() {
                    return Some(Err(fault));
                }
                let since = |at: Nanos| at.since(self.read_at);
                lock(&self.next).answer = Some(Answer { response: since(answered), left: since(verified) });
                return Some(Ok(()));
            }
            if now() >= until {
                return None;
            }
            thread::sleep(LOOK);
        }
    }
}

fn lock(next: &Mutex<Next>) -> MutexGuard<'_, Next> {
    next.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the last measurement finds, and the stretches in which something could not be read in any.
pub type Last = (Vec<Interfered>, Vec<Extent>);

/// The interference of verifies of each size that a disk model has; `None` when asked to stop. It is the last thing that is measured.
///
/// # Errors
/// If the monitor or the device fails.
pub fn interference(mut probe: Probe, service: &[Service], watch: Watch) -> Result<Option<Last>, ScrubError> {
    let modelled = |one: &&Service| (SMALLEST_REQUEST..=LARGEST_REQUEST).contains(&one.size);
    let sizes: Vec<Service> = service.iter().filter(modelled).copied().collect();
    let length = Bytes(READ.max(probe.block()));
    let reader = DirectRead::new(probe.lane.device, length).map_err(|fault| ScrubError::Device(fault.to_string()))?;
    let next = Arc::new(Mutex::new(Next { read: probe.anywhere(length), after: None, answer: None }));
    probe.lane.verifier = Box::new(WithRead {
        verifier: probe.lane.verifier,
        reader: Box::new(reader),
        next: Arc::clone(&next),
        read_at: Nanos::ZERO,
        verified: None,
        answered: None,
        failed: None,
    });
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for (index, one) in sizes.iter().enumerate() {
        let mut row = Vec::new();
        for attempt in 0..TRIES {
            watch((index * TRIES + attempt) as f64 / (sizes.len() * TRIES) as f64);
            if row.len() == ROUNDS {
                break;
            }
            // Each in another part of the verify, and one alone for each.
            let part = (row.len() as f64 + 0.5) / ROUNDS as f64;
            let after = Duration::from_nanos((one.moved.0 as f64 * part) as u64);
            for (after, answers) in [(None, &mut alone), (Some(after), &mut row)] {
                let read = probe.anywhere(length);
                let extent = if after.is_some() { probe.anywhere(one.size) } else { read };
                *lock(&next) = Next { read, after, answer: None };
                match probe.time(extent)? {
                    None => return Ok(None),
                    Some(Timed::Good { .. }) => answers.extend(lock(&next).answer),
                    Some(Timed::Bad { .. } | Timed::Refused) => {}
                }
            }
        }
        beside.push((one.size, row));
    }
    let found = beside.iter().filter_map(|(size, row)| interfered(*size, row, &alone)).collect();
    Ok(Some((found, probe.unreadable)))
}

/// What these reads, during verifies of one size and alone, say; nothing of too few.
fn interfered(size: Bytes, beside: &[Answer], alone: &[Answer]) -> Option<Interfered> {
    let responses = |answers: &[Answer]| answers.iter().map(|answer| answer.response).collect::<Vec<_>>();
    let (during, without) = (responses(beside), responses(alone));
    let left = mean(&beside.iter().map(|answer| answer.left).collect::<Vec<_>>());
    if during.len() < ROUNDS / 2 || without.len() < ROUNDS / 2 || left == Nanos::ZERO {
        return None;
    }
    let (meanwhile, alone) = (mean(&during), mean(&without));
    let over = |time: f64| time / left.0 as f64;
    let part = over(meanwhile.0 as f64 - alone.0 as f64);
    let error = over((variance_of_mean(&during, meanwhile) + variance_of_mean(&without, alone)).sqrt());
    Some(Interfered { size, alone, meanwhile, left, part, error })
}

/// The variance of the mean of some times, in nanoseconds squared.
fn variance_of_mean(times: &[Nanos], mean: Nanos) -> f64 {
    let squares: f64 = times.iter().map(|time| (time.0 as f64 - mean.0 as f64).powi(2)).sum();
    squares / (times.len() as f64 * (times.len() as f64 - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves for so many looks, then ends so; a second request meanwhile is a mistake.
    struct Serves(usize, Result<(), Fault>, Option<usize>);

    impl Verifier for Serves {
        fn name(&self) -> &'static str {
            "serves"
        }

        fn start(&mut self, _extent: Extent) -> Result<(), Fault> {
            assert!(self.2.replace(self.0).is_none(), "one is in service");
            Ok(())
        }

        fn wait(&mut self, _timeout: Duration) -> Option<Result<(), Fault>> {
            let left = self.2.as_mut().expect("something is in service");
            *left = left.saturating_sub(1);
            (*left == 0).then(|| {
                self.2 = None;
                self.1.clone()
            })
        }
    }

    /// Whichever fails first, the other is awaited before the next request.
    #[test]
    fn none_is_left_in_service() {
        let bad = || Err(Fault::Passing { kind: "aborted" });
        let extent = Extent { offset: Bytes(0), length: Bytes(4_096) };
        for (verify, read) in [((5, bad()), (30, Ok(()))), ((30, Ok(())), (5, bad())), ((9, bad()), (9, bad()))] {
            let next = Next { read: extent, after: Some(Duration::ZERO), answer: None };
            let mut both = WithRead {
                verifier: Box::new(Serves(verify.0, verify.1, None)),
                reader: Box::new(Serves(read.0, read.1, None)),
                next: Arc::new(Mutex::new(next)),
                read_at: Nanos::ZERO,
                verified: None,
                answered: None,
                failed: None,
            };
            for _ in 0..3 {
                both.start(extent).unwrap();
                while both.wait(LOOK).inspect(|done| assert_eq!(*done, bad())).is_none() {}
                assert_eq!(lock(&both.next).answer, None);
            }
        }
    }

    fn answer(response: u64, left: u64) -> Answer {
        Answer { response: Nanos(response), left: Nanos(left) }
    }

    /// Alone 90 and 110, during a verify 140 and 180, when 80 and 120 were left of it.
    #[test]
    fn what_a_read_takes_longer_over_what_was_left() {
        let pairs = |a, b| [a, b].repeat(ROUNDS / 2);
        let (alone, beside) = (pairs(answer(90, 0), answer(110, 0)), pairs(answer(140, 80), answer(180, 120)));
        let found = interfered(Bytes(1 << 16), &beside, &alone).unwrap();
        assert_eq!((found.alone, found.meanwhile, found.left, found.part), (Nanos(100), Nanos(160), Nanos(100), 0.6));
        // Deviations of 10 and 20 around the means of 24: the root of (100 + 400) / 23.
        let error = (500.0f64 / 23.0).sqrt() / 100.0;
        assert!((found.error - error).abs() < 1e-12, "{}", found.error);
        assert_eq!(found.interference(), Interference::new(0.6 + error));
        let measured = |part, error| Interfered { part, error, ..found }.interference();
        assert_eq!([measured(-0.3, 0.2), measured(-0.5, 0.2)], [Interference::new(0.2), Interference::FULL]);
        assert_eq!(measured(0.0, 0.0), Interference::new(0.001));
        assert!(interfered(Bytes(1 << 16), &beside[..ROUNDS / 2 - 1], &alone).is_none());
    }
}
