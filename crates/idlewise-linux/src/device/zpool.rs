//! Whether ZFS itself checks a pool at the moment: the kernel tells only its own tool, `zpool`.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where distributions put it; a search path is not asked, as root may run this.
const TOOLS: [&str; 3] = ["/usr/sbin/zpool", "/sbin/zpool", "/usr/local/sbin/zpool"];
/// A pool that is suspended may keep its tool waiting for ever.
const PATIENCE: Duration = Duration::from_secs(5);
/// What it says of one pool is shorter, but for thousands of disks.
const LONGEST: u64 = 1 << 20;

/// What ZFS does with an imported pool: `scrub` or `resilver`; nothing where that cannot be told.
pub fn at_work(pool: &str) -> Option<&'static str> {
    // Only of pools that are imported here does the kernel have statistics.
    if !Path::new("/proc/spl/kstat/zfs").join(pool).exists() {
        return None;
    }
    let tool = TOOLS.into_iter().find(|tool| Path::new(tool).exists())?;
    scan(&said(Command::new(tool).args(["status", "--", pool]).env("LC_ALL", "C"))?)
}

/// What a command says on standard output, if it ends in time.
fn said(command: &mut Command) -> Option<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let out = child.stdout.take()?;
    let reader = std::thread::Builder::new().spawn(move || {
        let mut text = Vec::new();
        out.take(LONGEST).read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned())
    });
    let reader = match reader {
        Ok(reader) => reader,
        Err(_) => {
            let _ = child.kill().and_then(|()| child.wait());
            return None;
        }
    };
    let until = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= until {
            let _ = child.kill();
            sleep(Duration::from_millis(100));
            // One that even this does not end is left alone.
            let _ = child.try_wait();
            return None;
        }
        sleep(Duration::from_millis(10));
    }
    reader.join().ok()?.ok()
}

/// The line that begins with `scan:`, as `zpool status` prints it (zpool-status(8)).
fn scan(status: &str) -> Option<&'static str> {
    let line = status.lines().find_map(|line| line.trim_start().strip_prefix("scan:"))?;
    ["scrub", "resilver"].into_iter().find(|work| line.trim_start().starts_with(&format!("{work} in progress")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_in_progress_is_waited_for() {
        let status = |scan: &str| format!("  pool: tank\n state: ONLINE\n  scan: {scan}\nconfig:\n");
        let said = [
            ("scrub in progress since Sun Nov 22 02:00:01 2026\n\t1.2T scanned at 500M/s", Some("scrub")),
            ("resilver in progress since Sun Nov 22 02:00:01 2026", Some("resilver")),
            ("scrub repaired 0B in 01:02:03 with 0 errors on Sun Nov 22 04:49:00 2026", None),
            ("scrub paused since Sun Nov 22 02:00:01 2026", None),
            ("none requested", None),
        ];
        said.into_iter().for_each(|(line, work)| assert_eq!(scan(&status(line)), work, "{line}"));
        assert_eq!(scan(""), None);
    }

    #[test]
    fn a_tool_is_asked_and_not_waited_for_in_vain() {
        assert_eq!(said(Command::new("echo").arg("scan: none")).as_deref(), Some("scan: none\n"));
        assert_eq!(said(&mut Command::new("/no/such/tool")), None);
        let began = Instant::now();
        assert_eq!(said(Command::new("sleep").arg("60")), None);
        assert!(began.elapsed() < Duration::from_secs(30));
        assert_eq!(at_work("no-such-pool"), None);
    }
}
