//! Which process is at work, so that anyone can tell whether it still is.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::files::{Folder, Hold, told_by_kernel};

/// A process, as no other is called until the machine has been restarted, nor after it, whatever name spaces it is looked at from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it began, in the kernel's ticks since the machine was started, by its first clock: numbers are used again.
    pub start_ticks: u64,
    /// The name space that the number is of.
    pub pid_namespace: u64,
    /// Since when the machine runs, as the kernel names it.
    pub boot_id: String,
}

impl Process {
    /// This one.
    pub fn this() -> Self {
        let pid = std::process::id();
        Self { pid, start_ticks: start_ticks(pid).unwrap_or(0), pid_namespace: namespace(), boot_id: boot_id() }
    }

    /// The one with this number, if there is one.
    pub fn of(pid: u32) -> Option<Self> {
        Self::and_parent(pid).map(|(process, _)| process)
    }

    /// The one with this number, if there is one, and its parent's number.
    pub fn and_parent(pid: u32) -> Option<(Self, u32)> {
        let Stat { start_ticks, parent, .. } = stat(pid).filter(|stat| !stat.ended)?;
        Some((Self { pid, start_ticks, pid_namespace: namespace(), boot_id: boot_id() }, parent))
    }

    /// Whether it can be seen from here and still runs.
    pub fn is_here(&self) -> bool {
        self.boot_id == boot_id()
            && self.pid_namespace == namespace()
            && start_ticks(self.pid).is_some_and(|ticks| self.began_at(ticks))
    }

    /// Whether it has ended, and its parent has not heard of that.
    pub fn is_unheard(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.ended && self.began_at(stat.start_ticks))
    }

    /// By another clock than it was told, one may be a part of a tick off.
    fn began_at(&self, ticks: u64) -> bool {
        ticks.abs_diff(self.start_ticks) <= 1
    }

    /// Sends it a signal, and to nobody who has its number by now; whether it was there.
    pub fn signal(&self, signal: Signal) -> bool {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else { return false };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(holder) => self.is_here() && pidfd_send_signal(holder, signal).is_ok(),
            // Before Linux 5.3 there is only the number.
            Err(Errno::NOSYS) => self.is_here() && kill_process(pid, signal).is_ok(),
            Err(_) => false,
        }
    }

    /// Whether it still runs; nothing of a process that cannot be seen from here.
    pub fn is_alive(&self) -> Option<bool> {
        if self.boot_id != boot_id() {
            return Some(false);
        }
        // The first process is there for whoever may see others'.
        let hidden = self.pid_namespace != namespace() || !fs::exists("/proc/1").unwrap_or(false);
        (!hidden).then(|| self.is_here())
    }

    /// Whether a signal has stopped it, until another lets it go on.
    pub fn is_stopped(&self) -> bool {
        self.is_here() && fields(self.pid).is_some_and(|fields| fields.starts_with(['T', 't']))
    }

    /// Whether it still runs: of a process that cannot be seen from here, by the lock that it holds in a folder; without the right to ask
    /// for that, if what it said is not older than it may be while a disk hangs.
    pub fn is_alive_by(&self, folder: &Folder, lock: &OsStr, said: Option<SystemTime>) -> bool {
        const SILENT: Duration = Duration::from_secs(3_600);
        let lately = || said.and_then(|said| said.elapsed().ok()).is_some_and(|ago| ago < SILENT);
        self.is_alive().unwrap_or_else(|| Hold::is_taken(folder, lock).unwrap_or_else(lately))
    }
}

/// Since when the machine runs.
pub fn boot_id() -> String {
    static BOOT: LazyLock<String> = LazyLock::new(|| {
        fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or(String::new(), |text| text.trim().to_string())
    });
    BOOT.clone()
}

fn namespace() -> u64 {
    static SPACE: LazyLock<u64> = LazyLock::new(|| fs::metadata("/proc/self/ns/pid").map_or(0, |space| space.ino()));
    *SPACE
}

/// The fields of /proc/PID/stat (proc(5)) from the state on, behind the name, which may hold anything.
fn fields(pid: u32) -> Option<String> {
    let stat = told_by_kernel(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.trim_start().to_string())
}

/// `None` of a process that ended and that nobody has asked about, as in a container without an init.
fn start_ticks(pid: u32) -> Option<u64> {
    stat(pid).filter(|stat| !stat.ended).map(|stat| stat.start_ticks)
}

