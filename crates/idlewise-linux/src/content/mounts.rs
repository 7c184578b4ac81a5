//! Where file systems are mounted.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use crate::files::told_by_kernel;

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    pub folder: PathBuf,
    /// Its kind, such as `btrfs`.
    pub kind: String,
    /// The device number of its files.
    pub number: (u32, u32),
}

/// All that this process sees of a kind.
pub fn of(kinds: &[&str]) -> Vec<Mount> {
    let table = told_by_kernel("/proc/self/mountinfo").unwrap_or_default();
    table.lines().filter_map(parse).filter(|mount| kinds.contains(&&*mount.kind)).collect()
}

/// A line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
fn parse(line: &str) -> Option<Mount> {
    let (front, back) = line.split_once(" - ")?;
    let fields: Vec<_> = front.split(' ').collect();
    let (major, minor) = fields.get(2)?.split_once(':')?;
    let folder = PathBuf::from(OsString::from_vec(unescaped(fields.get(4)?)));
    let kind = back.split(' ').next()?.to_string();
    Some(Mount { folder, kind, number: (major.parse().ok()?, minor.parse().ok()?) })
}

/// The kernel writes blanks and the like as a backslash and three octal digits.
fn unescaped(field: &str) -> Vec<u8> {
    let (mut rest, mut bytes) = (field.as_bytes(), Vec::new());
    while let Some((&first, behind)) = rest.split_first() {
        let octal = behind.get(..3).filter(|_| first == b'\\');
        let octal = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &behind[3..] } else { behind };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line = r"36 35 0:41 /@ /mnt/a\040b\134 rw,relatime shared:1 master:2 - btrfs /dev/sda1 rw,space_cache=v2";
        let expected = Mount { folder: r"/mnt/a b\".into(), kind: "btrfs".into(), number: (0, 41) };
        assert_eq!(parse(line), Some(expected));
        assert_eq!([parse(""), parse("1 2 3 - x"), parse("1 2 a:b / / rw - x")], [None, None, None]);
        assert_eq!(unescaped(r"a\9\04"), br"a\9\04");
    }
}
