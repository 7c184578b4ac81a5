//! How well idlewise and its peers keep a trace's times, by the kernel's own block tracepoints.
//!
//! `cargo bench -p idlewise-cli --bench replay -- [--seconds 10] [--runs 5] [--rates 900,5000,10000] [--tools idlewise,fio]`
//!
//! A trace of 4 KiB reads at random times (Poisson) and places, none read twice, is played on a loop device in memory by
//! idlewise, fio, btreplay (Debian's blktrace) and blkreplay, those that are installed, in turns. `block_rq_issue` says when each
//! request went to the device; its drift is how much later or earlier that was than in the trace. The two clocks are laid
//! together so that the drift of the first hundred requests has a median of zero: the very first one meets cold caches,
//! whatever the tool. Root, losetup and tracefs.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use idlewise::trace::write::{Target, TraceWriter};
use idlewise::trace::{Columns, Provenance, Request};
use idlewise::{Bytes, Nanos};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SEED: u64 = 900;
const SECTOR: u64 = 512;
const BLOCK: u64 = 4096;
const DEVICE: u64 = 1 << 30;
/// Requests by whose drift the clocks of the trace and of the run are laid together.
const BEGINNING: usize = 100;
/// How often a run that hangs is tried again.
const TRIES: usize = 8;
/// The goals: median and 99th percentile of the drift.
const GOALS: [Nanos; 2] = [Nanos(20_000), Nanos(100_000)];
const TOOLS: [Tool; 4] = [
    Tool { name: "idlewise", program: env!("CARGO_BIN_EXE_idlewise"), command: idlewise, beyond: 15 },
    Tool { name: "btreplay", program: "btreplay", command: btreplay, beyond: 5 },
    Tool { name: "blkreplay", program: "blkreplay", command: blkreplay, beyond: 40 },
    Tool { name: "fio", program: "fio", command: fio, beyond: 15 },
];

struct Tool {
    name: &'static str,
    program: &'static str,
    command: fn(&Path, &str) -> Result<Command>,
    /// Seconds beyond those of the trace after which it hangs: btreplay does before its first request, every other time.
    beyond: u64,
}

struct Options {
    seconds: u64,
    runs: usize,
    rates: Vec<u64>,
    tools: Vec<String>,
}

/// What the tracepoints say of one run.
struct Judged {
    seen: usize,
    drift: [Nanos; 3],
    span_error: f64,
}

fn main() -> Result<()> {
    let options = Options::parse()?;
    let folder = tempfile::Builder::new().prefix("idlewise-bench-").tempdir_in("/dev/shm")?;
    let device = LoopDevice::new(&folder.path().join("disk"))?;
    let tracing = Tracing::new(&device)?;
    let tools: Vec<&Tool> = TOOLS
        .iter()
        .filter(|tool| options.tools.is_empty() || options.tools.iter().any(|name| name == tool.name))
        .collect();
    let (there, missing): (Vec<&Tool>, Vec<&Tool>) = tools.into_iter().partition(|tool| installed(tool.program));
    for tool in missing {
        println!("{}: not installed", tool.name);
    }
    println!(
        "{} s, {} runs in turns, seed {SEED}; drift of issue times: median run (worst run)",
        options.seconds, options.runs
    );
    println!(
        " req/s  tool                         p50                   p99                   max              span error  requests seen"
    );
    for rate in &options.rates {
        let trace = trace(*rate, options.seconds);
        write(&trace, folder.path(), device.name())?;
        let mut results: HashMap<&str, Vec<Judged>> = HashMap::new();
        for run in 0..options.runs {
            for turn in 0..there.len() {
                let tool = there[(turn + run) % there.len()];
                let runs = results.entry(tool.name).or_default();
                for _ in 0..TRIES {
                    let mut command =
                        limited(&(tool.command)(folder.path(), &device.path)?, options.seconds + tool.beyond);
                    if let Some(issued) = tracing.watch(command.stdin(stdin(tool, folder.path())?))? {
                        runs.push(judge(&trace, &issued));
                        break;
                    }
                    println!("{rate:>6}  {:<10} hung, and was stopped", tool.name);
                }
            }
        }
        for tool in there.iter().filter(|tool| !results[tool.name].is_empty()) {
            println!("{rate:>6}  {:<10}{}", tool.name, line(&results[tool.name], trace.len()));
        }
    }
    Ok(())
}

