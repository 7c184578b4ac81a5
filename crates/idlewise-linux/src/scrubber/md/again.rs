//! A second look at what could not be read while md checked: most of it md has rewritten from what redundancy there is, or it was asked for
//! together with what is dead. Read one piece at a time, in the gaps, as a dead one may take a disk seconds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use super::failed::{PIECE, Piece, places_of};
use crate::memory::Buffer;
use crate::scrubber::Unread;

/// For so long it reads. Those that are left then count as unread.
const READING: Duration = Duration::from_secs(60);

/// What is left to be looked at, and what was found.
pub struct Again {
    left: VecDeque<Piece>,
    dead: Vec<Piece>,
    /// What the reader is at, since when.
    under_way: Option<(Piece, Instant)>,
    read_for: Duration,
    asked: Sender<Piece>,
    /// Whether it is dead.
    answers: Receiver<bool>,
}

impl Again {
    /// Of these pieces, on members by their numbers.
    ///
    /// # Errors
    /// If no thread can read them.
    pub fn begin(members: BTreeMap<u32, PathBuf>, pieces: BTreeSet<Piece>) -> io::Result<Self> {
        let (asked, asks) = channel::<Piece>();
        let (answer, answers) = channel();
        let read = move || {
            let mut disks: BTreeMap<u32, Option<File>> = BTreeMap::new();
            let mut buffer = Buffer::new(PIECE as usize);
            while let Ok((member, byte)) = asks.recv() {
                let open = || {
                    let path = members.get(&member)?;
                    OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).ok()
                };
                let disk = disks.entry(member).or_insert_with(open);
                let mut read = |disk: &File| disk.read_exact_at(buffer.bytes(PIECE as usize), byte);
                // Whoever asked may be gone.
                let _ = answer.send(disk.as_ref().is_none_or(|disk| read(disk).is_err()));
            }
        };
        std::thread::Builder::new().name("second-look".into()).spawn(read)?;
        let left = pieces.into_iter().collect();
        Ok(Self { left, dead: Vec::new(), under_way: None, read_for: Duration::ZERO, asked, answers })
    }

    /// Takes in an answer and, where it is open, asks for the next piece.
    pub fn look(&mut self, is_open: bool) {
        if let Some((piece, since)) = self.under_way {
            let is_dead = match self.answers.try_recv() {
                Err(TryRecvError::Empty) => return,
                // Of what nobody reads any more nothing is known.
                other => other.unwrap_or(true),
            };
            self.under_way = None;
            self.read_for += since.elapsed();
            self.dead.extend(is_dead.then_some(piece));
            if self.read_for > READING {
                self.dead.extend(self.left.drain(..));
            }
        }
        if is_open && let Some(piece) = self.left.pop_front() {
            let _ = self.asked.send(piece);
            self.under_way = Some((piece, Instant::now()));
        }
    }

    /// Nothing is being read.
    pub fn is_quiet(&self) -> bool {
        self.under_way.is_none()
    }

    /// All were looked at.
    pub fn is_over(&self) -> bool {
        self.is_quiet() && self.left.is_empty()
    }

    /// What cannot be read, and what was not looked at yet.
    pub fn places(&self) -> Vec<Unread> {
        let under_way = self.under_way.map(|(piece, _)| piece);
        let all: BTreeSet<Piece> = self.dead.iter().chain(&self.left).copied().chain(under_way).collect();
        places_of(all.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns until nothing is read; how often it was open.
    fn until_quiet(again: &mut Again) {
        for _ in 0..5_000 {
            again.look(false);
            if again.is_quiet() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("it never ends");
    }

    #[test]
    fn a_piece_is_read_each_time_that_it_is_open() {
        // The second piece of the one member is not there, and neither is the other member.
        let member = tempfile::NamedTempFile::new_in(".").unwrap();
        member.as_file().set_len(PIECE).unwrap();
        let members = BTreeMap::from([(0, member.path().to_path_buf()), (1, PathBuf::from("/dev/none"))]);
        let pieces = BTreeSet::from([(0, 0), (0, PIECE), (1, 0)]);
        let mut again = Again::begin(members, pieces).unwrap();
        again.look(false);
        assert!(again.is_quiet() && !again.is_over(), "nothing is read while it is held");
        let mut bytes = vec![Unread::bytes(&again.places())];
        for _ in 0..3 {
            again.look(true);
            assert!(!again.is_quiet() && !again.is_over());
            until_quiet(&mut again);
            bytes.push(Unread::bytes(&again.places()));
        }
        assert_eq!(bytes, [3, 2, 2, 2].map(|pieces| pieces * PIECE));
        assert!(again.is_over());
        let left = again.places();
        assert_eq!(left.iter().map(|one| (one.member, one.byte)).collect::<Vec<_>>(), [(0, PIECE), (1, 0)]);
    }
}
