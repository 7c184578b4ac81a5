//! What was read is judged by its owner, beside the next request. What differs is read once more: somebody may have written it meanwhile.
//! What then differs from the same checksum is wrong.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use idlewise::Bytes;
use idlewise::order::Extent;

use super::faults::without;
use super::so_far::{ContentSoFar, Owned};
use crate::content::{Found, Gate, Judged, Suspect, Unasked};
use crate::device::verify::Verifier;
use crate::memory::Buffer;

/// An owner that has not answered for so long, in which this process ran and it might look things up, is not asked again until it does: its
/// file system hangs.
const PATIENCE: Duration = Duration::from_secs(10);
/// While it is waited for, it is looked so often whether it may go on.
const LOOK: Duration = Duration::from_millis(2);
/// What is free is asked for so much of the device at a time, and again after so long.
const WINDOW: u64 = 256 << 20;
const FRESH: Duration = Duration::from_secs(30);
/// A place that changes from one look to the next as often as this is written all the time.
const LOOKS: u32 = 8;

/// Judges, on a thread of its own: a file system may hang. What can be said without asking one is said at once.
pub struct Judging {
    found: Arc<Mutex<Found>>,
    tasks: Sender<Task>,
    answers: Receiver<Answer>,
    /// When the owners may look things up on the disk.
    gate: Gate,
    /// Memory for the next request; none while that is being judged.
    spare: Vec<Buffer>,
    edges: Vec<(Range<u64>, u64)>,
    /// Where the owners judge.
    judged_by: Vec<Range<u64>>,
    /// Places that differed at the last look, by their first bytes.
    suspects: BTreeMap<u64, (Suspect, u32)>,
    so_far: ContentSoFar,
    /// Stretches about which an owner was asked that did not answer in time: they are read and asked about once more.
    unanswered: Vec<Extent>,
    /// It did not answer then either. Until it answers, it is asked about each stretch but once.
    is_silent: bool,
    /// What is being judged, or was.
    at_work: Option<Work>,
    skip_free: bool,
    /// Whether anything is judged.
    judges: bool,
    /// What is free in a stretch, and when that was asked.
    window: Option<(Extent, Vec<Extent>, Instant)>,
    /// There was no answer yet: nothing is asked until it comes.
    is_lost: bool,
}

enum Work {
    Handed(Look),
    Done(Verdict),
}

enum Task {
    Judge(Look, Vec<Buffer>),
    Owners(Extent),
    Report(Extent),
    Free(Extent),
}

enum Answer {
    Judged(Look, Vec<Buffer>, Judged),
    Owners(Result<Vec<String>, Unasked>),
    Reported,
    Free(Result<Vec<Extent>, Unasked>),
}

