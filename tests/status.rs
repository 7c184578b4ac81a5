//! What `status` says of scrubs elsewhere, and of disks whose names change hands.

mod common;

use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use common::bench::{Loop, MIB, PACE, Running};
use common::{idlewise, json, run, stderr, stdout};
use rustix::process::Signal;
use serde_json::Value;

/// A device file that leads to another disk now says nothing of the one before.
#[test]
fn root_a_name_means_the_disk_that_it_leads_to() {
    let folder = tempfile::tempdir().unwrap();
    let disk = |name: &str| Loop::of_size(&folder.path().join(name), 4 * MIB, &[]);
    let Some((first, second)) = disk("first").zip(disk("second")) else { return };
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let (name, state) = (path("sdx"), path("state"));
    let status = |more: &[&str]| run(&[&["status", "--state-dir", &state], more].concat());
    let scrub = |disk: &Loop| {
        let _ = std::fs::remove_file(&name);
        symlink(disk.path(), &name).unwrap();
        let output = run(&[&["scrub", &name, "--quiet", "--state-dir", &state], &PACE[..]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    };
    let identity = |status: &Value| status["identity"].as_str().unwrap().to_string();
    let of_name = || json(&["status", "--state-dir", &state, "--json", &name]);
    scrub(&first);
    let before = identity(&of_name()[0]);
    assert!(stdout(&status(&[])).contains(&name));
    // By whatever path.
    assert_eq!(identity(&json(&["status", "--state-dir", &state, "--json", first.path()])[0]), before);
    // What another user puts into a folder makes an identity no path.
    let trap = folder.path().join("trap");
    std::fs::create_dir_all(trap.join(&before).parent().unwrap()).unwrap();
    symlink(second.path(), trap.join(&before)).unwrap();
    let mut inside = idlewise(&["status", "--state-dir", &state, "--json", &before]);
    let inside: Value = serde_json::from_slice(&inside.current_dir(&trap).output().unwrap().stdout).unwrap();
    assert_eq!(identity(&inside[0]), before);
    std::fs::remove_file(&name).unwrap();
    symlink(second.path(), &name).unwrap();
    let output = status(&[&name]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), String::new()));
    assert!(stderr(&output).contains("has not been scrubbed"), "{}", stderr(&output));
    let all = stdout(&status(&[]));
    assert!(all.contains(&before) && !all.contains(&name), "{all}");
    scrub(&second);
    let now = of_name();
    assert_eq!(now.as_array().map(Vec::len), Some(1), "{now}");
    assert_ne!(identity(&now[0]), before);
    // Both were called so: each is called by what is its own.
    let all = stdout(&status(&[]));
    assert!(all.contains(&before) && all.contains(&identity(&now[0])) && !all.contains(&name), "{all}");
    // The name says which is forgotten as well.
    assert!(stdout(&status(&["--forget", &name])).contains(&identity(&now[0])));
    assert_eq!(identity(&json(&["status", "--state-dir", &state, "--json"])[0]), before);
}

/// What was read of a disk says nothing of the one that has taken its place, nor of what it has grown by.
#[test]
fn root_another_disk_of_the_name_is_not_called_verified() {
    let folder = tempfile::tempdir().unwrap();
    let (file, state) = (folder.path().join("disk"), folder.path().join("state").to_str().unwrap().to_string());
    let Some(disk) = Loop::of_size(&file, 4 * MIB, &[]) else { return };
    let scrub = |disk: &Loop| {
        let output = run(&[&["scrub", disk.path(), "--quiet", "--state-dir", &state], &PACE[..]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    };
    let status = || {
        let output = run(&["status", "--state-dir", &state, "--json", "--older-than", "28d"]);
        let all: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), all[0].clone())
    };
    let is = |code, state: &str, why: &str| {
        let (found, one) = status();
        assert_eq!((found, one["state"].as_str()), (Some(code), Some(state)), "{one}");
        assert!(one["outdated"].as_str().unwrap_or_default().contains(why), "{one}");
        assert_eq!(one["completed_unix_s"].is_null(), code == 5, "{one}");
    };
    scrub(&disk);
    is(0, "complete", "");
    drop(disk);
    // One that is gone keeps what is known of it.
    is(0, "complete", "");
    std::fs::remove_file(&file).unwrap();
    let Some(disk) = Loop::of_size(&file, 4 * MIB, &[]) else { return };
    is(5, "outdated", "another disk was called so then");
    scrub(&disk);
    is(0, "complete", "");
    std::fs::File::options().write(true).open(&file).unwrap().set_len(8 * MIB).unwrap();
    assert!(Command::new("losetup").args(["-c", disk.path()]).status().unwrap().success());
    is(5, "outdated", "grown from 4.00 MiB to 8.00 MiB");
    // After a restart nobody knows.
    scrub(&disk);
    let mut files = std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().path());
    let checkpoint = files.find(|path| path.extension().is_some_and(|end| end == "json")).unwrap();
    let mut pass: Value = serde_json::from_slice(&std::fs::read(&checkpoint).unwrap()).unwrap();
    pass["marks"]["boot_id"] = "another".into();
    std::fs::write(&checkpoint, pass.to_string()).unwrap();
    is(0, "doubtful", "restarted since");
}

