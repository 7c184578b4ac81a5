//! A daemon that runs for a test.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::held::signal;
use super::idlewise;

/// A daemon and what it said; killed if the test fails.
pub struct Daemon {
    pub child: Child,
    said: std::path::PathBuf,
    pub socket: std::path::PathBuf,
}

impl Daemon {
    pub fn start(config: &Path, states: &Path, said: &Path) -> Self {
        let arguments = ["daemon", "--look-every", "200ms", "--config", config.to_str().unwrap(), "--state-dir"];
        let socket = states.with_extension("sock");
        let rest = [states.to_str().unwrap(), "--socket", socket.to_str().unwrap()];
        let mut command = idlewise(&[&arguments[..], &rest].concat());
        let child = command.stdout(Stdio::null()).stderr(File::create(said).unwrap()).spawn().unwrap();
        Self { child, said: said.into(), socket }
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    /// Waits for as long as a scrub learns and a small disk takes.
    pub fn until(&mut self, what: &str, mut done: impl FnMut(&str) -> bool) {
        let began = Instant::now();
        while !done(&self.said()) {
            assert!(self.child.try_wait().unwrap().is_none(), "it has ended: {}", self.said());
            if began.elapsed() > Duration::from_secs(240) {
                panic!("not {what}: {}\n{}", self.said(), asked(&self.socket, "GET /v1/status").1);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub fn end(mut self) -> (Option<i32>, String) {
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

/// What is answered to a request, head and body.
pub fn asked(socket: &Path, request: &str) -> (String, String) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(format!("{request} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.into(), body.into())
}
