//! `idlewise trace synth`: a trace made up.

use clap::ValueEnum;
use idlewise::trace::synth::{Fleet, Load, LoadKind, PUBLISHED, Shape};
use idlewise::{Bytes, Nanos};

use super::convert::Parts;
use crate::exit::{Exit, UsageError};
use crate::input::{DiskArguments, list};
use crate::progress::Progress;
use crate::trace_file::{OutArguments, targets_help};

/// Make a synthetic trace: like one of the papers' traces or loads, with given idle-time statistics, or of a fleet of volumes
#[derive(clap::Args)]
#[command(after_help = helps())]
pub struct Arguments {
    #[command(flatten)]
    out: OutArguments,

    /// Imitate a trace of the papers: one of the stand-ins listed below
    #[arg(long, value_name = "NAME", conflicts_with_all = ["load", "idle_mean", "fleet"])]
    like: Option<String>,

    /// A cloud's fleet of so many volumes, whose rates differ a thousandfold and change with the hour and the day of the week; together they
    /// have --requests, or 1,000 a volume, over the time of --for
    #[arg(long, value_name = "VOLUMES", conflicts_with_all = ["load", "idle_mean"])]
    fleet: Option<u32>,

    /// A client of the experiments in DSN 2012, section IV-B, on the disk of the model
    #[arg(long, value_name = "KIND", conflicts_with = "idle_mean")]
    load: Option<Kind>,

    /// Mean time that the client of --load thinks between requests, exponentially distributed
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    think: Nanos,

    /// How long the client of --load runs, or a fleet is recorded
    #[arg(long = "for", value_name = "TIME", default_value = "1h")]
    time: Nanos,

    #[command(flatten)]
    disk: DiskArguments,

    /// Mean length of the idle intervals
    #[arg(long, value_name = "TIME", required_unless_present_any = ["like", "load", "fleet"])]
    idle_mean: Option<Nanos>,

    /// Their coefficient of variation: 1 for exponential, more for long tails
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0)]
    idle_cov: f64,

    /// How much likelier a long interval is after a long one, as `idlewise idle` measures it
    #[arg(long, value_name = "NUMBER", default_value_t = 0.0, allow_negative_numbers = true)]
    burstiness: f64,

    /// Mean requests in a busy period
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0)]
    requests_per_busy: f64,

    /// Let all requests of a busy period arrive at once, instead of one while the previous one is served
    #[arg(long)]
    together: bool,

    /// Idle intervals are multiples of this timer tick, such as 15.625ms
    #[arg(long, value_name = "TIME", default_value = "0")]
    tick: Nanos,

    /// Mean service time of a request, exponentially distributed
    #[arg(long, value_name = "TIME", default_value = "5ms")]
    service: Nanos,

    /// Number of requests; with --like the number in the table is the default
    #[arg(long, value_name = "COUNT")]
    requests: Option<u64>,

    /// Size of each request
    #[arg(long, value_name = "SIZE", default_value = "64KiB")]
    request_size: Bytes,

    /// Share of the requests that read
    #[arg(long, value_name = "SHARE", default_value_t = 0.7)]
    read_share: f64,

    /// Share of sequential requests: they start where the previous one ended, and read or write as it did
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    sequential: f64,

    /// Mean number of successive sequential runs that all read or all write
    #[arg(long, value_name = "NUMBER", default_value_t = 1.0)]
    phase: f64,

    /// Size of the disk
    #[arg(long, value_name = "SIZE", default_value = "300GB")]
    capacity: Bytes,

    /// Seed; the same seed gives the same trace
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object instead of a line
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// 64KiB anywhere
    Random,
    /// Chunks of 8MiB, 64KiB at a time
    Sequential,
}

fn helps() -> String {
    let published = list("Stand-ins for --like", PUBLISHED.iter().map(|row| (row.name, row.about)));
    format!("{published}\n\n{}", targets_help())
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let target = arguments.out.target()?;
    let mut parts = Parts::new(arguments.out.out.clone(), target, &[]);
    if let Some(volumes) = arguments.fleet {
        let requests = arguments.requests.unwrap_or(1000 * u64::from(volumes));
        let fleet = Fleet { volumes, requests, span: arguments.time };
        let batches = fleet.batches(arguments.seed).map_err(|error| UsageError(error.to_string()))?;
        let (progress, mut written) = (Progress::new("writing"), 0);
        for batch in batches {
            parts.write(arguments.out.out.clone(), &batch, &Fleet::provenance())?;
            written += batch.len();
            progress.share(written as f64 / requests as f64);
        }
        drop(progress);
        return parts.finish()?.report(arguments.json);
    }
    let trace = match (&arguments.like, arguments.load) {
        (Some(name), _) => {
            let names = || PUBLISHED.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
            let published = PUBLISHED.iter().find(|row| row.name == name);
            let published = published.ok_or_else(|| UsageError(format!("--like {name}: it takes {}", names())))?;
            let shape = published.shape();
            Shape { requests: arguments.requests.unwrap_or(shape.requests), ..shape }.trace(arguments.seed)
        }
        (None, Some(kind)) => {
            let kind = match kind {
                Kind::Random => LoadKind::Random,
                Kind::Sequential => LoadKind::Sequential,
            };
            let Arguments { think, time, capacity, .. } = *arguments;
            Load { kind, think, time, capacity }.trace(&arguments.disk.model()?, arguments.seed)
        }
        (None, None) => arguments.shape()?.trace(arguments.seed),
    };
    let trace = trace.map_err(|error| UsageError(error.to_string()))?;
    parts.write(arguments.out.out.clone(), &trace.columns, &trace.provenance)?;
    parts.finish()?.report(arguments.json)
}

impl Arguments {
    fn shape(&self) -> anyhow::Result<Shape> {
        let length = u32::try_from(self.request_size.0).ok();
        Ok(Shape {
            requests: self.requests.unwrap_or(100_000),
            idle_mean: self.idle_mean.unwrap_or_default(),
            idle_cov: self.idle_cov,
            among: Default::default(),
            files: Default::default(),
            burstiness: self.burstiness,
            requests_per_busy: self.requests_per_busy,
            together: self.together,
            tick: self.tick,
            service: self.service,
            read_share: self.read_share,
            sequential: self.sequential,
            phase: self.phase,
            length: length.ok_or_else(|| UsageError("--request-size: less than 4 GiB".into()))?,
            capacity: self.capacity,
        })
    }
}
