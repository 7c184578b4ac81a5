//! What the members of an array hold where md would rewrite one of them: sector by sector, as far as it can be read.

use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::SECTOR;
use crate::device::{Device, is_of_the_medium};
use crate::memory::Buffer;

const LENGTH: usize = SECTOR as usize;

/// What one member holds.
pub struct Held {
    bytes: Vec<u8>,
    /// Of each sector.
    is_readable: Vec<bool>,
}

/// Where the members do not hold what md would take for granted.
#[derive(Debug, PartialEq, Eq)]
pub enum Differs {
    /// What the member that is repaired holds is something else than the others tell, at this sector from the beginning.
    FromOthers(usize),
    /// It cannot be read there, and the others hold different things.
    Among(usize),
}

impl Held {
    /// Reads these sectors of a device, in blocks of its own.
    ///
    /// # Errors
    /// Where something else than the medium is in the way: nothing is known then.
    pub fn read(device: &Device, sectors: &Range<u64>) -> io::Result<Self> {
        let block = u64::from(device.block);
        let read = |at: u64, into: &mut [u8]| device.file.read_exact_at(into, at);
        Self::by(block, sectors, read)
    }

    fn by(
        block: u64,
        sectors: &Range<u64>,
        mut read: impl FnMut(u64, &mut [u8]) -> io::Result<()>,
    ) -> io::Result<Self> {
        let (begin, end) = (sectors.start * SECTOR, sectors.end * SECTOR);
        let count = (sectors.end - sectors.start) as usize;
        let mut held = Self { bytes: vec![0; count * LENGTH], is_readable: vec![false; count] };
        let mut buffer = Buffer::new(block as usize);
        for at in (begin / block * block..end).step_by(block as usize) {
            let bytes = buffer.bytes(block as usize);
            match read(at, bytes) {
                Err(error) if is_of_the_medium(&error) => continue,
                other => other?,
            }
            let (from, to) = (at.max(begin), (at + block).min(end));
            held.bytes[(from - begin) as usize..(to - begin) as usize]
                .copy_from_slice(&bytes[(from - at) as usize..(to - at) as usize]);
            held.is_readable[((from - begin) / SECTOR) as usize..((to - begin) / SECTOR) as usize].fill(true);
        }
        Ok(held)
    }

    fn sector(&self, at: usize) -> Option<&[u8]> {
        self.is_readable[at].then(|| &self.bytes[at * LENGTH..(at + 1) * LENGTH])
    }
}

/// Where mirrors differ.
pub fn mirrors(ours: &Held, others: &[Held]) -> Option<Differs> {
    (0..ours.is_readable.len()).find_map(|at| {
        let mut theirs = others.iter().filter_map(|held| held.sector(at));
        match ours.sector(at) {
            Some(ours) => theirs.any(|other| other != ours).then_some(Differs::FromOthers(at)),
            None => {
                let first = theirs.next()?;
                theirs.any(|other| other != first).then_some(Differs::Among(at))
            }
        }
    })
}

/// Where the sum of all is not zero, as it is with one parity.
pub fn parity(ours: &Held, others: &[Held]) -> Option<Differs> {
    let sum_at = |at: usize| {
        let mut sum = ours.sector(at)?.to_vec();
        for other in others {
            sum.iter_mut().zip(other.sector(at)?).for_each(|(sum, byte)| *sum ^= byte);
        }
        Some(sum)
    };
    let differs = |at: &usize| sum_at(*at).is_some_and(|sum| sum.iter().any(|byte| *byte != 0));
    (0..ours.is_readable.len()).find(differs).map(Differs::FromOthers)
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    /// A member whose sectors hold these bytes; none where it cannot be read.
    fn held(sectors: &[Option<u8>]) -> Held {
        let bytes = sectors.iter().flat_map(|byte| [byte.unwrap_or(0); LENGTH]).collect();
        Held { bytes, is_readable: sectors.iter().map(Option::is_some).collect() }
    }

    #[test]
    fn mirrors_agree_as_far_as_they_can_be_read() {
        let ours = held(&[Some(1), None, Some(3)]);
        assert_eq!(mirrors(&ours, &[held(&[Some(1), Some(2), Some(3)])]), None);
        assert_eq!(mirrors(&ours, &[held(&[None, Some(2), Some(4)])]), Some(Differs::FromOthers(2)));
        let third = held(&[Some(1), Some(9), Some(3)]);
        assert_eq!(mirrors(&ours, &[held(&[Some(1), Some(2), Some(3)]), third]), Some(Differs::Among(1)));
        assert_eq!(mirrors(&held(&[None]), &[held(&[None]), held(&[Some(1)])]), None);
    }

    #[test]
    fn a_parity_is_the_sum_of_the_others() {
        let (one, two) = (held(&[Some(1), Some(1), Some(1)]), held(&[Some(2), Some(2), None]));
        assert_eq!(parity(&held(&[Some(3), None, Some(9)]), &[one, two]), None);
        let (one, two) = (held(&[Some(1), Some(1)]), held(&[Some(2), Some(2)]));
        assert_eq!(parity(&held(&[None, Some(4)]), &[one, two]), Some(Differs::FromOthers(1)));
    }

    /// A member with larger blocks is read in these, and another error than the medium's is none of the medium's.
    #[test]
    fn each_member_is_read_in_its_own_blocks() {
        let mut asked = Vec::new();
        let held = Held::by(4096, &(6..18), |at, into| {
            asked.push((at, into.len()));
            into.iter_mut().zip(at..).for_each(|(byte, at)| *byte = (at / SECTOR) as u8);
            if at == 4096 { Err(Errno::IO.into()) } else { Ok(()) }
        });
        let held = held.unwrap();
        assert_eq!(asked, [(0, 4096), (4096, 4096), (8192, 4096)]);
        let seen: Vec<Option<u8>> = (0..12).map(|at| held.sector(at).map(|bytes| bytes[LENGTH - 1])).collect();
        assert_eq!(seen[..2], [Some(6), Some(7)]);
        assert!(seen[2..10].iter().all(Option::is_none) && seen[10..] == [Some(16), Some(17)]);
        assert!(Held::by(512, &(0..1), |_, _| Err(Errno::INVAL.into())).is_err());
    }
}