impl Options {
    fn parse() -> Result<Self> {
        let mut options = Self { seconds: 10, runs: 5, rates: vec![900, 5_000, 10_000], tools: Vec::new() };
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name}: a value must follow"))?;
            match name.as_str() {
                "--seconds" => options.seconds = value.parse()?,
                "--runs" => options.runs = value.parse()?,
                "--rates" => options.rates = value.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?,
                "--tools" => options.tools = value.split(',').map(String::from).collect(),
                _ => return Err(format!("{name}: --seconds, --runs, --rates or --tools").into()),
            }
        }
        Ok(options)
    }
}

fn installed(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", "command -v \"$0\" >/dev/null", program])
        .status()
        .is_ok_and(|status| status.success())
}

/// The command, stopped after so long.
fn limited(command: &Command, seconds: u64) -> Command {
    let mut limited = Command::new("timeout");
    limited.arg("--signal=KILL").arg(seconds.to_string()).arg(command.get_program()).args(command.get_args());
    limited
}

/// Reads at random times and places, none of them twice.
fn trace(rate: u64, seconds: u64) -> Columns {
    /// Odd, so that it visits every place of a power of two before it comes back.
    const STEP: u64 = 0x9e37_79b1;
    let mut random = Pcg64::seed_from_u64(SEED);
    let mut columns = Columns::default();
    let volume = columns.volume_id("disk").unwrap_or_default();
    let mut arrival = 0.0;
    for number in 0..(rate * seconds).min(DEVICE / BLOCK) {
        let offset = Bytes(number * STEP % (DEVICE / BLOCK) * BLOCK);
        columns.push(Request {
            arrival: Nanos(arrival as u64),
            offset,
            length: BLOCK as u32,
            volume,
            ..Request::default()
        });
        arrival -= random.random::<f64>().ln() / rate as f64 * 1e9;
    }
    columns
}

/// The trace as each tool reads it.
fn write(trace: &Columns, folder: &Path, device: &str) -> Result<()> {
    for (name, format) in [("trace.parquet", "parquet"), ("trace.iolog", "iolog"), ("trace.load", "blkreplay")] {
        let target = Target::named(format).ok_or("no such target")?;
        let file = BufWriter::new(File::create(folder.join(name))?);
        let mut writer = TraceWriter::new(target, file, &Provenance::default())?;
        writer.write(trace)?;
        writer.finish()?.flush()?;
    }
    let mut events = BufWriter::new(File::create(folder.join(format!("{device}.blktrace.0")))?);
    for (number, request) in trace.requests().enumerate() {
        events.write_all(&queued(number as u32, &request))?;
    }
    Ok(events.flush()?)
}

/// A read being queued, as in linux/blktrace_api.h, version 7.
fn queued(number: u32, request: &Request) -> Vec<u8> {
    const MAGIC: u32 = 0x6561_7407;
    /// BLK_TC_READ and BLK_TC_QUEUE above the action, __BLK_TA_QUEUE.
    const READ_QUEUED: u32 = (1 | 1 << 4) << 16 | 1;
    const PID: u32 = 1;
    const DISK: u32 = 8 << 20;
    let mut event = Vec::with_capacity(48);
    event.extend(MAGIC.to_ne_bytes());
    event.extend((number + 1).to_ne_bytes());
    event.extend(request.arrival.0.to_ne_bytes());
    event.extend((request.offset.0 / SECTOR).to_ne_bytes());
    for word in [request.length, READ_QUEUED, PID, DISK, 0, 0] {
        event.extend(word.to_ne_bytes());
    }
    event
}

