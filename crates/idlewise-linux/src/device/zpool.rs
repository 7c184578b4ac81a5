//! `zpool`, the tool of ZFS: the kernel tells only it what it does with a pool, and takes orders for it.

use std::io::{self, Read};
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
    if !is_imported(pool) {
        return None;
    }
    scan(&ask(&["status", "--", pool], PATIENCE).ok()?)
}

/// Only of pools that are imported here does the kernel have statistics.
pub fn is_imported(pool: &str) -> bool {
    Path::new("/proc/spl/kstat/zfs").join(pool).exists()
}

/// What `zpool` says with these arguments, if it ends in time.
///
/// # Errors
/// What it says instead; that it is not installed, or does not end.
pub fn ask(arguments: &[&str], patience: Duration) -> io::Result<String> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "zpool is not installed, the tool of ZFS");
    let tool = TOOLS.into_iter().find(|tool| Path::new(tool).exists()).ok_or_else(missing)?;
    said(Command::new(tool).args(arguments).env("LC_ALL", "C"), patience)
}

/// What a command says on standard output, if it ends in time and well.
fn said(command: &mut Command, patience: Duration) -> io::Result<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (out, errors) = (child.stdout.take(), child.stderr.take());
    let (Ok(out), Ok(errors)) = (reader(out), reader(errors)) else {
        let _ = child.kill().and_then(|()| child.wait());
        return Err(io::ErrorKind::OutOfMemory.into());
    };
    let until = Instant::now() + patience;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= until {
            let _ = child.kill();
            sleep(Duration::from_millis(100));
            // One that even this does not end is left alone.
            let _ = child.try_wait();
            return Err(io::Error::new(io::ErrorKind::TimedOut, "zpool does not answer"));
        }
        sleep(Duration::from_millis(10));
    };
    let text = |reader: std::thread::JoinHandle<String>| reader.join().unwrap_or_default();
    let (out, errors) = (text(out), text(errors));
    if !status.success() {
        return Err(io::Error::other(errors.lines().next().unwrap_or("zpool failed").to_string()));
    }
    Ok(out)
}

/// Reads what comes, beside whatever else is done.
fn reader(from: Option<impl Read + Send + 'static>) -> io::Result<std::thread::JoinHandle<String>> {
    std::thread::Builder::new().spawn(move || {
        let mut text = Vec::new();
        let read = from.map(|from| from.take(LONGEST).read_to_end(&mut text));
        read.map_or(String::new(), |_| String::from_utf8_lossy(&text).into_owned())
    })
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
        let short = Duration::from_millis(300);
        let asked = |command: &mut Command, patience| said(command, patience).map_err(|error| error.to_string());
        assert_eq!(asked(Command::new("echo").arg("scan: none"), PATIENCE), Ok("scan: none\n".into()));
        let fails = ["-c", "echo 'cannot open: no such pool' >&2; echo usage >&2; exit 1"];
        assert_eq!(asked(Command::new("sh").args(fails), PATIENCE), Err("cannot open: no such pool".into()));
        assert!(asked(&mut Command::new("/no/such/tool"), PATIENCE).is_err());
        assert_eq!(asked(Command::new("sleep").arg("60"), short), Err("zpool does not answer".into()));
        assert_eq!(at_work("no-such-pool"), None);
    }
}
