//! A daemon whose page and metrics are asked for.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::idlewise;

/// Ends with the test.
pub struct Ends(pub Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Status and body of what is asked on the network.
pub fn asked(port: u16, request: &str, host: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(format!("{request} HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.into()))
}

/// A socket with a port of its own.
pub fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < Duration::from_secs(240), "not {what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A daemon, with a port of its own.
pub struct Served {
    pub port: u16,
    daemon: Ends,
}

impl Served {
    /// With `idlewise.toml` of a folder, where everything else of it is as well: `states`, the socket `control`, and what it `said`.
    pub fn begin(folder: &Path) -> Self {
        let at = |name: &str| folder.join(name).to_str().unwrap().to_string();
        // As systemd hands a socket over.
        let (web, port) = listener();
        let daemon = idlewise(&[
            "daemon",
            "--look-every",
            "200ms",
            "--config",
            &at("idlewise.toml"),
            "--state-dir",
            &at("states"),
            "--socket",
            &at("control"),
        ]);
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=web; exec "$@" 3<&0 0</dev/null"#, "sh"]);
        shell.arg(daemon.get_program()).args(daemon.get_args()).stdin(Stdio::from(OwnedFd::from(web)));
        let said = File::create(at("said")).unwrap();
        Self { port, daemon: Ends(shell.stdout(Stdio::null()).stderr(said).spawn().unwrap()) }
    }

    /// What it holds.
    pub fn memory_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.daemon.0.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// How many files it has open.
    pub fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.daemon.0.id())).unwrap().count()
    }
}
