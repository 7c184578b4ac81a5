use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::content::{CHECKSUM, Content};
use crate::device::verify::Fault;

const SECTOR: u64 = 4096;

fn at(sector: u64, sectors: u64) -> Extent {
    Extent { offset: Bytes(sector * SECTOR), length: Bytes(sectors * SECTOR) }
}

fn not_asked(extent: Extent) -> Judged {
    Judged { unasked: Some((extent.length.0, "gone".into())), open: vec![extent], ..Judged::default() }
}

fn judging() -> Judging {
    let judging = Judging::new(Found::default(), false, None).unwrap();
    Judging { judged_by: std::iter::once(0..100 * SECTOR).collect(), ..judging }
}

/// Judges 16 sectors, of which these differ from something.
fn look(judging: &mut Judging, extent: Extent, differs: &[(u64, u64)]) -> Verdict {
    let suspect = |&(sector, expected): &(u64, u64)| Suspect { extent: at(sector, 1), kind: CHECKSUM, expected };
    let suspects = differs.iter().map(suspect).collect();
    let judged = Judged { judged: extent.length.0, suspects, ..Judged::default() };
    judging.judged(Look { extent, read: extent.length.0, again: false }, judged)
}

#[test]
fn what_differs_twice_from_the_same_is_wrong_and_is_counted_once() {
    let mut judging = judging();
    let first = look(&mut judging, at(0, 16), &[(3, 1), (4, 1), (9, 2)]);
    assert_eq!(first.compared, [at(0, 3), at(5, 4), at(10, 6)]);
    assert_eq!((&first.again[..], &first.wrong[..]), (&[at(3, 2), at(9, 1)][..], &[][..]));
    assert_eq!(judging.so_far().judged_bytes, 13 * SECTOR);
    let second = look(&mut judging, at(3, 2), &[(3, 1), (4, 7)]);
    let (again, wrong, compared) = (vec![at(4, 1)], vec![(at(3, 1), CHECKSUM)], vec![at(3, 1)]);
    assert_eq!(second, Verdict { again, wrong, compared, late: vec![] });
    for place in [at(9, 1), at(4, 1)] {
        assert_eq!(look(&mut judging, place, &[]), Verdict { compared: vec![place], ..Verdict::default() });
    }
    let ContentSoFar { judged_bytes, transient, .. } = judging.so_far();
    assert_eq!((*judged_bytes, *transient, judging.suspects.len()), (16 * SECTOR, 2, 0));
}

/// Looks up three pieces before it answers.
struct LooksUp(Gate, Arc<AtomicU32>);

impl Content for LooksUp {
    fn judge(&mut self, extent: Extent, _read: &[&[u8]]) -> Result<Judged, Unasked> {
        for _ in 0..3 {
            self.0.pass();
            self.1.fetch_add(1, Ordering::SeqCst);
        }
        Ok(Judged { judged: extent.length.0, ..Judged::default() })
    }

    fn unit(&self) -> u64 {
        SECTOR
    }

    fn owners(&mut self, _extent: Extent) -> Result<Vec<String>, Unasked> {
        Ok(Vec::new())
    }
}

/// What an owner looks up is left, in the middle of a question too, for as long as the foreground uses the disk.
#[test]
fn owners_make_way_for_the_foreground() {
    let (gate, pieces) = (Gate::default(), Arc::new(AtomicU32::new(0)));
    let content = Box::new(LooksUp(gate.clone(), pieces.clone()));
    let mut judging = Judging::new(Found::of_one(content, 16 * SECTOR, gate), false, None).unwrap();
    judging.may_look(false);
    let look = Look { extent: at(0, 16), read: 16 * SECTOR, again: false };
    judging.tasks.send(Task::Judge(look, vec![Buffer::new(16 * SECTOR as usize)])).unwrap();
    judging.at_work = Some(Work::Handed(look));
    let mut busy = 20;
    judging.finish(&mut || {
        let looked_up = pieces.load(Ordering::SeqCst);
        assert!(busy == 0 || looked_up == 0, "{looked_up} pieces while the foreground was at work");
        busy = u32::saturating_sub(busy, 1);
        busy == 0
    });
    assert_eq!((judging.so_far().judged_bytes, pieces.load(Ordering::SeqCst)), (16 * SECTOR, 3));
}

/// Knows what the first sectors should be, and is asked about the others.
struct KnowsSome(Arc<AtomicU32>);

impl Content for KnowsSome {
    fn judge(&mut self, extent: Extent, _read: &[&[u8]]) -> Result<Judged, Unasked> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Judged { judged: extent.length.0, ..Judged::default() })
    }

    fn judge_at_once(&mut self, extent: Extent, read: &[&[u8]]) -> Option<Judged> {
        let is_known = extent.end().0 <= 16 * SECTOR && read[0].iter().all(|byte| *byte == 0);
        is_known.then(|| Judged { judged: extent.length.0, ..Judged::default() })
    }

    fn unit(&self) -> u64 {
        SECTOR
    }

    fn owners(&mut self, _extent: Extent) -> Result<Vec<String>, Unasked> {
        Ok(Vec::new())
    }
}

