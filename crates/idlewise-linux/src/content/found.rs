//! Which parts of a device belong to whom: its partitions, or the device as a whole.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use idlewise::Bytes;
use idlewise::order::Extent;

use super::{Array, Content, Gate, Judged, Md, OWNERS, Unasked};
use crate::apart;
use crate::device::{Device, numbers};
use crate::memory::Buffer;

/// A part of a device on which a file system may lie.
pub struct Part {
    /// The device that it is part of, open for direct reads.
    pub disk: File,
    /// Where on that.
    pub range: Range<u64>,
    /// Its name in sysfs.
    pub name: String,
    /// Its major and minor number.
    pub number: Option<(u32, u32)>,
    /// When what its owner has to look up may be read.
    pub gate: Gate,
}

impl Part {
    /// So many bytes at a place of it, both multiples of any block.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        if at + length as u64 > self.range.end - self.range.start {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut buffer = Buffer::new(length);
        let bytes = buffer.bytes(length);
        self.disk.read_exact_at(bytes, self.range.start + at)?;
        Ok(bytes.to_vec())
    }
}

/// Bytes that are read to see whether a disk answers: a multiple of any block.
const FIRST: usize = 4096;

/// The owners of a device.
#[derive(Default)]
pub struct Found {
    parts: Vec<Owned>,
    /// When what they have to look up may be read.
    pub gate: Gate,
    /// What has an owner that cannot be asked: part, owner and why.
    pub passed: Vec<(String, &'static str, String)>,
}

struct Owned {
    range: Range<u64>,
    owner: &'static str,
    content: Box<dyn Content>,
}

/// Finds the owners of a device, or only those of this name.
pub fn find(device: &Device, name: Option<&str>) -> Found {
    let mut found = Found::default();
    for (range, part) in device.parts() {
        let Ok(disk) = device.file.try_clone() else { continue };
        let number = numbers(&Path::new("/sys/class/block").join(&part));
        // Whoever looks for an owner reads, and of a disk that hangs nobody would ever come back.
        if apart::read_at(&disk, range.start, FIRST).is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            found.passed.push((part, "content", "the disk does not answer".into()));
            continue;
        }
        let part = Part { disk, range: range.clone(), name: part, number, gate: found.gate.clone() };
        for owner in OWNERS.iter().filter(|owner| name.is_none_or(|name| name == owner.name)) {
            match (owner.open)(&part) {
                Ok(Some(content)) => {
                    found.parts.push(Owned { range, owner: owner.name, content });
                    break;
                }
                Ok(None) => {}
                Err(why) => found.passed.push((part.name.clone(), owner.name, why)),
            }
        }
    }
    found
}

impl Found {
    /// An array as a whole.
    pub fn of_array(array: Arc<Array>, block: u32) -> Self {
        let range = 0..array.size.0;
        let content = Box::new(Md::new(array, block));
        Self { parts: vec![Owned { range, owner: Md::NAME, content }], ..Self::default() }
    }

    /// One owner of so many bytes.
    #[cfg(test)]
    pub fn of_one(content: Box<dyn Content>, length: u64, gate: Gate) -> Self {
        Self { parts: vec![Owned { range: 0..length, owner: "one", content }], gate, ..Self::default() }
    }

    /// Whether there is none that can be asked.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The names of those that are asked, each once.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.parts.iter().map(|part| part.owner).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether any of them judges what is read.
    pub fn judges(&self) -> bool {
        self.parts.iter().any(|part| part.content.judges())
    }

    /// The names of those that judge, and how much of the device is theirs.
    pub fn judging(&self) -> (Vec<&'static str>, Bytes) {
        let judging = || self.parts.iter().filter(|part| part.content.judges());
        let mut names: Vec<_> = judging().map(|part| part.owner).collect();
        names.dedup();
        (names, Bytes(judging().map(|part| part.range.end - part.range.start).sum()))
    }

    /// What of a stretch nothing uses, in order. Of what has no owner that is not known.
    ///
    /// # Errors
    /// Why an owner cannot be asked.
    pub(crate) fn free(&mut self, extent: Extent) -> Result<Vec<Extent>, Unasked> {
        let mut free = Vec::new();
        for (within, part) in self.within(extent) {
            free.extend(part.content.free(within)?);
        }
        Ok(free)
    }

    /// What is judged as one is within multiples of this, where all parts begin at such.
    pub(crate) fn unit(&self) -> u64 {
        self.parts.iter().map(|part| part.content.unit()).max().unwrap_or(1).max(4096)
    }

    /// Each part, and the length of what is judged as one in it.
    pub(crate) fn edges(&self) -> Vec<(Range<u64>, u64)> {
        self.parts.iter().map(|part| (part.range.clone(), part.content.unit().max(1))).collect()
    }

    fn within(&mut self, extent: Extent) -> impl Iterator<Item = (Extent, &mut Owned)> {
        self.parts.iter_mut().filter_map(move |part| {
            let (begin, end) = (extent.offset.0.max(part.range.start), extent.end().0.min(part.range.end));
            (begin < end).then(|| (Extent { offset: Bytes(begin), length: Bytes(end - begin) }, part))
        })
    }
}

impl Found {
    /// Judges what begins in a stretch; `read` is what was read from its first byte on.
    ///
    /// # Errors
    /// Why an owner cannot be asked.
    pub(crate) fn judge(&mut self, extent: Extent, read: &[&[u8]]) -> Result<Judged, Unasked> {
        let mut all = Judged::default();
        for (within, part) in self.within(extent) {
            let from = (within.offset.0 - extent.offset.0) as usize;
            let judged = part
                .content
                .judge(within, &read.iter().map(|read| &read[from.min(read.len())..]).collect::<Vec<_>>())?;
            all.judged += judged.judged;
            all.free += judged.free;
            all.suspects.extend(judged.suspects);
        }
        Ok(all)
    }

    /// Whether any of a stretch has an owner that is asked.
    pub(crate) fn is_owned(&mut self, extent: Extent) -> bool {
        self.within(extent).next().is_some()
    }

    /// Has the owners rewrite what is wrong in a stretch.
    ///
    /// # Errors
    /// Why one of them does not.
    pub(crate) fn mend(&mut self, extent: Extent) -> Result<(), Unasked> {
        self.within(extent).try_for_each(|(within, part)| part.content.mend(within))
    }

    /// What lies in a stretch.
    ///
    /// # Errors
    /// Why an owner cannot be asked.
    pub fn owners(&mut self, extent: Extent) -> Result<Vec<String>, Unasked> {
        let mut names = Vec::new();
        for (within, part) in self.within(extent) {
            names.extend(part.content.owners(within)?);
        }
        Ok(names)
    }
}
