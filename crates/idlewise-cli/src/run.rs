//! `idlewise run`: any command, its disk work in the gaps.

mod line;
mod report;
mod signals;

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use anyhow::Context;
use idlewise::Bytes;
use idlewise_linux::command::{Held, Noted, Paced, Progress, Settings, Whose, launch};
use idlewise_linux::device::WholeDisk;
use idlewise_linux::scrub::Process;

use crate::exit::UsageError;
use crate::gaps::{Limits, Line};
use crate::output::{self, say};
use crate::screen;
pub use report::Disk;
use report::Report;
use signals::{Signals, Told};

/// What ends it where nothing of the command's own did, as with nice, env and timeout.
const OWN_FAILURE: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
/// With `--pid` and `--unit`, where they did not end.
const INTERRUPTED: u8 = 4;
/// Added to the number of a signal.
const SIGNALLED: u8 = 128;

/// Run any command so that its disk work slows others by no more than a goal
///
/// The command runs while nobody else uses the disks that it uses. When a foreground request comes, it is held until those disks
/// have been idle for long enough again. Its standard streams, signals and exit code are its own. Which disks it uses is found out
/// while it runs; a disk that nobody else uses never holds it back.
///
/// An account keeps the mean slowdown within the goal, as for a scrub. How long a single request may wait depends on what the
/// command has asked for when it is held: that is measured, and said where it is more than --max-slowdown.
///
/// With root, requests are told apart by control group. Without, idlewise holds the command by signals and tells requests apart by
/// counters, which is coarser.
#[derive(clap::Args)]
#[command(override_usage = "idlewise run [OPTIONS] [--] <COMMAND>...\n       idlewise run [OPTIONS] --pid <PID>\n       idlewise run [OPTIONS] --unit <NAME>", after_help = EXIT_CODES)]
pub struct Arguments {
    /// The command and its arguments
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present_any = ["pid", "unit"])]
    command: Vec<OsString>,

    /// Take over a process that runs, and all that come from it. They are let go again when idlewise ends
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "unit"], value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pid: Option<u32>,

    /// Take over a unit of systemd that runs, such as backup.service. It is let go again when idlewise ends
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    unit: Option<String>,

    #[command(flatten)]
    limits: Limits,

    /// Hold the command's memory, page cache included, below this size, such as 1GiB
    ///
    /// The kernel writes pages that the command has filled some seconds later, whether it is held or not, and lets it fill a fifth of
    /// its memory at most. This needs the memory controller of control groups, version 2.
    #[arg(long, value_name = "SIZE", conflicts_with = "unit")]
    memory_high: Option<Bytes>,

    /// Watch only the disks that this lies on: a block device, or a file or folder on a file system. May be given again
    /// [default: all that the command is seen to use]
    #[arg(long, value_name = "PATH")]
    device: Vec<PathBuf>,

    /// Write what was measured as JSON to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// No progress on standard error, and no summary
    #[arg(long, short)]
    quiet: bool,
}

const EXIT_CODES: &str = "Exit codes: that of COMMAND; 125 idlewise itself failed, 126 COMMAND cannot be\n\
    executed, 127 there is no such COMMAND, 128 + n COMMAND ended by signal n. With\n\
    --pid and --unit: 0 they have ended, 4 interrupted. 64 usage.";

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<u8> {
    arguments.check()?;
    match begin(arguments) {
        Ok(exit) => Ok(exit),
        Err(error) if error.is::<UsageError>() => Err(error),
        Err(error) => {
            say!("idlewise: {error:#}");
            Ok(OWN_FAILURE)
        }
    }
}

/// The process that lets the others go when this one is gone.
pub fn guard() {
    let _ = rustix::thread::set_name(c"idlewise-guard");
    idlewise_linux::command::stand();
}

