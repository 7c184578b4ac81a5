//! What the end-to-end tests share: running the command, and saying what is skipped.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod bench;
pub mod held;
pub mod service;
pub mod zfs_label;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The command under test.
pub fn idlewise(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_idlewise"));
    command.args(arguments);
    command
}

/// Where the project is.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the command to its end.
pub fn run(arguments: &[&str]) -> Output {
    idlewise(arguments).output().expect("the command starts")
}

/// Runs a command that says little and must end by itself within this time.
#[track_caller]
pub fn ends_within(limit: Duration, command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
    let until = Instant::now() + limit;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("{command:?} is not over after {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().unwrap()
}

/// Runs the command, which must succeed, and reads its JSON.
pub fn json(arguments: &[&str]) -> serde_json::Value {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

/// What it said on standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What it said on standard output.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Fails unless two numbers are as good as equal.
#[track_caller]
pub fn close(value: &serde_json::Value, expected: f64) {
    let value = value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    assert!((value - expected).abs() <= 1e-9 * expected.abs().max(1e-9), "{value} for {expected}");
}

/// A real trace, or `None`, said aloud, where the traces are not at hand.
pub fn real_trace(name: &str) -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("IDLEWISE_TRACES") else {
        eprintln!("SKIPPED on {name}: IDLEWISE_TRACES does not name a folder of traces");
        return None;
    };
    let path = Path::new(&folder).join(name);
    assert!(path.exists(), "{} is not there", path.display());
    Some(path)
}