fn idlewise(folder: &Path, device: &str) -> Result<Command> {
    let mut command = Command::new(TOOLS[0].program);
    command.arg("replay").arg(folder.join("trace.parquet")).args([device, "--json"]);
    Ok(command)
}

fn fio(folder: &Path, device: &str) -> Result<Command> {
    let mut command = Command::new("fio");
    command.args(["--name=replay", "--ioengine=io_uring", "--iodepth=1024", "--direct=1", "--readonly"]);
    command.arg(format!("--read_iolog={}", folder.join("trace.iolog").display()));
    command.arg(format!("--replay_redirect={device}"));
    Ok(command)
}

fn blkreplay(_: &Path, device: &str) -> Result<Command> {
    let mut command = Command::new("blkreplay");
    command.arg(device);
    Ok(command)
}

/// One request a bunch, as it keeps times best so. Its trace is named after the device: mapping one name to another crashes it.
fn btreplay(folder: &Path, device: &str) -> Result<Command> {
    let name = device.trim_start_matches("/dev/");
    let recorded = Command::new("btrecord")
        .args(["-M", "1", "-m", "1", "-d"])
        .arg(folder)
        .arg("-D")
        .arg(folder)
        .arg(name)
        .output()?;
    if !recorded.status.success() {
        return Err(format!("btrecord: {}", String::from_utf8_lossy(&recorded.stderr)).into());
    }
    let mut command = Command::new("btreplay");
    command.arg("-d").arg(folder).arg(name);
    Ok(command)
}

fn stdin(tool: &Tool, folder: &Path) -> Result<Stdio> {
    Ok(if tool.name == "blkreplay" { File::open(folder.join("trace.load"))?.into() } else { Stdio::null() })
}

/// A loop device on a file in memory, there until it is dropped.
struct LoopDevice {
    path: String,
}

impl LoopDevice {
    fn new(file: &Path) -> Result<Self> {
        File::create(file)?.write_all(&vec![1; DEVICE as usize])?;
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output()?;
        if !made.status.success() {
            return Err(format!("losetup: {}", String::from_utf8_lossy(&made.stderr)).into());
        }
        Ok(Self { path: String::from_utf8(made.stdout)?.trim().into() })
    }

    fn name(&self) -> &str {
        self.path.trim_start_matches("/dev/")
    }

