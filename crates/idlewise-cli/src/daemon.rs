//! `idlewise daemon`: every disk verified in time; and `idlewise check-config`, which shows what that would do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use idlewise::report::Table;
use idlewise::report::printable::one_line;
use idlewise::{Bytes, Nanos};
use idlewise_linux::scrub::StateFolder;
use idlewise_service::{Config, Daemon, Notify, OnBattery, Options, WhenBehind, Wish, present};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::control;
use crate::exit::Exit;
use crate::output::{self, say};

/// Where the configuration is, unless another place is given.
const CONFIG: &str = "/etc/idlewise/idlewise.toml";

/// Verify every disk of this machine in time, at its slowdown goal. For a service manager such as systemd
///
/// Each disk is verified once in 14 days, or as the configuration says. The daemon remembers how fast each disk could be verified in each
/// hour of the week, and begins each pass early enough. SIGHUP lets it read the configuration again. SIGTERM ends it; the next start goes
/// on with the passes. `idlewise status` shows how they stand, and `idlewise check-config` the goal and the times of each disk.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    at: At,

    /// Socket on which it takes orders, unless systemd hands one over
    #[arg(long, value_name = "FILE", default_value = control::SOCKET)]
    socket: PathBuf,

    /// Time between two looks at the disks
    #[arg(long, value_name = "TIME", default_value = "10s", hide = true)]
    look_every: Nanos,
}

/// Check the configuration of the daemon, and show the goal and the times of each disk of this machine
#[derive(clap::Args)]
pub struct CheckArguments {
    #[command(flatten)]
    at: At,

    /// Print a JSON list instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct At {
    #[command(flatten)]
    config: ConfigPath,

    /// Folder of the checkpoints and of what the daemon remembers [default: $STATE_DIRECTORY, which systemd sets, or
    /// /var/lib/idlewise]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
}

/// Where the configuration is.
#[derive(clap::Args)]
pub struct ConfigPath {
    /// Configuration [default: /etc/idlewise/idlewise.toml, and every disk gets the defaults where that file is missing]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigPath {
    /// The file. One that was named has to be there: with a mistyped name nothing would be as it is wished.
    pub fn file(&self) -> anyhow::Result<&Path> {
        if let Some(file) = &self.config {
            file.metadata().with_context(|| file.display().to_string())?;
        }
        Ok(self.config.as_deref().unwrap_or(Path::new(CONFIG)))
    }
}

impl At {
    fn states(&self) -> StateFolder {
        let by_systemd = || std::env::var_os("STATE_DIRECTORY").map(PathBuf::from);
        StateFolder::choose(self.state_dir.clone().or_else(by_systemd))
    }
}

/// Runs the daemon until it is told to end.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let (stop, reload) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    for (signal, flag) in [(SIGTERM, &stop), (SIGINT, &stop), (SIGHUP, &reload)] {
        signal_hook::flag::register(signal, flag.clone())?;
    }
    idlewise_linux::put_back_what_is_left();
    let options = Options {
        config: arguments.at.config.file()?.into(),
        states: arguments.at.states(),
        program: crate::program().into(),
        socket: arguments.socket.clone(),
        look_every: std::time::Duration::from_nanos(arguments.look_every.0),
        stop,
        reload,
    };
    Daemon::new(options)?.run()?;
    Ok(Exit::Clean)
}

/// What a disk gets.
#[derive(Serialize)]
struct Gets {
    /// Where it is.
    device: String,
    /// Which one it is.
    identity: String,
    /// Its size.
    device_bytes: u64,
    /// The `match` of the section that counts; absent where none matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<String>,
    /// Whether it is left alone; then the rest says what it would get.
    ignored: bool,
    /// The disk is verified once in this time.
    verify_every_s: f64,
    /// The mean slowdown that others may suffer.
    mean_slowdown_s: f64,
    /// The largest.
    max_slowdown_s: f64,
    /// `say` or `spend`.
    when_behind: &'static str,
    /// When it may be read, in local time.
    windows: String,
    #[serde(skip)]
    always: bool,
    /// In which order it is read.
    order: String,
    /// `pause` or `run`.
    on_battery: &'static str,
}

