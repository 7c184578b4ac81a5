//! `idlewise pause`, `resume`, `start` and `acknowledge`: orders to the daemon; and what it answers.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use idlewise::Nanos;
use idlewise::report::printable::one_line;
use idlewise_linux::device::Device;
use idlewise_linux::files::leads_to;
use idlewise_service::{Until, connect, escaped};

use crate::dates::{parse_date, unix_now};
use crate::exit::{Exit, UsageError};
use crate::output::{self, say};

/// Where the daemon listens.
pub const SOCKET: &str = "/run/idlewise/control.sock";
/// It answers after its next look at the disks.
const PATIENCE: Duration = Duration::from_secs(70);
/// What it knows it answers at once.
const AT_ONCE: Duration = Duration::from_secs(2);
/// No answer is longer.
const LONGEST: u64 = 64 << 20;

/// Which daemon.
#[derive(clap::Args)]
pub struct To {
    /// Socket of the daemon
    #[arg(long, value_name = "FILE", default_value = SOCKET)]
    socket: PathBuf,
}

/// Have the daemon verify nothing for a while, of some disks or of all
///
/// A scrub that runs saves where it is, and ends. Passes go on there when the disk is resumed. Deadlines stay as they are.
#[derive(clap::Args)]
pub struct PauseArguments {
    /// Disks, by path, name or identity [default: all]
    #[arg(value_name = "DISK")]
    disks: Vec<String>,

    /// Resume after this time, such as 6h [default: until `idlewise resume`]
    #[arg(long = "for", value_name = "TIME", conflicts_with = "until")]
    duration: Option<Nanos>,

    /// Resume at this local time, such as "2026-12-01 08:00"
    #[arg(long, value_name = "DATE")]
    until: Option<String>,

    /// Why, for others who look
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,

    #[command(flatten)]
    to: To,
}

/// Have the daemon go on with disks that were paused
#[derive(clap::Args)]
pub struct ResumeArguments {
    /// Disks, by path, name or identity [default: all]
    #[arg(value_name = "DISK")]
    disks: Vec<String>,

    #[command(flatten)]
    to: To,
}

/// Have the daemon begin a pass over disks now, before it is due
///
/// Windows, batteries and others that use the disk still have it wait.
#[derive(clap::Args)]
pub struct StartArguments {
    /// Disks, by path, name or identity
    #[arg(value_name = "DISK", required = true)]
    disks: Vec<String>,

    #[command(flatten)]
    to: To,
}

/// Tell the daemon that the bad blocks of disks are known, so that only new ones count
#[derive(clap::Args)]
pub struct AcknowledgeArguments {
    /// Disks, by path, name or identity
    #[arg(value_name = "DISK", required = true)]
    disks: Vec<String>,

    #[command(flatten)]
    to: To,
}

/// Pauses disks.
pub fn pause(arguments: &PauseArguments) -> anyhow::Result<Exit> {
    let until_unix_s = match (&arguments.duration, &arguments.until) {
        (Some(duration), _) => Some(unix_now() as f64 + duration.as_secs_f64()),
        (None, Some(text)) => {
            let problem = || UsageError(format!("--until is a date such as \"2026-12-01 08:00\", and not '{text}'"));
            let until = parse_date(text).ok_or_else(problem)?;
            if until <= unix_now() as f64 {
                return Err(UsageError(format!("--until: '{text}' is over")).into());
            }
            Some(until)
        }
        (None, None) => None,
    };
    let body = serde_json::to_vec(&Until { until_unix_s, why: arguments.why.clone().unwrap_or_default() })?;
    order(&arguments.to, "pause", &arguments.disks, &body)
}

/// Resumes them.
pub fn resume(arguments: &ResumeArguments) -> anyhow::Result<Exit> {
    order(&arguments.to, "resume", &arguments.disks, b"")
}

/// Begins passes.
pub fn start(arguments: &StartArguments) -> anyhow::Result<Exit> {
    order(&arguments.to, "start", &arguments.disks, b"")
}

/// Acknowledges bad blocks.
pub fn acknowledge(arguments: &AcknowledgeArguments) -> anyhow::Result<Exit> {
    order(&arguments.to, "acknowledge", &arguments.disks, b"")
}