/// Fields of /proc/PID/stat: 3, 4 and 22.
struct Stat {
    ended: bool,
    parent: u32,
    start_ticks: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    const BETWEEN: usize = 22 - 4 - 1;
    let fields = fields(pid)?;
    let mut fields = fields.split_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    let parent = fields.next()?.parse().ok()?;
    let ticks: i64 = fields.nth(BETWEEN)?.parse().ok()?;
    Some(Stat { ended, parent, start_ticks: u64::try_from(ticks - clock_ahead()).ok()? })
}

/// How many ticks more than the machine's first clock the one that this process is shown has run (time_namespaces(7)).
fn clock_ahead() -> i64 {
    static AHEAD: LazyLock<i64> = LazyLock::new(|| {
        let offsets = fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        ticks_ahead(&offsets, rustix::param::clock_ticks_per_second() as i64)
    });
    *AHEAD
}

fn ticks_ahead(offsets: &str, per_second: i64) -> i64 {
    let line = offsets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let numbers = line.filter(|words| words.first() == Some(&"boottime")).find_map(|words| {
        let number = |at: usize| words.get(at)?.parse::<i64>().ok();
        number(1).zip(number(2))
    });
    let (seconds, nanoseconds) = numbers.unwrap_or_default();
    seconds.saturating_mul(per_second).saturating_add(nanoseconds / (1_000_000_000 / per_second.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::Folder;

    #[test]
    fn a_process_is_alive_until_it_ends_and_its_number_alone_says_nothing() {
        let this = Process::this();
        assert!(this.is_alive() == Some(true) && this.start_ticks > 0 && !this.boot_id.is_empty());
        let another = Process { start_ticks: this.start_ticks + 2, ..this.clone() };
        assert!(another.is_alive() == Some(false) && !another.signal(Signal::KILL), "it would be this one");
        assert!(Process { boot_id: "before".into(), ..this.clone() }.is_alive() == Some(false));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (other, parent) = Process::and_parent(child.id()).unwrap();
        assert!(other.is_alive() == Some(true) && !other.is_stopped() && parent == this.pid);
        assert!(other.signal(Signal::STOP));
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !other.is_stopped() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(other.is_alive() == Some(true) && other.is_stopped());
        child.kill().unwrap();
        // Until it is waited for it is a zombie.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while other.is_alive() == Some(true) && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(other.is_alive() == Some(false) && other.is_unheard());
        child.wait().unwrap();
        assert!(other.is_alive() == Some(false) && !other.is_unheard() && !other.signal(Signal::CONT));
    }

    /// The kernel cuts names in the middle of a letter.
    #[test]
    fn a_process_may_be_called_anything() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(OsStr::from_bytes(b"sleep) \xff 1 (\n"));
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let found = Process::of(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.is_some_and(|found| found.pid == child.id() && found.start_ticks > 0));
    }

    /// What other name spaces hide is told by its lock, or else by how long it has been silent.
    #[test]
    fn a_process_elsewhere_is_known_by_its_lock_or_by_what_it_says() {
        let folder = tempfile::tempdir().unwrap();
        let lock = OsStr::new("x.lock");
        let elsewhere = Process { pid_namespace: 1, ..Process::this() };
        assert_eq!(elsewhere.is_alive(), None);
        let folder = Folder::own(folder.path()).unwrap();
        let alive = |said| elsewhere.is_alive_by(&folder, lock, said);
        let now = SystemTime::now();
        assert!(!alive(Some(now)));
        let hold = Hold::take(&folder, lock).unwrap().unwrap();
        assert!(alive(None));
        drop(hold);
        assert!(!alive(Some(now)));
        // A lock that cannot be looked at.
        let unknown = |said| elsewhere.is_alive_by(&folder, OsStr::new("/dev/null/x"), said);
        assert!(unknown(Some(now)) && !unknown(Some(now - Duration::from_secs(7_200))) && !unknown(None));
        let before = Process { boot_id: "before".into(), ..elsewhere };
        assert!(!before.is_alive_by(&folder, lock, Some(now)));
    }

    #[test]
    fn the_clock_of_a_name_space_is_taken_off() {
        let offsets = "monotonic           0         0\nboottime         3600 500000000\n";
        assert_eq!(ticks_ahead(offsets, 100), 360_050);
        assert_eq!([ticks_ahead("", 100), ticks_ahead("boottime x", 100)], [0, 0]);
    }
}
