//! What `zpool status` says of a pool and its scrub (zpool-status(8)).

use std::collections::BTreeMap;
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
    /// Reads that failed and blocks that did not match their checksums, since these were last cleared: on all disks or, where those are
    /// more, of all mirrors and groups with parity, or of the pool. What no copy has right may be counted there alone.
    pub wrong: u64,
    /// What the last scrub could not repair, by its last line and by the list of what is lost; both stay when counters are cleared.
    pub lost: u64,
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
        let (mut leaves, mut groups) = (0u64, BTreeMap::<usize, u64>::new());
        for line in text.lines() {
            let (key, value) = line.split_once(':').map_or(("", ""), |(key, value)| (key.trim(), value.trim()));
            match key {
                "state" => found.state = value.into(),
                "scan" => {
                    (found.scan, found.resilvers) = (Scan::parse(value), value.starts_with("resilver in progress"));
                    found.lost = found.lost.max(unrepaired(value));
                }
                "config" => is_config = true,
                "errors" => {
                    is_config = false;
                    found.lost = found.lost.max(data_errors(value));
                }
                _ if is_config => match row(line) {
                    Some((path, counted)) if path.starts_with('/') => {
                        leaves = leaves.saturating_add(counted);
                        found.disks.push(path.into());
                    }
                    Some((name, counted)) => {
                        let sum = groups.entry(line.find(name).unwrap_or(0)).or_default();
                        *sum = sum.saturating_add(counted);
                    }
                    None => {}
                },
                _ => found.progress(line),
            }
        }
        found.wrong = groups.into_values().fold(leaves, u64::max);
        found
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

/// The name in a row such as `/dev/sda1  ONLINE  0  0  42  (repairing)`, and the reads and checksums that it counts.
fn row(line: &str) -> Option<(&str, u64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [name, _, read, _, checksum, ..] = words[..] else { return None };
    let number = |word: &str| word.parse::<u64>().unwrap_or(0);
    Some((name, number(read).saturating_add(number(checksum))))
}

/// Of a scrub that is over, such as `scrub repaired 0B in 00:00:32 with 21 errors on Thu Nov 26 09:04:34 2026`.
fn unrepaired(scan: &str) -> u64 {
    let count = scan.strip_prefix("scrub repaired").and_then(|rest| rest.split_once(" with ")?.1.split_once(" errors"));
    count.and_then(|(count, _)| count.parse().ok()).unwrap_or(0)
}

/// Of the list of what is lost: `No known data errors`, `3 data errors, use '-v' for a list`, or a sentence.
fn data_errors(errors: &str) -> u64 {
    let count = errors.split_whitespace().next().and_then(|word| word.parse().ok());
    count.unwrap_or(u64::from(!errors.starts_with("No known data errors")))
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

    /// Blocks that no copy has right may be counted above the disks alone.
    #[test]
    fn what_is_lost_is_counted_wherever_it_is_told() {
        let of = |scan: &str, rows: &str, errors: &str| {
            let text = format!(
                " state: ONLINE\n  scan: scrub {scan} on Thu Nov 26 09:04:34 2026\nconfig:\n\n\tNAME  STATE  READ WRITE CKSUM\n{rows}\nerrors: {errors}\n"
            );
            let found = Status::parse(&text);
            (found.wrong, found.lost, found.disks.len())
        };
        let raidz = "\ttank          ONLINE  0  0  21\n\t  raidz1-0    ONLINE  0  0  4\n\t    /dev/sda1  ONLINE  0  0  0\n\t    /dev/sdb1  ONLINE  1  0  2\n\
                     \t  raidz1-1    ONLINE  0  0  17\n\t    /dev/sdc1  ONLINE  0  0  0\n";
        assert_eq!(
            of("repaired 0B in 51:50:00 with 21 errors", raidz, "3 data errors, use '-v' for a list"),
            (21, 21, 3)
        );
        // Counted before and cleared since.
        let clear = "\ttank        ONLINE  0  0  0\n\t  /dev/sda1  ONLINE  0  0  0\n";
        assert_eq!(of("repaired 0B in 00:00:01 with 0 errors", clear, "2 data errors, use '-v' for a list"), (0, 2, 1));
        assert_eq!(
            of("repaired 0B in 00:00:01 with 0 errors", clear, "Permanent errors have been detected:"),
            (0, 1, 1)
        );
        assert_eq!(of("repaired 4K in 00:00:01 with 0 errors", clear, "No known data errors"), (0, 0, 1));
        assert_eq!(of("canceled with 5 errors", clear, "No known data errors"), (0, 0, 1));
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
