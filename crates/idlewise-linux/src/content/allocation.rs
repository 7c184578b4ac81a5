//! ext4 and XFS: they keep no checksums of data, but tell what of their device is used, and by what (the kernel's
//! include/uapi/linux/fsmap.h).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use super::mounts::{self, Mount};
use super::{Content, Gate, Judged, Part, Unasked, media};
use crate::apart::{Argument, Calls};
use idlewise::Bytes;
use idlewise::order::Extent;

const XFS: &str = "xfs";
const KINDS: [&str; 3] = ["ext4", "ext3", XFS];
/// Records that one question brings at most.
const RECORDS: usize = 1 << 10;

/// The kernel's `struct fsmap`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Record {
    device: u32,
    flags: u32,
    physical: u64,
    owner: u64,
    offset: u64,
    length: u64,
    reserved: [u64; 3],
}

/// The kernel's `struct fsmap_head`, with room for records.
#[repr(C)]
struct Head {
    flags: u32,
    flags_back: u32,
    count: u32,
    entries: u32,
    reserved: [u64; 6],
    keys: [Record; 2],
}

const _: () = assert!(size_of::<Record>() == 64 && size_of::<Head>() == 192);

const NONE: Record = Record { device: 0, flags: 0, physical: 0, owner: 0, offset: 0, length: 0, reserved: [0; 3] };

/// What uses a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum User {
    Free,
    /// Nobody says.
    Unknown,
    Metadata,
    /// A file with this number.
    File(u64),
}

impl Record {
    fn user(&self) -> User {
        /// The owner is a word, not the number of a file.
        const SPECIAL: u32 = 0x10;
        match self.owner {
            file if self.flags & SPECIAL == 0 => User::File(file),
            1 => User::Free,
            2 => User::Unknown,
            _ => User::Metadata,
        }
    }
}

/// A mounted file system that tells what is used.
struct Allocation {
    begin: u64,
    length: u64,
    number: u64,
    mount: Mount,
    gate: Gate,
    calls: Calls,
}

/// Opens that of a part of a device; nothing where no such file system is mounted from it.
///
/// # Errors
/// Why it cannot be asked.
pub fn open(part: &Part) -> Result<Option<Box<dyn Content>>, String> {
    let Some(number) = part.number else { return Ok(None) };
    let mounts = mounts::of(&KINDS).into_iter().filter(|mount| mount.number == number);
    let number = rustix::fs::makedev(number.0, number.1);
    let mut last = None;
    for mount in mounts {
        let length = part.range.end - part.range.start;
        let (gate, calls) = (part.gate.clone(), part.calls.clone());
        let mut found = Allocation { begin: part.range.start, length, number, mount, gate, calls };
        match found.users(&(0..1)) {
            Ok(_) => return Ok(Some(Box::new(found))),
            Err(why) => last = Some(why.why),
        }
    }
    last.map_or(Ok(None), Err)
}

impl Allocation {
    /// The folder that it is mounted on.
    fn folder(&mut self) -> io::Result<File> {
        let is_right = |file: &File| file.metadata().is_ok_and(|found| found.dev() == self.number);
        self.mount.open(is_right)
    }

    /// What uses each stretch of a range of the part, in order.
    fn users(&mut self, range: &Range<u64>) -> Result<Vec<(Range<u64>, User)>, Unasked> {
        let failed = |error: io::Error| Unasked::from(error.to_string());
        let file = self.folder().map_err(failed)?;
        let mut found = Vec::new();
        let [mut from, to] = keys(self.number, range);
        loop {
            self.gate.pass();
            let records = records(&self.calls, &file, from, to).map_err(failed)?;
            // A log or real-time device of its own is another one.
            let own = records.iter().filter(|record| number_of(record.device) == self.number);
            let parts =
                own.map(|record| (record.physical..record.physical.saturating_add(record.length), record.user()));
            // The kernel also tells what lies beside a short range.
            found.extend(parts.filter(|(part, _)| part.start < range.end && part.end > range.start));
            match records.last().filter(|_| records.len() == RECORDS) {
                // The kernel goes on behind the last one.
                Some(last) => from = *last,
                None => break,
            }
        }
        Ok(found)
    }
}

/// What to tell of: the range of a device. ext4 tells of all that there is unless both keys name the device.
fn keys(number: u64, range: &Range<u64>) -> [Record; 2] {
    let device = encoded(number);
    let last = range.end.saturating_sub(1);
    let to = Record { device, flags: u32::MAX, physical: last, owner: u64::MAX, offset: u64::MAX, ..NONE };
    [Record { device, physical: range.start, ..NONE }, to]
}

/// A device's number in 32 bits, as the kernel writes it.
fn encoded(number: u64) -> u32 {
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    minor & 0xff | major << 8 | (minor & !0xff) << 12
}

/// The number of a device as the kernel writes it in 32 bits.
fn number_of(encoded: u32) -> u64 {
    rustix::fs::makedev(encoded >> 8 & 0xfff, encoded & 0xff | encoded >> 12 & 0xfff00)
}

