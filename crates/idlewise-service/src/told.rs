//! What the service says: lines for people on standard error, with a level where the journal reads them; messages for those who want to be
//! told; and to systemd, how it is.

use std::env;
use std::io::{self, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Stdio};
use std::time::Duration;

use idlewise::report::printable::one_line;

use crate::daemon::Daemon;
use crate::messages::due;
use crate::outbox::{Outbox, outbox};
use crate::overview::Overview;

/// A message that has waited for so long is not being sent: what cannot be sent is put aside much sooner.
const UNSENT: Duration = Duration::from_secs(15 * 60);

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

impl Daemon {
    /// Has messages wait for those who want to be told.
    pub(crate) fn tell_people(&mut self, overview: &Overview) {
        let mut any = false;
        let mut problem = None;
        for disk in overview.disks.iter().filter(|_| self.config.notify.is_wanted()) {
            let Some(known) = self.record.disks.get_mut(&disk.identity) else { continue };
            let mut told = known.told.clone();
            let messages = due(disk, self.config.notify.repeat, overview.unix_s, &mut told);
            if !messages.is_empty() {
                let outbox = Outbox::make(&outbox(self.options.states.path()));
                if let Err(error) = outbox.and_then(|outbox| outbox.post(&messages)) {
                    // Nothing of this disk was told: it is tried again at the next look.
                    problem = Some(format!("nobody can be told: {error}"));
                    continue;
                }
                any = true;
            }
            known.told = told;
        }
        let problem = problem.or_else(|| self.stuck(overview.unix_s));
        if self.untold != problem {
            problem.iter().for_each(|problem| say(Level::Error, problem));
        }
        self.untold = problem;
        if any {
            self.save();
            self.send();
        }
    }

    /// Why it seems that nobody sends what waits.
    fn stuck(&self, now: f64) -> Option<String> {
        let outbox = outbox(self.options.states.path());
        let waits = |found: Outbox| Some(now - found.oldest().ok()?? > UNSENT.as_secs_f64());
        let is_stuck = self.config.notify.is_wanted() && Outbox::open(&outbox).ok()?.and_then(waits) == Some(true);
        is_stuck.then(|| {
            let outbox = outbox.display();
            format!("messages wait in {outbox}, and nobody sends them: `systemctl status idlewise-notify.path idlewise-notify` may say why")
        })
    }

    /// Sends what waits, where no unit of systemd does.
    fn send(&self) {
        if std::env::var_os("NOTIFY_SOCKET").is_some() {
            return;
        }
        let mut command = Command::new(&self.options.program);
        command.arg("notify").arg("--config").arg(&self.options.config);
        command.arg("--spool").arg(outbox(self.options.states.path())).stdin(Stdio::null()).stdout(Stdio::null());
        match command.spawn() {
            // Whoever waits for it waits for mail.
            Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
            Err(error) => say(Level::Error, &format!("nobody can be told: {error}")),
        }
    }
}
