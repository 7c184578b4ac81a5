//! What `zpool status` says of a pool and its scrub (zpool-status(8)).

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::device::zpool;

/// It answers within tenths of a second, also while a scrub is at work.
const PATIENCE: Duration = Duration::from_secs(30);

/// What ZFS does with the data of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scan {
    /// Nothing, and there was nothing yet.
    #[default]
    None,
    /// A scrub is at work.
    Running,
    /// One is paused.
    Paused,
    /// The last one has come to its end.
    Finished,
    /// The last one was ended before.
    Canceled,
    /// Data are copied to a disk, or were.
    Resilver,
}

/// How a pool stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// `ONLINE`, `DEGRADED` and so on.
    pub state: String,
    pub scan: Scan,
    /// Whether data are being copied to a disk.
    pub resilvers: bool,
    /// So many bytes of the scrub were asked for, of how many; both rounded to three digits by ZFS. Zero where it says none.
    pub issued: u64,
    pub all: u64,
    /// Reads that failed and blocks that did not match their checksums, on all disks since these were last cleared.
    pub wrong: u64,
    /// Its disks.
    pub disks: Vec<PathBuf>,
}

impl Status {
    /// Asks for it.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn of(pool: &str) -> io::Result<Self> {
        // Numbers that are exact, and whole paths without links.
        Ok(Self::parse(&zpool::ask(&["status", "-p", "-P", "-L", "--", pool], PATIENCE)?))
    }

    fn parse(text: &str) -> Self {
        let mut found = Self::default();
        let mut is_config = false;
        for line in text.lines() {
            let (key, value) = line.split_once(':').map_or(("", ""), |(key, value)| (key.trim(), value.trim()));
            match key {
                "state" => found.state = value.into(),
                "scan" => {
                    (found.scan, found.resilvers) = (Scan::parse(value), value.starts_with("resilver in progress"));
                }
                "config" => is_config = true,
                "errors" => is_config = false,
                _ if is_config => found.disk(line),
                _ => found.progress(line),
            }
        }
        found
    }

    /// A row such as `/dev/sda1  ONLINE  0  0  42  (repairing)`.
    fn disk(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [path, _, read, _, checksum, ..] = words[..]
            && path.starts_with('/')
        {
            let number = |word: &str| word.parse::<u64>().unwrap_or(0);
            self.wrong = self.wrong.saturating_add(number(read)).saturating_add(number(checksum));
            self.disks.push(path.into());
        }
    }

    /// A line such as `1.08G scanned at 183M/s, 477M issued at 79.5M/s, 1.08G total`, or since ZFS 2.2
    /// `300M / 300M scanned, 64.2M / 300M issued`.
    fn progress(&mut self, line: &str) {
        for clause in line.split(',') {
            let words: Vec<&str> = clause.split_whitespace().collect();
            match words[..] {
                [issued, "/", all, "issued", ..] => (self.issued, self.all) = (size(issued), size(all)),
                [issued, "issued", ..] => self.issued = size(issued),
                [all, "total"] => self.all = size(all),
                _ => {}
            }
        }
    }
}

impl Scan {
    fn parse(text: &str) -> Self {
        let known = [
            ("scrub in progress", Self::Running),
            ("scrub paused", Self::Paused),
            ("scrub repaired", Self::Finished),
            ("scrub canceled", Self::Canceled),
            ("resilver", Self::Resilver),
        ];
        known.into_iter().find(|(words, _)| text.starts_with(words)).map_or(Self::None, |(_, scan)| scan)
    }
}

/// Such as `79.5M`, in powers of 1024.
fn size(text: &str) -> u64 {
    let number = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let power = text[number.len()..].chars().next().and_then(|unit| "BKMGTPE".find(unit)).unwrap_or(0);
    // What is no number is unknown; what is larger than any disk as well.
    number.parse::<f64>().map_or(0, |number| (number * 1024f64.powi(power as i32)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(scan: &str) -> Status {
        Status::parse(&format!(
            "  pool: tank\n state: ONLINE\nstatus: One or more devices has experienced an unrecoverable error.  An\n\tattempt was made.\n\
             action: Determine if the device needs to be replaced, and clear the errors\n   see: https://openzfs.org/msg/ZFS-8000-9P\n\
             {scan}config:\n\n\tNAME           STATE     READ WRITE CKSUM\n\ttank           ONLINE       0     0     0\n\
             \t  mirror-0     ONLINE       0     0     0\n\t    /dev/sdb1  ONLINE       3     9     0\n\
             \t    /dev/sda1  ONLINE       0     0    42  (repairing)\n\nerrors: No known data errors\n"
        ))
    }

    #[test]
    fn scrubs_are_told_apart() {
        for (line, scan) in [
            ("", Scan::None),
            ("  scan: none requested\n", Scan::None),
            ("  scan: scrub in progress since Thu Nov 26 09:05:30 2026\n", Scan::Running),
            ("  scan: scrub paused since Thu Nov 26 09:05:30 2026\n", Scan::Paused),
            ("  scan: scrub repaired 0B in 00:00:32 with 0 errors on Thu Nov 26 09:04:34 2026\n", Scan::Finished),
            ("  scan: scrub canceled on Thu Nov 26 09:16:21 2026\n", Scan::Canceled),
            ("  scan: resilvered 91.4M in 00:00:08 with 0 errors on Thu Nov 26 09:04:34 2026\n", Scan::Resilver),
        ] {
            let found = status(line);
            assert_eq!((found.scan, found.resilvers, &*found.state), (scan, false, "ONLINE"), "{line}");
            assert_eq!((found.wrong, found.disks.len()), (45, 2), "{line}");
        }
        assert!(status("  scan: resilver in progress since Thu Nov 26 09:18:31 2026\n").resilvers);
    }

    #[test]
    fn how_far_it_is_stands_there_in_two_ways() {
        let of = |lines: &str| {
            let found = status(&format!("  scan: scrub in progress since Thu Nov 26 09:02:47 2026\n{lines}"));
            (found.issued, found.all)
        };
        let old = "\t300M scanned at 37.6M/s, 63.5M issued at 7.87M/s, 1.25G total\n\t0B repaired, 20.96% done, no estimated completion time\n";
        assert_eq!(of(old), ((63.5 * 1_048_576.0) as u64, 5 << 28));
        let new = "\t300M / 300M scanned, 64.5M / 300M issued at 9.84M/s\n\t0B repaired, 21.37% done\n";
        assert_eq!(of(new), ((64.5 * 1_048_576.0) as u64, 300 << 20));
        assert_eq!(of("\t1.08G scanned, 512 issued, 4T total\n"), (512, 4 << 40));
        assert_eq!(of("\tx issued, 9e99E total, issued\n"), (0, u64::MAX));
    }
}