/// A scrub in a container, or under another clock, is known to run as long as it runs.
#[test]
fn root_scrubs_in_other_name_spaces_are_told_alive_from_killed() {
    for space in [&["--pid", "--mount-proc"][..], &["--time", "--boottime", "3600"]] {
        if !Command::new("unshare").args(space).args(["--fork", "true"]).status().is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: this needs root and `unshare {}`", space.join(" "));
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let Some(disk) = Loop::of_size(&folder.path().join("disk"), 64 * MIB, &[]) else { return };
        let state = folder.path().join("state").to_str().unwrap().to_string();
        let mut scrub = Command::new("unshare");
        scrub.args(space).args([
            "--fork",
            "--kill-child",
            env!("CARGO_BIN_EXE_idlewise"),
            "scrub",
            disk.path(),
            "--quiet",
        ]);
        scrub.args(["--state-dir", &state, "--max-rate", "1MB/s"]).args(PACE);
        let mut scrub = Running::new(scrub);
        let said = || {
            let output = run(&["status", "--state-dir", &state, "--json"]);
            let all: Option<Value> = serde_json::from_slice(&output.stdout).ok();
            all.and_then(|all| Some(all[0]["state"].as_str()?.to_string()))
        };
        let until = |wanted: &str| {
            let began = Instant::now();
            while said().as_deref() != Some(wanted) && began.elapsed() < Duration::from_secs(30) {
                std::thread::sleep(Duration::from_millis(20));
            }
            assert_eq!(said().as_deref(), Some(wanted), "{space:?}");
        };
        until("running");
        std::thread::sleep(Duration::from_secs(1));
        assert!(!scrub.is_over() && said().as_deref() == Some("running"), "{space:?}");
        scrub.signal(Signal::KILL);
        until("killed");
    }
}

/// Who looks at a scrub that does not get on sees why.
#[test]
fn root_a_scrub_that_a_signal_stopped_is_shown_as_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = Loop::of_size(&folder.path().join("disk"), 64 * MIB, &[]) else { return };
    let state = folder.path().join("state").to_str().unwrap().to_string();
    let mut scrub = idlewise(&["scrub", disk.path(), "--quiet", "--state-dir", &state, "--max-rate", "1MB/s"]);
    scrub.args(PACE);
    let scrub = Running::new(scrub);
    let until = |is: &dyn Fn(&Value) -> bool, wanted: &str| {
        let began = Instant::now();
        loop {
            let output = run(&["status", "--state-dir", &state, "--json"]);
            let all: Option<Value> = serde_json::from_slice(&output.stdout).ok();
            if all.as_ref().is_some_and(|all| all[0]["state"] == "running" && is(&all[0]["doing"])) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{wanted}: {all:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until(&|doing| doing.is_string(), "running");
    scrub.signal(Signal::STOP);
    until(&|doing| doing == "stopped", "stopped");
    let shown = run(&["status", "--state-dir", &state]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("stopped by a signal"));
    scrub.signal(Signal::CONT);
    until(&|doing| doing != "stopped", "going on");
}