/// Orders it of each disk, or of all at once, and says what was done.
fn order(to: &To, order: &str, disks: &[String], body: &[u8]) -> anyhow::Result<Exit> {
    let name = |disk: &String| {
        // What a link leads to, such as one of /dev/disk/by-id. The path of a disk itself may also be that of one that is missing.
        let is_link = disk.contains('/') && leads_to(Path::new(disk)).is_some_and(|place| place != Path::new(disk));
        let identity = Some(disk).filter(|_| is_link).and_then(|disk| Device::identity_at(Path::new(disk)));
        escaped(&identity.unwrap_or_else(|| disk.clone()))
    };
    let each = disks.iter().map(|disk| format!("/v1/disks/{}/{order}", name(disk)));
    let all = disks.is_empty().then(|| format!("/v1/{order}"));
    let mut failed = false;
    for path in each.chain(all) {
        match post(&to.socket, &path, body) {
            Ok(done) => output::text(&format!("{}\n", one_line(&done)))?,
            // One that is not known keeps no other from it.
            Err(error) if disks.len() > 1 => {
                say!("idlewise: {error:#}");
                failed = true;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(if failed { Exit::CouldNotRun } else { Exit::Clean })
}

/// Sends an order; what was done.
fn post(socket: &Path, path: &str, body: &[u8]) -> anyhow::Result<String> {
    let done = ask(socket, "POST", path, body)?;
    Ok(done["done"].as_str().unwrap_or_default().into())
}

/// What the daemon says of everything.
#[derive(Default)]
pub struct Told {
    /// How its disks stand, by identity.
    pub disks: BTreeMap<String, LookedAfter>,
    /// Why its configuration as it is now is not in force, with its path.
    pub problem: Option<String>,
    /// Why its messages reach nobody.
    pub untold: Option<String>,
}

/// How a disk stands with the daemon.
pub struct LookedAfter {
    /// In a word.
    pub state: String,
    /// What it waits for, in words; nothing where it does not wait.
    pub why: String,
    /// When its pass is due, in seconds since 1970.
    pub due_unix_s: f64,
    /// Where it is.
    pub device: String,
}

/// Whether nobody listens where the daemon does.
pub fn is_down(to: &To) -> bool {
    let is_gone = |error: std::io::Error| [ErrorKind::NotFound, ErrorKind::ConnectionRefused].contains(&error.kind());
    connect(&to.socket, AT_ONCE).is_err_and(is_gone)
}

/// What the daemon says. Nothing where none answers.
pub fn told(to: &To) -> Told {
    let status = ask(&to.socket, "GET", "/v1/status", b"").unwrap_or_default();
    let of = |disk: &serde_json::Value| {
        let text = |name: &str| Some(disk[name].as_str()?.to_string());
        let waits = ["waiting", "paused", "complete", "failed", "missing"].contains(&disk["state"].as_str()?);
        let why = if waits { text("why")? } else { String::new() };
        let due_unix_s = disk["due_unix_s"].as_f64()?;
        Some((text("identity")?, LookedAfter { state: text("state")?, why, due_unix_s, device: text("device")? }))
    };
    let disks = status["disks"].as_array().into_iter().flatten().filter_map(of).collect();
    let text = |value: &serde_json::Value| value.as_str().map(String::from);
    Told { disks, problem: text(&status["config"]["problem"]), untold: text(&status["untold"]) }
}

/// What a daemon answers to a question, as a text.
pub fn asked(to: &To, path: &str) -> anyhow::Result<String> {
    answer(&to.socket, "GET", path, b"")
}

/// What the daemon answers, which is JSON.
fn ask(socket: &Path, method: &str, path: &str, body: &[u8]) -> anyhow::Result<serde_json::Value> {
    serde_json::from_str(&answer(socket, method, path, body)?).context("the daemon's answer is no JSON")
}

/// All that comes until its end, if that is in time.
fn all_of(stream: &mut UnixStream, patience: Duration) -> std::io::Result<String> {
    let (until, mut bytes, mut piece) = (Instant::now() + patience, Vec::new(), vec![0; 64 << 10]);
    while bytes.len() as u64 <= LONGEST {
        // No time at all would be for ever.
        stream.set_read_timeout(Some(until.saturating_duration_since(Instant::now()).max(Duration::from_micros(1))))?;
        match stream.read(&mut piece) {
            Ok(0) => return String::from_utf8(bytes).map_err(|_| ErrorKind::InvalidData.into()),
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::FileTooLarge.into())
}

fn answer(socket: &Path, method: &str, path: &str, body: &[u8]) -> anyhow::Result<String> {
    let shown = socket.display();
    let mut stream = connect(socket, AT_ONCE).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            anyhow!("{shown}: no daemon is running; start it with `systemctl start idlewised` or `idlewise daemon`")
        }
        ErrorKind::PermissionDenied => anyhow!("{shown}: only root may order the daemon: try sudo"),
        ErrorKind::WouldBlock => anyhow!("{shown}: whoever listens there does not answer"),
        _ => anyhow!("{shown}: {error}"),
    })?;
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    // Whoever is busy says so before it has read all of that.
    let written = stream.write_all(&[head.as_bytes(), body].concat());
    let patience = if method == "GET" { AT_ONCE } else { PATIENCE };
    let answer = all_of(&mut stream, patience).with_context(|| format!("{shown}: the daemon does not answer"))?;
    if answer.is_empty() {
        written.with_context(|| shown.to_string())?;
    }
    let (head, text) = answer.split_once("\r\n\r\n").context("the daemon's answer is none of HTTP")?;
    if head.split(' ').nth(1) != Some("200") {
        bail!("{}", text.trim());
    }
    Ok(text.into())
}