fn begin(arguments: &Arguments) -> anyhow::Result<u8> {
    // Who does not read what is said must not keep the command held.
    screen::begin();
    output::check(arguments.json.as_deref())?;
    let disks = arguments.disks()?;
    let signals = Signals::new()?;
    let no_children = signals::hear_of_children();
    let mut guard = Command::new(crate::program());
    guard.arg0("idlewise").arg("run-guard");
    let whose = arguments.whose()?;
    let held = Held::new(&whose, guard).with_context(|| arguments.name())?;
    let by_signals = held.coarse.clone();
    if let Some(Bytes(bytes)) = arguments.memory_high {
        let is_limited = held.group().is_some_and(|group| group.limit_memory(bytes).is_ok());
        anyhow::ensure!(is_limited, "--memory-high: there is no memory controller here (control groups, version 2)");
    }
    let Limits { mean_slowdown, max_slowdown, idle_wait } = arguments.limits;
    let mut paced = Paced::new(held, Settings { mean_slowdown, max_slowdown, idle_wait, disks })?;
    if !arguments.quiet {
        // What is named is watched, or refused.
        if arguments.device.is_empty() {
            arguments.say_what_is_not_watched();
        }
        arguments.say_what_is_coarse(by_signals.as_deref(), paced.coarse());
    }
    let mut child = None;
    if whose == Whose::Command {
        let entry = paced.held().group().map(|group| group.entry()).transpose()?;
        match launch(&arguments.command, entry, no_children) {
            Ok(started) => child = Some(started),
            Err(error) => {
                let missing = error.kind() == io::ErrorKind::NotFound;
                match missing {
                    true => say!("idlewise: {}: no such command", arguments.name()),
                    false => say!("idlewise: {}: it cannot be executed: {error}", arguments.name()),
                }
                return Ok(if missing { NOT_FOUND } else { NOT_EXECUTABLE });
            }
        }
    }
    paced.begin(child.as_ref().map(Child::id).or(arguments.pid));
    let group = paced.held().group().and_then(|group| group.number().ok());
    let mut shown = (Line::new(arguments.quiet, &arguments.name()), Noted::begin(&arguments.name(), group));
    let mut warnings = Vec::new();
    let ended = until_over(&mut paced, child.as_mut(), &signals, &mut shown, &mut warnings);
    let progress = paced.progress();
    drop(shown);
    // From here on nobody is held.
    let by_group = paced.held().group().is_some();
    let has_writes = paced.held().group().is_some_and(|group| group.has_writes());
    drop(paced);
    let exit = match ended {
        Ok(exit) => exit,
        Err(error) => match child {
            Some(mut child) => {
                say!("idlewise: {error:#}: {} goes on, and is not held any more", arguments.name());
                code(wait_for(&mut child, &signals)?)
            }
            None => return Err(error),
        },
    };
    if !arguments.quiet {
        line::summary(&progress);
    }
    if let Some(path) = &arguments.json {
        // The exit code is the command's, whatever becomes of the file.
        if let Err(error) =
            output::json_file(path, &Report::new(arguments, &progress, (by_group, has_writes), warnings, exit))
        {
            say!("idlewise: {error:#}");
        }
    }
    Ok(exit)
}

/// Paces the processes until they have ended, or, where they are not ours, until somebody wants it to end.
fn until_over(
    paced: &mut Paced,
    mut child: Option<&mut Child>,
    signals: &Signals,
    (line, noted): &mut (Line, Option<Noted>),
    warnings: &mut Vec<String>,
) -> anyhow::Result<u8> {
    loop {
        paced.turn()?;
        line.show(|| {
            let progress = paced.progress();
            (progress.disks.clone(), line::pieces(&progress))
        });
        for warning in paced.warnings() {
            line.warn(&warning);
            warnings.push(warning);
        }
        noted.iter_mut().for_each(|noted| noted.tell(|| paced.progress()));
        match &mut child {
            Some(child) => {
                if let Some(status) = child.try_wait()? {
                    return Ok(code(status));
                }
            }
            None if paced.is_over() => return Ok(0),
            None => {}
        }
        for told in signals.told() {
            match (told, &child) {
                // Nobody could let it go on.
                (Told::Pause { by_terminal: true }, _) if signals::is_alone() => {}
                (Told::Pause { .. }, _) => {
                    paced.pause(true)?;
                    noted.iter_mut().for_each(|noted| noted.tell_at_once(&paced.progress()));
                    signals::stop_here();
                    paced.pause(false)?;
                }
                (Told::End { .. }, None) => return Ok(INTERRUPTED),
                (Told::End { signal, by_terminal }, Some(child)) => {
                    // The terminal has told the command itself.
                    if !by_terminal {
                        signals::send(child.id(), signal);
                    }
                    paced.let_end()?;
                }
                (Told::Other { signal }, Some(child)) => signals::send(child.id(), signal),
                (Told::Other { .. }, None) => {}
            }
        }
    }
}

