//! The daemon: disks are verified in time, whatever happens to it.

mod common;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use common::bench::{Bench, MIB};
use common::held::signal;
use common::{idlewise, run, stderr, stdout};
use rustix::process::Signal;
use serde_json::Value;

/// A daemon and what it said; killed if the test fails.
struct Daemon {
    child: Child,
    said: std::path::PathBuf,
}

impl Daemon {
    fn start(config: &Path, states: &Path, said: &Path) -> Self {
        let arguments = ["daemon", "--look-every", "200ms", "--config", config.to_str().unwrap(), "--state-dir"];
        let mut command = idlewise(&[&arguments[..], &[states.to_str().unwrap()]].concat());
        let child = command.stdout(Stdio::null()).stderr(File::create(said).unwrap()).spawn().unwrap();
        Self { child, said: said.into() }
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    /// Waits for as long as a scrub learns and a small disk takes.
    fn until(&mut self, what: &str, mut done: impl FnMut(&str) -> bool) {
        let began = Instant::now();
        while !done(&self.said()) {
            assert!(self.child.try_wait().unwrap().is_none(), "it has ended: {}", self.said());
            assert!(began.elapsed() < Duration::from_secs(240), "not {what}: {}", self.said());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn end(mut self) -> (Option<i32>, String) {
        signal(&self.child, Signal::TERM);
        (self.child.wait().unwrap().code(), self.said())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn root_each_disk_is_verified_once_and_killing_it_loses_nothing() {
    let options = |bad: &[std::ops::Range<u64>]| Bench::new(64 * MIB, bad, true);
    let Some((good, bad)) = options(&[]).zip(options(std::slice::from_ref(&(5000..5002)))) else { return };
    let folder = tempfile::tempdir().unwrap();
    let (config, states) = (folder.path().join("idlewise.toml"), folder.path().join("states"));
    let text = format!(
        "[defaults]\nverify_every = \"1d\"\n[[disk]]\nmatch = \"{}\"\n[[disk]]\nmatch = \"{}\"\nmean_slowdown = \"2ms\"\n\
         [[disk]]\nmatch = \"*\"\nignore = true\n",
        good.path(),
        bad.path()
    );
    fs::write(&config, &text).unwrap();
    let output = run(&["check-config", "--config", config.to_str().unwrap(), "--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let of = |path: &str| all.as_array().unwrap().iter().find(|disk| disk["device"] == path).unwrap();
    assert_eq!(
        (&of(bad.path())["mean_slowdown_s"], &of(good.path())["mean_slowdown_s"]),
        (&0.002.into(), &0.001.into())
    );
    let others = all.as_array().unwrap().iter().filter(|disk| disk["ignored"] == true).count();
    assert_eq!(others + 2, all.as_array().unwrap().len(), "{all}");

    let status = || -> Vec<Value> {
        let output = run(&["status", "--json", "--state-dir", states.to_str().unwrap()]);
        serde_json::from_slice::<Value>(&output.stdout).ok().and_then(|all| all.as_array().cloned()).unwrap_or_default()
    };
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("first"));
    daemon.until("begun", |_| status().iter().filter(|disk| disk["state"] == "running").count() == 2);
    // A file that cannot be used changes nothing.
    fs::write(&config, "[defaults]\nverify_evry = \"1d\"\n").unwrap();
    signal(&daemon.child, Signal::HUP);
    daemon.until("refused", |said| said.contains("unknown field `verify_evry`") && said.contains("going on as before"));
    fs::write(&config, &text).unwrap();
    signal(&daemon.child, Signal::HUP);
    daemon.until("read again", |said| said.contains("the configuration was read again"));
    // Killed, it takes its scrubs with it, and the next one goes on.
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    let began = Instant::now();
    while status().iter().any(|disk| disk["state"] == "running") {
        assert!(began.elapsed() < Duration::from_secs(30), "a scrub goes on without the daemon: {:?}", status());
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("second"));
    daemon.until("complete", |_| {
        let all = status();
        all.len() == 2 && all.iter().all(|disk| disk["state"] == "complete")
    });
    let found: Vec<_> = status().iter().flat_map(|disk| disk["errors"].as_array().unwrap().clone()).collect();
    assert_eq!((found.len(), &found[0]["lba"], &found[0]["blocks"]), (1, &5000.into(), &2.into()));
    // To look after a disk reads nothing from it: that would be foreground to its scrub.
    for disk in status() {
        assert!(disk["run"]["account"]["requests"].as_u64() < Some(20), "{disk}");
    }
    daemon.until("told", |said| {
        let told = format!("{}: 2 blocks cannot be read, or are wrong", bad.path());
        said.contains(&told) && said.matches("verified; the next pass begins in ").count() == 2
    });
    let (code, said) = daemon.end();
    assert_eq!(code, Some(0), "{said}");

    // Nothing is due for most of a day.
    let started = || status().iter().map(|disk| disk["started_unix_s"].clone()).collect::<Vec<_>>();
    let before = started();
    let mut daemon = Daemon::start(&config, &states, &folder.path().join("third"));
    daemon.until("resting", |said| said.matches("verified; the next pass begins in ").count() == 2);
    let (code, said) = daemon.end();
    assert_eq!((code, started()), (Some(0), before), "{said}");
    let kept: Value = serde_json::from_slice(&fs::read(states.join("schedule.state")).unwrap()).unwrap();
    assert_eq!(kept["disks"].as_object().unwrap().len(), 2, "{kept}");
}

#[test]
fn a_configuration_that_is_wrong_is_said_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("idlewise.toml");
    fs::write(&config, "[defaults]\nmean_slowdown = \"1 day late\"\n").unwrap();
    for command in ["check-config", "daemon"] {
        let output =
            run(&[command, "--config", config.to_str().unwrap(), "--state-dir", folder.path().to_str().unwrap()]);
        let said = stderr(&output);
        assert_eq!((output.status.code(), &*stdout(&output)), (Some(1), ""), "{said}");
        assert!(said.contains("line 2") && said.contains("500us, 1ms"), "{said}");
    }
}