/// A stretch that was read.
#[derive(Clone, Copy, Debug)]
struct Look {
    extent: Extent,
    /// With what was read behind it.
    read: u64,
    /// The pass has been there before, and has counted it.
    again: bool,
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Places to read once more.
    pub again: Vec<Extent>,
    /// Places that are wrong, and their kind.
    pub wrong: Vec<(Extent, &'static str)>,
    /// Stretches to read once more after a while, as an owner did not answer in time.
    pub late: Vec<Extent>,
    /// Stretches that their owners have judged, but for those to be read once more: what was wrong there before is known anew.
    pub compared: Vec<Extent>,
}

impl Judging {
    /// By the owners of a device; what they say is free is not to be read if `skip_free`. `so_far` is of the runs before this one.
    pub fn new(found: Found, skip_free: bool, so_far: Option<&ContentSoFar>) -> std::io::Result<Self> {
        let (tasks, todo) = channel::<Task>();
        let (done, answers) = channel();
        let earlier = so_far.cloned().unwrap_or_default();
        let mut owners = earlier.owners.clone();
        owners.extend(
            found
                .known_names()
                .into_iter()
                .filter(|name| !earlier.owners.iter().any(|known| known == name))
                .map(String::from),
        );
        let so_far = ContentSoFar { owners, ..earlier };
        let (edges, judged_by, judges, gate) = (found.edges(), found.judged(), found.judges(), found.gate.clone());
        let found = Arc::new(Mutex::new(found));
        let asked = found.clone();
        let work = move || {
            for task in todo {
                let answer = {
                    let mut found = asked.lock().unwrap_or_else(PoisonError::into_inner);
                    match task {
                        Task::Judge(look, mut memory) => {
                            let judged = found.judge(look.extent, &bytes(&mut memory, look));
                            Answer::Judged(look, memory, judged)
                        }
                        Task::Owners(extent) => Answer::Owners(found.owners(extent)),
                        Task::Report(extent) => {
                            found.report(extent);
                            Answer::Reported
                        }
                        Task::Free(extent) => Answer::Free(found.free(extent)),
                    }
                };
                if done.send(answer).is_err() {
                    break;
                }
            }
        };
        // It ends with what it answers to; where a file system hangs, with the process.
        thread::Builder::new().name("content".into()).spawn(work)?;
        Ok(Self {
            found,
            tasks,
            answers,
            gate,
            spare: Vec::new(),
            edges,
            judged_by,
            suspects: BTreeMap::new(),
            unanswered: Vec::new(),
            is_silent: false,
            so_far,
            at_work: None,
            skip_free,
            judges,
            window: None,
            is_lost: false,
        })
    }

    /// Whether something is being judged.
    pub fn at_work(&self) -> bool {
        self.at_work.is_some()
    }

    /// How a pass stands.
    pub fn so_far(&self) -> &ContentSoFar {
        &self.so_far
    }

    /// Whether the owners may look things up on the disk from now on.
    pub fn may_look(&self, may: bool) {
        self.gate.set(may);
    }

    /// A stretch with what must be read behind it so that all of it can be judged.
    pub fn whole(&self, extent: Extent) -> Extent {
        let end = extent.end().0;
        let part = self.edges.iter().find(|(part, _)| part.contains(&end.saturating_sub(1)));
        let whole =
            part.map_or(end, |(part, unit)| (part.start + (end - part.start).next_multiple_of(*unit)).min(part.end));
        Extent { length: Bytes(whole - extent.offset.0), ..extent }
    }

    /// A stretch with all that must be read around it so that it can be judged; none where nobody judges.
    pub fn units(&self, extent: Extent) -> Option<Extent> {
        let begin = extent.offset.0;
        let part = self.edges.iter().find(|(part, _)| part.contains(&begin));
        let begin = part.map_or(begin, |(part, unit)| part.start + (begin - part.start) / unit * unit);
        let whole = Extent { offset: Bytes(begin), length: Bytes(extent.end().0 - begin) };
        self.judges.then(|| self.whole(whole))
    }

    /// Whether the place was read and differed.
    pub fn suspects(&self, place: Bytes) -> bool {
        self.suspects.contains_key(&place.0)
    }

    /// Hands over what a verifier has read of this stretch, and `read` bytes in all. What was read before must be finished. What the
    /// pass visits `again` is not counted once more.
    pub fn take(&mut self, (extent, again): (Extent, bool), read: Bytes, verifier: &mut dyn Verifier) {
        // It comes late, for a stretch that counts as not asked about.
        if self.is_lost && self.answers.try_recv().is_ok() {
            self.is_lost = false;
        }
        if self.is_lost && !again {
            self.so_far.unasked_bytes += extent.length.0;
        }
        if self.is_lost || !self.judges {
            return;
        }
        let mut memory = verifier.take_read(std::mem::take(&mut self.spare));
        if memory.is_empty() || memory.iter().any(|memory| (memory.len() as u64) < read.0) {
            self.spare = memory;
            return;
        }
        let look = Look { extent, read: read.0, again };
        // Nobody else has them: all that was handed over is answered.
        let found = self.found.try_lock().ok();
        match found.and_then(|mut found| found.judge_at_once(extent, &bytes(&mut memory, look))) {
            Some(judged) => {
                self.spare = memory;
                self.at_work = Some(Work::Done(self.judged(look, judged)));
            }
            None => self.at_work = self.tasks.send(Task::Judge(look, memory)).is_ok().then_some(Work::Handed(look)),
        }
    }