/// Has read a stretch of one byte again and again.
struct HasRead(u8);

impl Verifier for HasRead {
    fn name(&self) -> &'static str {
        "has-read"
    }

    fn start(&mut self, _: Extent) -> Result<(), Fault> {
        Ok(())
    }

    fn wait(&mut self, _: Duration) -> Option<Result<(), Fault>> {
        Some(Ok(()))
    }

    fn take_read(&mut self, _spare: Vec<Buffer>) -> Vec<Buffer> {
        let mut memory = Buffer::new(16 * SECTOR as usize);
        memory.bytes(16 * SECTOR as usize).fill(self.0);
        vec![memory]
    }
}

/// What an owner can say at once is not handed to the thread; either way it is counted once.
#[test]
fn what_is_known_is_judged_at_once() {
    let asked = Arc::new(AtomicU32::new(0));
    let found = Found::of_one(Box::new(KnowsSome(asked.clone())), 64 * SECTOR, Gate::default());
    let mut judging = Judging::new(found, false, None).unwrap();
    for (extent, byte, asks) in [(at(0, 16), 0, 0), (at(0, 16), 1, 1), (at(16, 16), 0, 2), (at(8, 8), 0, 2)] {
        judging.take((extent, false), Bytes(16 * SECTOR), &mut HasRead(byte));
        assert!(judging.at_work());
        assert_eq!(judging.finish(&mut || true).compared, [extent]);
        assert_eq!((asked.load(Ordering::SeqCst), judging.at_work()), (asks, false), "{extent:?}, {byte}");
    }
    assert_eq!(judging.so_far().judged_bytes, 56 * SECTOR);
}

#[test]
fn what_is_written_all_the_time_is_not_looked_at_for_ever() {
    let mut judging = judging();
    let looks = (0..).take_while(|&look_at| !look(&mut judging, at(0, 1), &[(0, look_at)]).again.is_empty());
    assert_eq!(looks.count() as u32, LOOKS - 1);
    assert_eq!(judging.so_far().transient, 1);
}

/// What a pass visits once more is looked at, and is not added to what it has compared.
#[test]
fn what_is_visited_again_is_not_counted_again() {
    let mut judging = judging();
    look(&mut judging, at(0, 16), &[]);
    let judged = Judged { judged: 16 * SECTOR, open: vec![at(2, 1)], ..Judged::default() };
    let again = Look { extent: at(0, 16), read: 16 * SECTOR, again: true };
    assert_eq!(judging.judged(again, judged).compared, [at(0, 2), at(3, 13)]);
    assert_eq!(judging.judged(again, not_asked(again.extent)), Verdict::default());
    let ContentSoFar { judged_bytes, unasked_bytes, .. } = judging.so_far();
    assert_eq!((*judged_bytes, *unasked_bytes), (16 * SECTOR, 0));
}

/// A disk that stands still for a moment leaves nothing behind that was not asked about; one that never answers does not hold up the pass.
#[test]
fn what_was_not_answered_in_time_is_asked_about_once_more() {
    let mut judging = judging();
    let look = |extent: Extent| Look { extent, read: extent.length.0, again: false };
    let silent = |extent: Extent| {
        let why = Unasked { why: "late".into(), is_silent: true };
        Judged { unasked: Some((extent.length.0, why)), ..not_asked(extent) }
    };
    let judged = |extent: Extent| Judged { judged: extent.length.0, ..Judged::default() };
    for first in [at(0, 16), at(16, 16)] {
        let late = vec![first];
        assert_eq!(judging.judged(look(first), silent(first)), Verdict { late, ..Verdict::default() });
    }
    assert_eq!(judging.judged(look(at(0, 16)), judged(at(0, 16))).compared, [at(0, 16)]);
    assert_eq!((judging.so_far().judged_bytes, judging.so_far().unasked_bytes), (16 * SECTOR, 0));
    // A part of it, in a smaller request; then another stretch.
    for unanswered in [at(16, 8), at(32, 16)] {
        assert_eq!(judging.judged(look(unanswered), silent(unanswered)), Verdict::default());
    }
    assert_eq!((judging.so_far().unasked.as_deref(), judging.so_far().unasked_bytes), (Some("late"), 24 * SECTOR));
    judging.judged(look(at(48, 16)), judged(at(48, 16)));
    assert_eq!(judging.judged(look(at(64, 1)), silent(at(64, 1))).late, [at(64, 1)]);
}

#[test]
fn what_cannot_be_asked_is_not_judged() {
    let mut judging = judging();
    look(&mut judging, at(0, 16), &[(3, 1)]);
    let asked = Look { extent: at(3, 1), read: SECTOR, again: false };
    assert_eq!(judging.judged(asked, not_asked(asked.extent)), Verdict::default());
    assert_eq!((judging.so_far().unasked.as_deref(), judging.suspects.len()), (Some("gone"), 0));
    look(&mut judging, at(16, 16), &[]);
    assert_eq!((judging.so_far().unasked.as_deref(), judging.so_far().unasked_bytes), (Some("gone"), SECTOR));
}