    /// As tracepoints number it.
    fn number(&self) -> Result<u64> {
        let text = fs::read_to_string(format!("/sys/block/{}/dev", self.name()))?;
        let (major, minor) = text.trim().split_once(':').ok_or("no device number")?;
        Ok(major.parse::<u64>()? << 20 | minor.parse::<u64>()?)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

/// A buffer of tracepoints of its own, there until it is dropped.
struct Tracing {
    folder: PathBuf,
}

impl Tracing {
    fn new(device: &LoopDevice) -> Result<Self> {
        const ROOT: &str = "/sys/kernel/tracing";
        if !Path::new(ROOT).join("instances").exists() {
            Command::new("mount").args(["-t", "tracefs", "nodev", ROOT]).status()?;
        }
        let folder = Path::new(ROOT).join("instances/idlewise-bench");
        fs::create_dir_all(&folder)?;
        let tracing = Self { folder };
        tracing.set("tracing_on", "0")?;
        tracing.set("trace_clock", "mono")?;
        tracing.set("buffer_size_kb", "32768")?;
        tracing.set("events/block/block_rq_issue/filter", &format!("dev == {}", device.number()?))?;
        tracing.set("events/block/block_rq_issue/enable", "1")?;
        Ok(tracing)
    }

    fn set(&self, file: &str, value: &str) -> Result<()> {
        Ok(fs::write(self.folder.join(file), value).map_err(|error| format!("tracefs, {file}: {error}"))?)
    }

    /// Runs a command; when each sector was first issued, or `None` if it had to be stopped.
    fn watch(&self, command: &mut Command) -> Result<Option<HashMap<u64, Nanos>>> {
        /// `timeout` then kills itself as well.
        const KILLED: i32 = 9;
        self.set("trace", "")?;
        self.set("tracing_on", "1")?;
        let output = command.stdout(Stdio::null()).stderr(Stdio::piped()).output()?;
        self.set("tracing_on", "0")?;
        if output.status.signal() == Some(KILLED) {
            return Ok(None);
        }
        if !output.status.success() {
            return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let mut issued = HashMap::new();
        // `program-pid [cpu] flags seconds.micros: block_rq_issue: major,minor R bytes () sector + sectors ...`
        for line in fs::read_to_string(self.folder.join("trace"))?.lines() {
            let Some((before, event)) = line.split_once(": block_rq_issue: ") else { continue };
            let at: Nanos = format!("{}s", before.rsplit(' ').next().unwrap_or_default()).parse()?;
            let sector = event.split_once("() ").and_then(|(_, rest)| rest.split(' ').next()).ok_or("an odd event")?;
            issued.entry(sector.parse()?).or_insert(at);
        }
        Ok(Some(issued))
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

fn judge(trace: &Columns, issued: &HashMap<u64, Nanos>) -> Judged {
    let times: Vec<(Nanos, Nanos)> = trace
        .requests()
        .filter_map(|request| Some((request.arrival, *issued.get(&(request.offset.0 / SECTOR))?)))
        .collect();
    let Some((&(first_due, first), &(last_due, last))) = times.first().zip(times.last()) else {
        return Judged { seen: 0, drift: [Nanos::ZERO; 3], span_error: 0.0 };
    };
    let behind: Vec<i64> = times.iter().map(|(due, at)| at.0 as i64 - due.0 as i64).collect();
    let mut beginning = behind[..behind.len().min(BEGINNING)].to_vec();
    beginning.sort_unstable();
    let apart = beginning[beginning.len() / 2];
    let mut drifts: Vec<Nanos> = behind.iter().map(|behind| Nanos(behind.abs_diff(apart))).collect();
    drifts.sort_unstable();
    let at = |share: f64| drifts[((drifts.len() as f64 * share).ceil() as usize).max(1) - 1];
    let span = |from: Nanos, to: Nanos| to.0 as f64 - from.0 as f64;
    Judged {
        seen: times.len(),
        drift: [at(0.5), at(0.99), at(1.0)],
        span_error: span(first, last) / span(first_due, last_due) - 1.0,
    }
}

/// The median run and the worst one in each number, whether the median run reaches the goals, and how many runs do by themselves.
fn line(runs: &[Judged], requests: usize) -> String {
    let of = |pick: &dyn Fn(&Judged) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        (values[values.len() / 2], values[values.len() - 1])
    };
    let mut line = String::new();
    let mut reached = true;
    for number in 0..3 {
        let (median, worst) = of(&|run| run.drift[number].0 as f64);
        reached &= GOALS.get(number).is_none_or(|goal| median <= goal.0 as f64);
        line += &format!("{:>22}", format!("{} ({})", Nanos(median as u64), Nanos(worst as u64)));
    }
    let (median, worst) = of(&|run| run.span_error.abs() * 100.0);
    reached &= median < 0.005;
    let seen = runs.iter().map(|run| run.seen).min().unwrap_or(0);
    line += &format!("{:>24}  {seen} of {requests}", format!("{median:.4} % ({worst:.4} %)"));
    let well = |run: &&Judged| run.drift.iter().zip(&GOALS).all(|(drift, goal)| drift <= goal);
    let verdict = if reached { "goals reached" } else { "goals missed" };
    format!("{line}  {verdict}, {} of {} runs", runs.iter().filter(well).count(), runs.len())
}
