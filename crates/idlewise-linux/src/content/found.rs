//! Which parts of a device belong to whom: its partitions, or the device as a whole.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use idlewise::Bytes;
use idlewise::order::Extent;

use super::silent::Silent;
use super::{Array, Content, Gate, Judged, Md, OWNERS, Unasked};
use crate::apart::{self, Calls};
use crate::device::{Device, numbers};

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
    /// Once the disk has not answered, it is not asked again: each question would take seconds.
    pub silent: Arc<AtomicBool>,
    /// Asks what is mounted from it.
    pub calls: Calls,
}

impl Part {
    /// A part of a device by its name.
    ///
    /// # Errors
    /// What the system says.
    pub(super) fn of(device: &Device, range: Range<u64>, name: String, gate: &Gate) -> io::Result<Self> {
        let number = numbers(&Path::new("/sys/class/block").join(&name));
        let (disk, gate) = (device.file.try_clone()?, gate.clone());
        Ok(Part { disk, range, name, number, gate, silent: Arc::default(), calls: Calls::default() })
    }

    /// So many bytes at a place of it, both multiples of any block.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::TimedOut`] if the disk does not answer, or did not before.
    pub fn read(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        if at + length as u64 > self.range.end - self.range.start {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if !self.answers() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let read = apart::read_at(&self.disk, self.range.start + at, length);
        if read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            self.silent.store(true, Ordering::Relaxed);
        }
        read
    }

    fn answers(&self) -> bool {
        !self.silent.load(Ordering::Relaxed)
    }
}

/// Bytes that are read to see whether a disk answers: a multiple of any block.
const FIRST: usize = 4096;
const SILENT: &str = "the disk does not answer";

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
    /// All owners were asked, and it is this one's, that keeps no checksums.
    keeps_none: bool,
    /// It is known, and never asked.
    is_silent: bool,
}