impl Gets {
    fn cells(&self) -> [String; 7] {
        let time = |seconds: f64| Nanos((seconds * 1e9) as u64).to_string();
        let by = match (&self.matched, self.ignored) {
            (Some(matched), true) => format!("ignored, by '{matched}'"),
            (Some(matched), false) => format!("'{matched}'"),
            (None, _) => "defaults".into(),
        };
        let of = |text: String| if self.ignored { String::new() } else { text };
        [
            one_line(&self.device).into_owned(),
            one_line(&self.identity).into_owned(),
            Bytes(self.device_bytes).to_string(),
            one_line(&by).into_owned(),
            of(time(self.verify_every_s)),
            of(time(self.mean_slowdown_s)),
            of(time(self.max_slowdown_s)),
        ]
    }
}

/// Who is told what is wrong, in a line.
fn who_is_told(notify: &Notify) -> String {
    let ways = [
        (!notify.mail.is_empty()).then(|| format!("mail to {}", notify.mail.join(", "))),
        notify.command.first().map(|command| format!("command {command}")),
        notify.webhook.as_ref().map(|webhook| format!("webhook of {}", webhook.url_file.display())),
    ];
    let ways: Vec<String> = ways.into_iter().flatten().collect();
    match ways.is_empty() {
        true => "messages: only the journal; [notify] says who else is told\n".into(),
        false => format!("messages: {}; `idlewise notify --test` sends one\n", one_line(&ways.join("; "))),
    }
}

/// Shows what each disk gets.
pub fn check(arguments: &CheckArguments) -> anyhow::Result<Exit> {
    let config = Config::read(arguments.at.config.file()?)?;
    let problems = [config.nowhere(), config.notify.not_possible()].concat();
    problems.iter().for_each(|why| say!("idlewise: {why}"));
    let mut all = Vec::new();
    for found in present(&config) {
        match found {
            Ok((disk, _)) => {
                let (wish, matched) = config.of(&disk.identity, &disk.path);
                let Wish {
                    ignore,
                    verify_every,
                    mean_slowdown,
                    max_slowdown,
                    when_behind,
                    windows,
                    order,
                    on_battery,
                    ..
                } = wish;
                all.push(Gets {
                    device: disk.path.display().to_string(),
                    identity: disk.identity,
                    device_bytes: disk.size.0,
                    matched: matched.map(String::from),
                    ignored: ignore,
                    verify_every_s: verify_every.as_secs_f64(),
                    mean_slowdown_s: mean_slowdown.map_or(disk.usual_mean_s, |mean| mean.as_secs_f64()),
                    max_slowdown_s: max_slowdown.map_or(disk.usual_max_s, |max| max.as_secs_f64()),
                    when_behind: if when_behind == WhenBehind::Say { "say" } else { "spend" },
                    always: windows.is_always(),
                    windows: windows.to_string(),
                    order,
                    on_battery: if on_battery == OnBattery::Pause { "pause" } else { "run" },
                });
            }
            // The file may be as it should all the same.
            Err(why) => say!("idlewise: {why}"),
        }
    }
    if arguments.json {
        output::json(&all)?;
    } else if !all.is_empty() {
        let mut table =
            Table::new(["device", "identity", "size", "by", "verified every", "mean slowdown", "max slowdown"]);
        all.iter().for_each(|disk| table.row(disk.cells()));
        let with_windows = all.iter().filter(|disk| !disk.always && !disk.ignored);
        let windows: String = with_windows
            .map(|disk| format!("{}: read only in its windows, {}\n", one_line(&disk.device), disk.windows))
            .collect();
        output::text(&(table.to_string() + &windows + &who_is_told(&config.notify)))?;
    }
    if all.iter().all(|disk| disk.ignored) {
        say!("idlewise: no disk of this machine would be verified");
        return Ok(if problems.is_empty() { Exit::NothingToDo } else { Exit::CouldNotRun });
    }
    Ok(if problems.is_empty() { Exit::Clean } else { Exit::CouldNotRun })
}
