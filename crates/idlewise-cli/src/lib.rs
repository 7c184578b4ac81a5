//! The `idlewise` command: arguments are validated here, everything is computed in the libraries.
//!
//! It is a library so that a program can add policies, trace formats, orders and verifiers of its own to the tables, and then be
//! `idlewise` with those: `fn main() -> ExitCode { POLICIES.add(MINE); idlewise_cli::main() }`. The crate `examples/night` does.

mod array;
mod bad;
mod capture;
mod compare;
mod control;
mod csv;
mod daemon;
mod dates;
mod examples;
mod exit;
mod explore;
mod files;
mod fleet;
mod gaps;
mod history;
mod idle;
mod input;
mod live;
mod made;
mod metrics;
mod notify;
mod output;
mod overview;
mod owner_scrub;
mod parity;
mod policy;
mod probe;
mod progress;
mod reliability;
mod repair;
mod replay;
mod run;
mod sample;
mod screen;
mod scrub;
mod simulate;
mod status;
mod trace;
mod trace_file;
mod tune;
mod work;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Scrub disks, and run other background work, while nobody needs them
#[derive(Parser)]
#[command(name = "idlewise", version = made::VERSION.as_str(), max_term_width = 110, after_help = exit::HELP)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Idle(idle::Arguments),
    Trace(trace::Arguments),
    Simulate(Box<simulate::Arguments>),
    Compare(compare::Arguments),
    Explore(explore::Arguments),
    Tune(tune::Arguments),
    Fleet(Box<fleet::Arguments>),
    Scrub(scrub::Arguments),
    Status(status::Arguments),
    Daemon(daemon::Arguments),
    CheckConfig(daemon::CheckArguments),
    Pause(control::PauseArguments),
    Resume(control::ResumeArguments),
    Start(control::StartArguments),
    Acknowledge(control::AcknowledgeArguments),
    History(history::Arguments),
    Metrics(metrics::Arguments),
    Notify(notify::Arguments),
    Run(Box<run::Arguments>),
    /// Let go what `run` holds, when that is gone
    #[command(hide = true)]
    RunGuard,
    OwnerScrub(owner_scrub::Arguments),
    Repair(repair::Arguments),
    Reliability(Box<reliability::Arguments>),
    Array(Box<array::Arguments>),
    Probe(probe::Arguments),
    Capture(capture::Arguments),
    Sample(sample::Arguments),
    Replay(replay::Arguments),
    #[command(hide = true)]
    GenerateFiles(files::Arguments),
}

const NO_THREADS: &str = "no threads to compute with: is a limit reached, such as TasksMax or ulimit -u?";

/// How this process was started.
struct Called {
    arguments: Vec<OsString>,
    program: PathBuf,
}

static CALLED: OnceLock<Called> = OnceLock::new();

/// As a program of its own. Its file may have been replaced by another version.
fn called() -> &'static Called {
    CALLED.get_or_init(|| Called { arguments: std::env::args_os().collect(), program: "/proc/self/exe".into() })
}

/// What starts another process of this command.
fn program() -> &'static Path {
    &called().program
}

/// The whole command inside another program, such as an interpreter: `arguments` begin with the name of the command, and `program` is
/// what starts it once more. Only the first call of a process says so.
pub fn main_within(program: PathBuf, arguments: Vec<OsString>) -> ExitCode {
    CALLED.get_or_init(|| Called { arguments, program });
    main()
}

/// The whole command: reads the arguments of the process and does what they say.
pub fn main() -> ExitCode {
    /// What it needs is not what a shell allows its programs (`ulimit -s`).
    const STACK: usize = 8 << 20;
    let whole = std::thread::Builder::new().stack_size(STACK).spawn(whole);
    match whole.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => exit::code(Err(error).context(NO_THREADS)),
    }
}

fn whole() -> ExitCode {
    quiet_parquet();
    // A file that becomes too long for a limit is an error like others.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let parsed = overview::with_groups(command()).try_get_matches_from(&called().arguments).and_then(|matches| {
        made::remember(&called().arguments, &matches);
        Arguments::from_arg_matches(&matches)
    });
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) => return exit::usage(&error),
    };
    match arguments.command {
        Command::RunGuard => {
            run::guard();
            return ExitCode::SUCCESS;
        }
        // What it starts would inherit the limit.
        Command::Run(arguments) => return exit::of_another(run::run(&arguments)),
        _ => allow_many_files(),
    }
    if !matches!(arguments.command, Command::Status(_))
        && let Err(error) = make_threads()
    {
        return exit::code(Err(error));
    }
    let done = match arguments.command {
        Command::Idle(arguments) => idle::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Explore(arguments) => explore::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Fleet(arguments) => fleet::run(&arguments),
        Command::Scrub(arguments) => scrub::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Daemon(arguments) => daemon::run(&arguments),
        Command::CheckConfig(arguments) => daemon::check(&arguments),
        Command::Pause(arguments) => control::pause(&arguments),
        Command::Resume(arguments) => control::resume(&arguments),
        Command::Start(arguments) => control::start(&arguments),
        Command::Acknowledge(arguments) => control::acknowledge(&arguments),
        Command::History(arguments) => history::run(&arguments),
        Command::Metrics(arguments) => metrics::run(&arguments),
        Command::Notify(arguments) => notify::run(&arguments),
        Command::Reliability(arguments) => reliability::run(&arguments),
        Command::Array(arguments) => array::run(&arguments),
        Command::OwnerScrub(arguments) => owner_scrub::run(&arguments),
        Command::Repair(arguments) => repair::run(&arguments),
        Command::Probe(arguments) => probe::run(&arguments),
        Command::Capture(arguments) => capture::run(&arguments),
        Command::Sample(arguments) => sample::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::GenerateFiles(arguments) => files::run(&arguments),
        Command::Run(_) | Command::RunGuard => unreachable!("they are over"),
    };
    exit::code(done)
}

/// The command line, with the examples of its help.
fn command() -> clap::Command {
    examples::with_examples(Arguments::command())
}

/// The Parquet reader panics on some damaged files, which the library turns into an error: one line is enough.
fn quiet_parquet() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let file = panic.location().map_or("", |location| location.file());
        if !file.contains("/parquet-") && !file.contains("/bytes-") {
            usual(panic);
        }
    }));
}

/// The threads that computations share: made later, on first use, their lack would be a panic.
fn make_threads() -> anyhow::Result<()> {
    /// More than so many for each processor are a mistake.
    const MOST: usize = 4;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted =
        std::env::var("RAYON_NUM_THREADS").ok().and_then(|count| count.parse().ok()).filter(|count| *count > 0);
    let count = wanted.unwrap_or(processors).min(MOST * processors);
    let made = rayon::ThreadPoolBuilder::new().num_threads(count).build_global();
    // Its cause says the same once more.
    made.map_err(|error| anyhow::anyhow!("{NO_THREADS}: {error}"))
}

/// A trace may be thousands of files, all open while they are merged.
fn allow_many_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // Without it, opening too many says so.
    let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit });
}
