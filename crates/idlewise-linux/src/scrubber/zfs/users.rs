//! Who uses a pool: reads that its cache cannot answer, and writes that somebody waits for. On its disks they are not told from those of the
//! scrub, but ZFS counts them (/proc/spl/kstat/zfs). The counts are of all pools of the machine, and metadata that is read is not among them,
//! as the scrub reads that in the same way.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use idlewise::Nanos;

use crate::files::told_by_kernel;
use crate::monitor::{Event, EventKind, EventOp, Monitor, MonitorError, Origin, Own, now};

const STATISTICS: &str = "/proc/spl/kstat/zfs";
const NAME: &str = "zfs-counters";
/// To ask more often costs more than it tells.
const SHORTEST: Duration = Duration::from_millis(4);
/// More that came between two looks are as many.
const MOST: u64 = 1000;

/// The monitor. Whoever comes while the scrub is at work waits until it is quiet, as far as is told: that is the longest that ZFS lets it wait.
pub struct Users {
    /// Files, each with the names of what counts in it.
    counted: Vec<(PathBuf, &'static [&'static str])>,
    seen: u64,
    looked: Instant,
    /// Whether the scrub is at work.
    works: Arc<AtomicBool>,
    /// Those that wait for it: when they came.
    waiting: Vec<Nanos>,
}

impl Users {
    /// Of a pool, and of its scrub.
    ///
    /// # Errors
    /// If ZFS counts nothing here.
    pub fn of(pool: &str, works: Arc<AtomicBool>) -> io::Result<Self> {
        let at = |name: &str| Path::new(STATISTICS).join(name);
        let mut counted: Vec<(PathBuf, &[&str])> =
            vec![(at("arcstats"), &["demand_data_misses"]), (at("zil"), &["zil_commit_writer_count"])];
        // Past the cache, since ZFS 2.3.
        let past = at(pool).join("iostats");
        if past.exists() {
            counted.push((past, &["direct_read_count", "direct_write_count"]));
        }
        let mut users = Self { counted, seen: 0, looked: Instant::now(), works, waiting: Vec::new() };
        users.seen = users.count()?;
        Ok(users)
    }

    fn count(&self) -> io::Result<u64> {
        let mut sum = 0u64;
        for (path, names) in &self.counted {
            let text = told_by_kernel(path)
                .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
            sum = sum.wrapping_add(of(&text, names));
        }
        Ok(sum)
    }
}

/// The sum of these counts in such a file: lines of a name, a type and a number.
fn of(text: &str, names: &[&str]) -> u64 {
    let number = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?;
        names.contains(&name).then(|| words.nth(1)?.parse::<u64>().ok()).flatten()
    };
    text.lines().filter_map(number).fold(0, u64::wrapping_add)
}

impl Monitor for Users {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_coarse(&self) -> bool {
        true
    }

    fn poll(&mut self, wait: Duration, events: &mut Vec<Event>) -> Result<(), MonitorError> {
        std::thread::sleep(wait);
        let event = |at, arrival, kind| Event::without_place(kind, at, arrival, EventOp::Read, Origin::Foreground);
        let at = now();
        // They came while it was at work, also those that are seen only now.
        let works = self.works.load(Ordering::Relaxed);
        if self.looked.elapsed() >= SHORTEST || !works && !self.waiting.is_empty() {
            self.looked = Instant::now();
            let count = self.count().map_err(|error| MonitorError { monitor: NAME, problem: error.to_string() })?;
            // Where it is less, ZFS was loaded anew.
            let more = count.checked_sub(std::mem::replace(&mut self.seen, count)).unwrap_or(1).min(MOST);
            for _ in 0..more {
                events.push(event(at, at, EventKind::Arrival));
                self.waiting.push(at);
            }
        }
        if !works {
            events.extend(self.waiting.drain(..).map(|arrival| event(at, arrival, EventKind::Completion)));
        }
        Ok(())
    }

    fn outstanding(&mut self) -> u64 {
        self.waiting.len() as u64
    }

    fn own(&mut self, _own: Own) {}

    fn lost(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_to_a_scrub_at_work_waits_until_it_is_quiet() {
        let folder = tempfile::tempdir().unwrap();
        let (file, works) = (folder.path().join("arcstats"), Arc::new(AtomicBool::new(false)));
        let tell = |misses: u64| {
            let text = format!("9 1 0x01 123 33456 1 2\nname type data\nhits 4 77\ndemand_data_misses 4 {misses}\n");
            std::fs::write(&file, text).unwrap();
        };
        tell(5);
        let counted: Vec<(PathBuf, &[&str])> = vec![(file.clone(), &["demand_data_misses"])];
        let mut users = Users { counted, seen: 5, looked: Instant::now(), works: works.clone(), waiting: Vec::new() };
        let mut look = || {
            let mut events = Vec::new();
            users.poll(2 * SHORTEST, &mut events).unwrap();
            let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
            (kinds, users.outstanding())
        };
        use EventKind::{Arrival, Completion};
        assert_eq!(look(), (vec![], 0));
        tell(7);
        assert_eq!(look(), (vec![Arrival, Arrival, Completion, Completion], 0));
        works.store(true, Ordering::Relaxed);
        tell(8);
        assert_eq!(look(), (vec![Arrival], 1));
        assert_eq!(look(), (vec![], 1));
        works.store(false, Ordering::Relaxed);
        tell(9);
        assert_eq!(look(), (vec![Arrival, Completion, Completion], 0));
        // Loaded anew.
        tell(2);
        assert_eq!(look(), (vec![Arrival, Completion], 0));
        std::fs::remove_file(&file).unwrap();
        assert!(users.poll(2 * SHORTEST, &mut Vec::new()).unwrap_err().to_string().contains("arcstats"));
    }
}