    /// Waits until all that was read is judged; what came of it. `may_look` says whether the owners may look things up on the disk now.
    pub fn finish(&mut self, may_look: &mut dyn FnMut() -> bool) -> Verdict {
        let asked = match self.at_work.take() {
            None => return Verdict::default(),
            Some(Work::Done(verdict)) => return verdict,
            Some(Work::Handed(look)) => look,
        };
        match self.answer(may_look) {
            Some(Answer::Judged(look, memory, result)) => {
                self.spare = memory;
                self.judged(look, result)
            }
            // Whatever it says later, it is not waited for.
            _ if self.once_more(asked.extent) => Verdict { late: vec![asked.extent], ..Verdict::default() },
            _ => {
                self.so_far.unasked_bytes += if asked.again { 0 } else { asked.extent.length.0 };
                Verdict::default()
            }
        }
    }

    /// What lies in a stretch, if its owner says so.
    pub fn owners(&mut self, extent: Extent, may_look: &mut dyn FnMut() -> bool) -> Option<Vec<String>> {
        if self.is_lost || self.at_work() || self.tasks.send(Task::Owners(extent)).is_err() {
            return None;
        }
        match self.answer(may_look)? {
            Answer::Owners(owners) => owners.ok(),
            _ => None,
        }
    }

    /// Has its owner learn that a stretch cannot be read.
    pub fn report(&mut self, extent: Extent, may_look: &mut dyn FnMut() -> bool) {
        if !self.is_lost && !self.at_work() && self.tasks.send(Task::Report(extent)).is_ok() {
            self.answer(may_look);
        }
    }

    /// Whether what nothing uses is not to be read.
    pub fn skips_free(&self) -> bool {
        self.skip_free && !self.is_lost
    }

    /// What of a stretch is free, by what was asked lately. What cannot be asked is not free.
    pub fn free(&mut self, extent: Extent, size: Bytes, may_look: &mut dyn FnMut() -> bool) -> Vec<Extent> {
        let known = self.window.as_ref().filter(|(window, _, asked)| {
            window.offset <= extent.offset && window.end() >= extent.end() && asked.elapsed() < FRESH
        });
        if known.is_none() {
            let end = extent.end().0.max(extent.offset.0.saturating_add(WINDOW)).min(size.0);
            let window = Extent { length: Bytes(end - extent.offset.0), ..extent };
            let free = match self.tasks.send(Task::Free(window)).ok().and_then(|()| self.answer(may_look)) {
                Some(Answer::Free(Ok(free))) => free,
                _ => Vec::new(),
            };
            self.window = Some((window, free, Instant::now()));
        }
        let Some((_, free, _)) = &self.window else { return Vec::new() };
        let first = free.partition_point(|one| one.end() <= extent.offset);
        let within = free[first..].iter().take_while(|one| one.offset < extent.end());
        let part = |one: &Extent| {
            let (begin, end) = (one.offset.max(extent.offset), one.end().min(extent.end()));
            Extent { offset: begin, length: Bytes(end.0 - begin.0) }
        };
        within.map(part).collect()
    }

    /// So much was not read.
    pub fn skipped(&mut self, bytes: Bytes) {
        self.so_far.skipped_bytes += bytes.0;
    }

    /// Keeps what lies in a run of bad blocks.
    pub fn keep_owned(&mut self, owned: Owned) {
        self.so_far.owned.push(owned);
    }