/// Finds the owners of a device, or only those of this name.
pub fn find(device: &Device, name: Option<&str>) -> Found {
    let mut found = Found::default();
    let (silent, calls) = <(Arc<AtomicBool>, Calls)>::default();
    for (range, part) in device.parts() {
        let Ok(part) = Part::of(device, range.clone(), part, &found.gate) else { continue };
        let part = Part { silent: silent.clone(), calls: calls.clone(), ..part };
        // Whoever looks for an owner reads, and of a disk that hangs nobody would ever come back.
        let _ = part.read(0, FIRST);
        let passed = found.passed.len();
        for owner in OWNERS.iter().filter(|owner| name.is_none_or(|name| name == owner.name)) {
            let opened = if part.answers() { (owner.open)(&part) } else { Ok(None) };
            if !part.answers() {
                found.passed.push((part.name.clone(), "content", SILENT.into()));
                break;
            }
            match opened {
                Ok(Some(content)) => {
                    found.passed.extend(content.absent().map(|why| (part.name.clone(), owner.name, why.into())));
                    let keeps_none = name.is_none() && found.passed.len() == passed && !content.judges();
                    found.parts.push(Owned { range, owner: owner.name, content, keeps_none, is_silent: false });
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
        let gate = Gate::default();
        let content = Box::new(Md::with(array, block, gate.clone()));
        Self {
            parts: vec![Owned { range, owner: Md::NAME, content, keeps_none: false, is_silent: false }],
            gate,
            ..Self::default()
        }
    }

    /// With an owner of the whole device that cannot be asked; all that is read counts as not compared by it if it is missed.
    #[must_use]
    pub fn and_not_asked(mut self, device: &Device, owner: &'static str, why: String, is_missed: bool) -> Self {
        self.passed.push((device.name(), owner, why.clone()));
        if is_missed {
            let content = Box::new(Silent(why));
            self.parts.push(Owned { range: 0..device.size.0, owner, content, keeps_none: false, is_silent: true });
        }
        self
    }

    /// One owner of so many bytes.
    #[cfg(test)]
    pub fn of_one(content: Box<dyn Content>, length: u64, gate: Gate) -> Self {
        let part = Owned { range: 0..length, owner: "one", content, keeps_none: false, is_silent: false };
        Self { parts: vec![part], gate, ..Self::default() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Whether any can be asked now.
    pub fn can_be_asked(&self) -> bool {
        self.parts.iter().any(|part| !part.is_silent && part.content.absent().is_none())
    }

    /// Whether it is sure that nobody keeps checksums of any of it.
    pub fn nobody_compares(&self) -> bool {
        self.passed.is_empty() && !self.judges()
    }

    /// The names of those that are asked, each once.
    pub fn names(&self) -> Vec<&'static str> {
        self.names_of(|part| !part.is_silent && part.content.absent().is_none())
    }

    /// The same with those that cannot be asked yet, or never.
    pub(crate) fn known_names(&self) -> Vec<&'static str> {
        self.names_of(|_| true)
    }

    fn names_of(&self, which: impl Fn(&&Owned) -> bool) -> Vec<&'static str> {
        let mut names: Vec<_> = self.parts.iter().filter(which).map(|part| part.owner).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether any of them judges what is read.
    pub fn judges(&self) -> bool {
        self.parts.iter().any(|part| part.content.judges())
    }

    /// Where what is read is judged.
    pub(crate) fn judged(&self) -> Vec<Range<u64>> {
        let judging = |part: &&Owned| part.content.judges() && !part.is_silent;
        self.parts.iter().filter(judging).map(|part| part.range.clone()).collect()
    }

    /// Stretches of which it is sure that nobody keeps checksums: what was wrong there, another owner had said.
    pub(crate) fn without_checksums(&self) -> Vec<Extent> {
        let whole =
            |part: &Owned| Extent { offset: Bytes(part.range.start), length: Bytes(part.range.end - part.range.start) };
        self.parts.iter().filter(|part| part.keeps_none).map(whole).collect()
    }

    /// The names of those that judge, and how much of the device is theirs.
    pub fn judging(&self) -> (Vec<&'static str>, Bytes) {
        let asks = |part: &&Owned| part.content.judges() && !part.is_silent && part.content.absent().is_none();
        let judging = || self.parts.iter().filter(asks);
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
    /// Judges what begins in a stretch; `read` is what was read from its first byte on. Where an owner cannot be asked, the others are.
    pub(crate) fn judge(&mut self, extent: Extent, read: &[&[u8]]) -> Judged {
        let judge = |content: &mut dyn Content, within: Extent, read: &[&[u8]]| {
            Some(content.judge(within, read).unwrap_or_else(|why| Judged {
                unasked: Some((within.length.0, why)),
                open: vec![within],
                ..Judged::default()
            }))
        };
        self.judge_by(judge, extent, read).unwrap_or_default()
    }

    /// The same where every owner can say at once that nothing differs.
    pub(crate) fn judge_at_once(&mut self, extent: Extent, read: &[&[u8]]) -> Option<Judged> {
        self.judge_by(|content, within, read| content.judge_at_once(within, read), extent, read)
    }

    fn judge_by(
        &mut self,
        judge: impl Fn(&mut dyn Content, Extent, &[&[u8]]) -> Option<Judged>,
        extent: Extent,
        read: &[&[u8]],
    ) -> Option<Judged> {
        let mut all = Judged::default();
        for (within, part) in self.within(extent) {
            let from = (within.offset.0 - extent.offset.0) as usize;
            let read = read.iter().map(|read| &read[from.min(read.len())..]).collect::<Vec<_>>();
            let judged = judge(&mut *part.content, within, &read)?;
            if part.is_silent {
                // Nothing of it was compared, whatever the others say.
                (all.unasked, all.unmounted) = (None, Vec::new());
            }
            if let Some((bytes, why)) = judged.unasked {
                let is_silent = why.is_silent;
                let (all, first) = all.unasked.get_or_insert((0, why));
                *all += bytes;
                first.is_silent |= is_silent;
            }
            all.unmounted.extend(judged.unmounted);
            all.mounted.extend(part.content.name().filter(|_| part.content.absent().is_none()));
            all.judged += judged.judged;
            all.free += judged.free;
            all.suspects.extend(judged.suspects);
            all.open.extend(judged.open);
        }
        Some(all)
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

    /// Has the owners learn that a stretch cannot be read.
    pub(crate) fn report(&mut self, extent: Extent) {
        self.within(extent).for_each(|(within, part)| part.content.report(within));
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
