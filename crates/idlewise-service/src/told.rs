//! What the service says: lines for people on standard error, with a level where the journal reads them; and to systemd, how it is.

use std::env;
use std::io::{self, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use idlewise::report::printable::one_line;

/// How much a line matters (syslog(3)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Somebody has to do something.
    Error = 3,
    /// Somebody should look.
    Warning = 4,
    /// Worth knowing.
    Notice = 5,
    /// As usual.
    Info = 6,
}

/// Says it, line by line.
pub fn say(level: Level, text: &str) {
    // Set where standard error is the journal's, which takes the level off (sd-daemon(3)).
    let prefix =
        if env::var_os("JOURNAL_STREAM").is_some() { format!("<{}>", level as u8) } else { "idlewise: ".into() };
    let lines: String = text.lines().map(|line| format!("{prefix}{}\n", one_line(line))).collect();
    let _ = io::stderr().write_all(lines.as_bytes());
}

/// Tells systemd, if it has started this process and wants to know (sd_notify(3)).
pub fn notify(state: &str) {
    let Some(address) = env::var_os("NOTIFY_SOCKET") else { return };
    let address = address.as_encoded_bytes();
    let address = match address.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(std::ffi::OsStr::new(&*String::from_utf8_lossy(address))),
    };
    let _ = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
}

/// How often systemd wants to hear that it is alive; nothing where it does not.
pub fn watchdog() -> Option<Duration> {
    let micros = env::var("WATCHDOG_USEC").ok()?.parse().ok()?;
    let of_this = env::var("WATCHDOG_PID").map_or(true, |pid| pid == std::process::id().to_string());
    of_this.then(|| Duration::from_micros(micros) / 2)
}