    fn answer(&mut self, may_look: &mut dyn FnMut() -> bool) -> Option<Answer> {
        // Look by look: who was stopped for longer has waited for one of them.
        let mut waited = Duration::ZERO;
        let why = loop {
            let may = may_look();
            self.gate.set(may);
            match self.answers.recv_timeout(LOOK) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => break "its thread has ended".into(),
                Err(RecvTimeoutError::Timeout) if may => waited += LOOK,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if waited >= PATIENCE {
                break format!("no answer for {} s", PATIENCE.as_secs());
            }
        };
        self.so_far.unasked.get_or_insert(why);
        self.is_lost = true;
        None
    }

    /// Whether a stretch is to be asked about once more, about which there was no answer: a disk may have stood still for a moment.
    fn once_more(&mut self, extent: Extent) -> bool {
        let is_again = self.unanswered.iter().any(|one| one.offset < extent.end() && extent.offset < one.end());
        self.is_silent |= is_again;
        if !self.is_silent {
            self.unanswered.push(extent);
        }
        !self.is_silent
    }

    fn judged(&mut self, Look { extent, again, .. }: Look, judged: Judged) -> Verdict {
        if !judged.unasked.as_ref().is_some_and(|(_, why)| why.is_silent) {
            self.is_silent = false;
            self.unanswered.retain(|one| one.offset < extent.offset || one.end() > extent.end());
        } else if self.once_more(extent) {
            return Verdict { late: vec![extent], ..Verdict::default() };
        }
        let mut verdict = Verdict::default();
        let later = self.suspects.split_off(&extent.end().0);
        let mut earlier = self.suspects.split_off(&extent.offset.0);
        self.suspects.extend(later);
        // Of what could not be asked about nobody knows whether it still differs.
        earlier.retain(|&place, _| !judged.open.iter().any(|open| open.offset.0 <= place && place < open.end().0));
        self.so_far.mounted.extend(judged.mounted);
        if let Some((bytes, Unasked { why, .. })) = judged.unasked {
            self.so_far.unasked_bytes += if again { 0 } else { bytes };
            self.so_far.unasked.get_or_insert(why);
        }
        let mut settled = judged.judged;
        let differ: Vec<Extent> = judged.suspects.iter().map(|suspect| suspect.extent).collect();
        for suspect in judged.suspects {
            let (place, length) = (suspect.extent, suspect.extent.length.0);
            let before = earlier.remove(&place.offset.0);
            let looks = before.as_ref().map_or(1, |(_, looks)| looks + 1);
            if before.is_some_and(|(before, _)| before == suspect) {
                verdict.wrong.push((place, suspect.kind));
            } else if looks < LOOKS {
                settled = settled.saturating_sub(length);
                self.suspects.insert(place.offset.0, (suspect, looks));
                match verdict.again.last_mut().filter(|last| last.end() == place.offset) {
                    Some(last) => last.length.0 += length,
                    None => verdict.again.push(place),
                }
            } else {
                self.so_far.transient += 1;
            }
        }
        self.so_far.transient += earlier.len() as u64;
        if !again {
            self.so_far.judged_bytes += settled;
            self.so_far.free_bytes += judged.free;
            for (name, bytes) in judged.unmounted {
                *self.so_far.unmounted.entry(name).or_default() += bytes;
            }
        }
        let is_open = |place: &&Extent| {
            verdict.again.iter().any(|again| again.end() > place.offset && again.offset < place.end())
        };
        let open = differ.iter().filter(is_open).chain(&judged.open);
        let mut open: Vec<_> = open.map(|place| (place.offset.0, place.end().0)).collect();
        open.sort_unstable();
        for part in &self.judged_by {
            let (begin, end) = (part.start.max(extent.offset.0), part.end.min(extent.end().0));
            if begin < end {
                let within = Extent { offset: Bytes(begin), length: Bytes(end - begin) };
                verdict.compared.extend(without(within, &open));
            }
        }
        verdict
    }
}

/// What was read of each member.
fn bytes(memory: &mut [Buffer], look: Look) -> Vec<&[u8]> {
    memory.iter_mut().map(|one| &*one.bytes(look.read as usize)).collect()
}

#[cfg(test)]
mod tests;