fn records(calls: &Calls, file: &File, from: Record, to: Record) -> io::Result<Vec<Record>> {
    const GETFSMAP: libc::c_ulong = 0xc0c0_583b;
    const WORDS: usize = size_of::<Head>() / size_of::<u64>();
    let wanted =
        Head { flags: 0, flags_back: 0, count: RECORDS as u32, entries: 0, reserved: [0; 6], keys: [from, to] };
    // SAFETY: it is so many words of integers, without gaps between them, and lives as long as they are used.
    let words = unsafe { std::slice::from_raw_parts((&raw const wanted).cast::<u64>(), WORDS) };
    let room = WORDS + RECORDS * size_of::<Record>() / size_of::<u64>();
    let argument = Argument { words, room, pointer: None };
    let found = |after: &[u64]| {
        let head = after.as_ptr().cast::<Head>();
        // SAFETY: there are so many words, and the numbers of the head may be any.
        let count = unsafe { (*head).entries } as usize;
        // SAFETY: so many records are behind the head at most, of integers that may be any.
        unsafe { std::slice::from_raw_parts(head.add(1).cast::<Record>(), count.min(RECORDS)) }.to_vec()
    };
    // SAFETY: behind the head there is room for as many records as it says.
    unsafe { calls.ioctl(file, GETFSMAP, argument, found) }
}

impl Content for Allocation {
    fn judge(&mut self, _extent: Extent, _read: &[&[u8]]) -> Result<Judged, Unasked> {
        Ok(Judged::default())
    }

    fn judges(&self) -> bool {
        false
    }

    fn unit(&self) -> u64 {
        1
    }

    fn free(&mut self, extent: Extent) -> Result<Vec<Extent>, Unasked> {
        let range = extent.offset.0 - self.begin..(extent.end().0 - self.begin).min(self.length);
        let free = self.users(&range)?.into_iter().filter(|(_, user)| *user == User::Free);
        let within = free.map(|(part, _)| part.start.max(range.start)..part.end.min(range.end));
        let extent =
            |part: Range<u64>| Extent { offset: Bytes(self.begin + part.start), length: Bytes(part.end - part.start) };
        Ok(within.filter(|part| part.start < part.end).map(extent).collect())
    }

    fn owners(&mut self, extent: Extent) -> Result<Vec<String>, Unasked> {
        let range = extent.offset.0 - self.begin..(extent.end().0 - self.begin).min(self.length);
        let users = self.users(&range)?;
        // As a shell takes it, whatever the folder is called.
        let folder = self.mount.folder.display().to_string();
        let (kind, folder) = (&self.mount.kind, shell_word(&folder));
        let name = |(_, user): (Range<u64>, User)| match user {
            User::Free => None,
            User::Metadata => Some(format!("metadata of {kind}")),
            User::Unknown => Some(format!("data of {kind}{UNKNOWN}")),
            User::File(number) => Some(format!("file {number} of {kind} (find {folder} -xdev -inum {number})")),
        };
        let mut names: Vec<_> = users.into_iter().filter_map(name).collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn report(&mut self, extent: Extent) {
        if self.mount.kind != XFS {
            return;
        }
        let range = extent.offset.0 - self.begin..(extent.end().0 - self.begin).min(self.length);
        // Kernels before Linux 7.0 cannot be told.
        if let Ok(file) = self.folder() {
            self.gate.pass();
            let _ = media::report(&self.calls, &file, &range);
        }
    }
}

/// Behind what nobody knows more of.
const UNKNOWN: &str = ", or its metadata";

/// Whether a name of an owner says that it does not know which file it is.
pub fn is_unknown(name: &str) -> bool {
    name.ends_with(UNKNOWN)
}

/// A path or a name as one word of a shell, which no program takes for an option.
pub fn shell_word(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+:,@%".contains(letter);
    let text = if text.starts_with('-') { format!("./{text}") } else { text.into() };
    let is_word = !text.is_empty() && text.chars().all(is_plain);
    if is_word { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_names_the_device_and_the_range() {
        for (major, minor) in [(8, 1), (259, 300), (4095, (1 << 20) - 1)] {
            let number = rustix::fs::makedev(major, minor);
            assert_eq!(number_of(encoded(number)), number);
            let [from, to] = keys(number, &(4096..8192));
            assert_eq!((from.device, to.device), (encoded(number), encoded(number)));
            assert_eq!((from.physical, to.physical), (4096, 8191));
        }
    }

    #[test]
    fn a_folder_is_one_word_whatever_it_is_called() {
        let words = ["/srv/data", "/media/a b", "/media/it's; rm -r x", "--log=x", ""].map(shell_word);
        assert_eq!(words, ["/srv/data", "'/media/a b'", r"'/media/it'\''s; rm -r x'", "'./--log=x'", "''"]);
    }

    #[test]
    fn numbers_are_those_of_the_kernel() {
        assert_eq!(number_of(0x0000_0801), rustix::fs::makedev(8, 1));
        assert_eq!(number_of(0x0011_0334), rustix::fs::makedev(0x103, 0x134));
        let user = |flags, owner| Record { flags, owner, ..NONE }.user();
        assert_eq!(
            [user(0x10, 1), user(0x10, 2), user(0x10, 3), user(0x10, (0x66 << 32) | 1), user(0, 131)],
            [User::Free, User::Unknown, User::Metadata, User::Metadata, User::File(131),]
        );
    }
}
