//! Reading the same place of every member of an array together: it is verified when all have answered.

use std::time::{Duration, Instant};

use idlewise::Bytes;
use idlewise::disk::LARGEST_REQUEST;
use idlewise::order::Extent;

use super::{DirectRead, Fault, Verifier};
use crate::device::Device;
use crate::memory::Buffer;

/// No more than so much is read at once from all together.
const MOST: u64 = 256 << 20;

/// A place that is read of a member.
pub struct MemberPlace<'a> {
    /// The member.
    pub device: &'a Device,
    /// How much further on than the place in the array.
    pub begin: u64,
}

/// The verifier that reads members.
pub struct Members {
    readers: Vec<Reader>,
    longest: u64,
}

/// A reader, where its data begin, and what came of its request.
type Reader = (DirectRead, Bytes, Option<Result<(), Fault>>);

impl Members {
    /// Of these places, for stretches of at most `largest`. The devices must stay open as long as it.
    ///
    /// # Errors
    /// A fault if the kernel offers no io_uring.
    pub fn new(places: &[MemberPlace], largest: Bytes) -> Result<Self, Fault> {
        let longest = (MOST / places.len().max(1) as u64 / 4096 * 4096).min(largest.max(LARGEST_REQUEST).0);
        let reader =
            |place: &MemberPlace| Ok((DirectRead::new(place.device, Bytes(longest))?, Bytes(place.begin), None));
        Ok(Self { readers: places.iter().map(reader).collect::<Result<_, _>>()?, longest })
    }
}

impl Verifier for Members {
    fn name(&self) -> &'static str {
        "members"
    }

    fn reads(&self) -> bool {
        true
    }

    fn start(&mut self, extent: Extent) -> Result<(), Fault> {
        if extent.length.0 > self.longest {
            return Err(Fault::Refused(format!("{} is more than is read of each member at once", extent.length)));
        }
        for (reader, begin, done) in &mut self.readers {
            let there = Extent { offset: Bytes(extent.offset.0 + begin.0), ..extent };
            // What the others read is waited for all the same.
            *done = reader.start(there).err().map(Err);
        }
        Ok(())
    }

    fn wait(&mut self, timeout: Duration) -> Option<Result<(), Fault>> {
        let until = Instant::now() + timeout;
        for (reader, _, done) in &mut self.readers {
            while done.is_none() {
                let left = until.saturating_duration_since(Instant::now());
                *done = reader.wait(left);
                if done.is_none() && left.is_zero() {
                    return None;
                }
            }
        }
        let results = self.readers.iter_mut().map(|(_, begin, done)| (*begin, done.take().unwrap_or(Ok(()))));
        let mut worst = Ok(());
        for (begin, result) in results {
            let fault = match result {
                Ok(()) => continue,
                Err(Fault::Unreadable { kind, at }) => {
                    let at = at.and_then(|at| Some(Bytes(at.0.checked_sub(begin.0)?)));
                    Fault::Unreadable { kind, at }
                }
                Err(other) => other,
            };
            if worst.as_ref().err().is_none_or(|worst| rank(&fault) > rank(worst)) {
                worst = Err(fault);
            }
        }
        Some(worst)
    }

    fn take_read(&mut self, spare: Vec<Buffer>) -> Vec<Buffer> {
        let mut spare = spare.into_iter();
        let taken = |(reader, _, _): &mut Reader| reader.take_read(spare.next().into_iter().collect());
        self.readers.iter_mut().flat_map(taken).collect()
    }
}

/// What matters most where several members fail.
fn rank(fault: &Fault) -> u8 {
    match fault {
        Fault::Passing { .. } => 0,
        Fault::Unreadable { .. } => 1,
        Fault::Refused(_) => 2,
        Fault::Device(_) => 3,
    }
}