/// Waits for a command that is not held any more.
fn wait_for(child: &mut Child, signals: &Signals) -> anyhow::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        for told in signals.told() {
            match told {
                Told::Pause { .. } => signals::stop_here(),
                Told::End { by_terminal: true, .. } => {}
                Told::End { signal, .. } | Told::Other { signal } => signals::send(child.id(), signal),
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// As a shell says it.
fn code(status: ExitStatus) -> u8 {
    let signalled = || SIGNALLED.saturating_add(u8::try_from(status.signal().unwrap_or(0)).unwrap_or(0));
    status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or_else(signalled)
}

impl Arguments {
    fn check(&self) -> anyhow::Result<()> {
        self.limits.check()?;
        match self.json.as_deref() == Some(Path::new("-")) {
            true => Err(UsageError("--json takes a file: standard output is the command's".into()).into()),
            false => Ok(()),
        }
    }

    fn whose(&self) -> anyhow::Result<Whose> {
        Ok(match (self.pid, &self.unit) {
            (Some(pid), _) => {
                Whose::Process(Process::of(pid).with_context(|| format!("{}: no such process", self.name()))?)
            }
            (None, Some(unit)) => Whose::Unit(unit.clone()),
            (None, None) => Whose::Command,
        })
    }

    /// What it is about, in a word.
    fn name(&self) -> String {
        match (self.pid, &self.unit) {
            (Some(pid), _) => format!("process {pid}"),
            (None, Some(unit)) => unit.clone(),
            (None, None) if self.command[0].is_empty() => "''".into(),
            (None, None) => self.command[0].to_string_lossy().into_owned(),
        }
    }

    fn disks(&self) -> anyhow::Result<Option<Vec<WholeDisk>>> {
        let mut disks: Vec<WholeDisk> = Vec::new();
        for path in &self.device {
            let below = WholeDisk::below(path).with_context(|| path.display().to_string())?;
            disks.extend(below);
        }
        disks.sort_by_key(WholeDisk::numbers);
        disks.dedup_by_key(|disk| disk.numbers());
        Ok((!disks.is_empty()).then_some(disks))
    }

    /// On which disks the command is not held back, as nobody sees their requests.
    fn say_what_is_not_watched(&self) {
        for disk in WholeDisk::all_with_hidden_paths() {
            say!(
                "idlewise: {}: its requests go through hidden paths of NVMe multipath, which cannot be watched: {} is not held back there; start \
                 the kernel with nvme_core.multipath=N",
                disk.name(),
                self.name()
            );
        }
    }

    fn say_what_is_coarse(&self, by_signals: Option<&str>, by_counters: Option<&str>) {
        let counters = "requests are told apart by counters, which show only a part of what others wait";
        match (by_signals, by_counters) {
            (Some(why), _) => {
                say!(
                    "idlewise: {}: the goal may not be kept: it is held by signals, as no control group can be made here: {why}; \
                     {counters}",
                    self.name()
                )
            }
            (None, Some(why)) => say!("idlewise: {}: the goal may not be kept: {counters}: {why}", self.name()),
            (None, None) => {}
        }
    }
}

/// Where it stands in the end, for tests and reports.
fn share_run(progress: &Progress) -> f64 {
    progress.ran.as_secs_f64() / progress.elapsed.as_secs_f64().max(1e-9)
}
