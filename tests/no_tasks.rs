//! Commands of root's in a group of processes that another user has filled, so that no process or thread can be made any more.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use common::bench::{Loop, MIB, Mounted, PACE, Running, system};
use common::stderr;

/// A cgroup, whose tasks are counted; one at a time.
struct Group(PathBuf);

impl Group {
    /// `None`, said aloud, where this machine counts none.
    fn new(name: &str) -> Option<Self> {
        for root in ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"].map(Path::new) {
            let _ = fs::write(root.join("cgroup.subtree_control"), "+pids");
            let group = root.join(format!("idlewise-{name}-{}", std::process::id()));
            if fs::create_dir(&group).is_ok() {
                let group = Self(group);
                if group.0.join("pids.max").exists() {
                    return Some(group);
                }
            }
        }
        eprintln!("SKIPPED: no cgroup here counts tasks");
        None
    }

    fn holds(&self, most: &str) {
        fs::write(self.0.join("pids.max"), most).unwrap();
    }

    /// The command in it.
    fn idlewise(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]).arg(self.0.join("cgroup.procs"));
        command.arg(env!("CARGO_BIN_EXE_idlewise")).args(arguments).stdin(Stdio::null());
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What ran in it may still be ending.
        (0..50).any(|_| {
            fs::remove_dir(&self.0).is_ok() || {
                sleep(Duration::from_millis(100));
                false
            }
        });
    }
}

/// However few tasks there may be, a scrub runs or says in a line why not.
#[test]
fn root_a_scrub_that_can_make_few_tasks_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), MIB, &[]) else { return };
    let Some(group) = Group::new("few") else { return };
    let state = folder.path().join("state").display().to_string();
    let goal = ["--mean-slowdown", "1ms", "--max-slowdown", "50ms", "--observe", "1ms", "--for", "1s"];
    let scrub = ["scrub", disk.path(), "--state-dir", &state, "--restart", "--quiet"];
    let mut codes = Vec::new();
    for most in (1..14).map(|most: u32| most.to_string()).chain(["max".into()]) {
        for pace in [&PACE[..], &goal] {
            group.holds(&most);
            let output = group.idlewise(&[&scrub[..], pace].concat()).output().unwrap();
            let said = stderr(&output);
            assert!(!said.contains("panicked") && output.status.code().is_some_and(|code| code < 5), "{most}: {said}");
            codes.push((output.status.code(), said));
        }
    }
    // Without a limit, the first is through; the other waits for its account.
    assert!(codes.iter().rev().nth(1).unwrap().0 == Some(0), "{codes:?}");
    assert!(codes.iter().any(|(code, _)| *code == Some(1)), "{codes:?}");
}

/// A process is made to ask what the file system of the state lies on, with each checkpoint.
#[test]
fn root_a_scrub_goes_on_when_no_task_can_be_made_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let Some(below) = Loop::of_size(&folder.path().join("below"), 16 * MIB, &[]) else { return };
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), 64 * MIB, &[]) else { return };
    let Some(group) = Group::new("full") else { return };
    system("mkfs.ext4", &["-q", "-F", below.path()]);
    let place = folder.path().join("mounted");
    let mounted = Mounted::new(&[below.path()], &place);
    let state = place.join("state");
    let scrub = ["scrub", disk.path(), "--state-dir", state.to_str().unwrap(), "--max-rate", "5MB/s", "--quiet"];
    group.holds("max");
    let mut scrub = Running::new(group.idlewise(&[&scrub[..], &PACE].concat()));
    sleep(Duration::from_secs(2));
    group.holds("1");
    // Two checkpoints are saved.
    sleep(Duration::from_secs(7));
    assert!(!scrub.is_over(), "{}", stderr(&scrub.end()));
    group.holds("max");
    let output = scrub.end();
    drop(mounted);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
