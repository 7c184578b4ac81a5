//! Which process is at work, so that anyone can tell whether it still is.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde::{Deserialize, Serialize};

/// A process, as no other is called until the machine has been restarted, nor after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it began, in the kernel's ticks since the machine was started: numbers are used again.
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

    /// Whether it still runs; of a process that cannot be seen from here that is assumed.
    pub fn is_alive(&self) -> bool {
        // The first process is there for whoever may see others'.
        let hidden = self.pid_namespace != namespace() || !fs::exists("/proc/1").unwrap_or(false);
        self.boot_id == boot_id() && (hidden || start_ticks(self.pid) == Some(self.start_ticks))
    }
}

/// Since when the machine runs.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or(String::new(), |text| text.trim().to_string())
}

fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |space| space.ino())
}

/// Field 22 of /proc/PID/stat (proc(5)), counted behind the name, which may hold anything; `None` of a process that ended and that nobody
/// has asked about, as in a container without an init.
fn start_ticks(pid: u32) -> Option<u64> {
    const BEHIND_THE_STATE: usize = 22 - 4;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    fields.nth(BEHIND_THE_STATE).filter(|_| !ended)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_ends_and_its_number_alone_says_nothing() {
        let this = Process::this();
        assert!(this.is_alive() && this.start_ticks > 0 && !this.boot_id.is_empty());
        assert!(!Process { start_ticks: this.start_ticks + 1, ..this.clone() }.is_alive());
        assert!(!Process { boot_id: "before".into(), ..this.clone() }.is_alive());
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let other = Process { pid: child.id(), start_ticks: start_ticks(child.id()).unwrap(), ..this };
        assert!(other.is_alive());
        child.kill().unwrap();
        // Until it is waited for it is a zombie.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while other.is_alive() && std::time::Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(!other.is_alive());
        child.wait().unwrap();
        assert!(!other.is_alive());
    }
}
