//! `idlewise fleet`: idle times and plans of many volumes, by the Python package, and what of that is for one machine.

mod package;
mod plans;
mod text;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use idlewise::report::{FleetVolume, fleet_page};
use idlewise::trace::{Found, open_found};
use idlewise::{Bytes, Nanos};
use idlewise_linux::half_of_free_memory;
use serde::{Deserialize, Serialize};

use crate::exit::{Exit, UsageError};
use crate::input::DiskArguments;
use crate::output;

/// Make a table of a whole fleet: idle statistics and a plan for each volume
///
/// The files may hold any volumes at any time, but no two files the same time of one volume. What was done lies in the folder --out:
/// fleet.json, fleet.parquet and the page fleet.html, and the parts that each file was reduced to, so that a job that was stopped
/// goes on, and another goal is tuned without reading again. The work is done by the Python package `idlewise` of the same version
/// (pip install idlewise), on the cores of this machine, or on a cluster with --engine.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    #[command(subcommand)]
    plans: Option<Plans>,

    /// Files of traces, patterns such as 'traces/*.csv.gz', or URLs such as 's3://traces/*.csv' (with the packages fsspec and s3fs)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<String>,

    /// Folder of the results, which all workers must see
    #[arg(long, value_name = "DIR", required = true)]
    out: Option<PathBuf>,

    /// Mean added response time that the foreground requests of each volume may suffer, such as 1ms
    #[arg(long, value_name = "TIME", required_unless_present = "finish_within", requires = "max_slowdown")]
    mean_slowdown: Option<Nanos>,

    /// Longest added response time that any of them may suffer, such as 50ms
    #[arg(long, value_name = "TIME")]
    max_slowdown: Option<Nanos>,

    /// For each volume, choose the gentlest schedule whose pass over --capacity takes at most this long, such as 14d
    #[arg(long, value_name = "TIME", conflicts_with = "mean_slowdown")]
    finish_within: Option<Nanos>,

    /// Size of each volume, from which the time of a pass is computed
    #[arg(long, value_name = "SIZE", default_value = "10TB")]
    capacity: Bytes,

    /// Time within which a pass over a volume is to be over, for the summary and the page
    #[arg(long, value_name = "TIME", default_value = "14d")]
    within: Nanos,

    /// What runs the work: `dask` for Dask within the Python process, the address of a Dask scheduler such as tcp://10.0.0.1:8786, or
    /// `spark`. Protect your scheduler: anyone who can connect to it can run any code on its workers [default: the cores of this machine]
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,

    /// Processes on this machine [default: its cores]
    #[arg(long, value_name = "COUNT", conflicts_with = "engine")]
    workers: Option<std::num::NonZeroU32>,

    /// Leave out files that cannot be read, and tell them, instead of ending at the first one
    #[arg(long)]
    skip_bad_files: bool,

    #[command(flatten)]
    disk: DiskArguments,

    /// Print one JSON object instead of a summary
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Plans {
    Plans(plans::Arguments),
}

/// What `fleet.json` in the folder holds, and `--json` prints.
#[derive(Serialize, Deserialize)]
struct Report {
    /// The volumes, by name.
    rows: Vec<FleetVolume>,
    /// Files that were left out, and why.
    errors: BTreeMap<String, String>,
}

impl Report {
    /// Reads the table of a folder, or of the file itself.
    fn read(path: &Path) -> anyhow::Result<Self> {
        let is_folder = path.is_dir();
        let file = if is_folder { path.join("fleet.json") } else { path.to_path_buf() };
        let name = || file.display().to_string();
        // Nobody has named the one in a folder.
        let opened = match is_folder {
            true => open_found(&Found { path: file.clone(), folder: path.to_path_buf() }),
            false => File::open(&file).map(Some),
        };
        let opened = opened.with_context(name)?;
        let opened = opened.with_context(|| format!("{}: is missing, empty or behind another user's link", name()))?;
        // It takes more memory than bytes of a file.
        let most = half_of_free_memory().map_or(u64::MAX, |memory| memory.0 / 4);
        let too_large = || format!("{}: is larger than {}, an eighth of the memory that is free", name(), Bytes(most));
        ensure!(opened.metadata().with_context(name)?.len() <= most, too_large());
        let mut text = Vec::new();
        // It may grow meanwhile.
        opened.take(most).read_to_end(&mut text).with_context(name)?;
        // A volume takes as much in memory, however little is said of it; a list that grows is there twice. Any other item is a text or two.
        const OF_ITEM: u64 = 160;
        let count = |sign: u8| text.iter().filter(|letter| **letter == sign).count() as u64;
        let (volumes, items) = (count(b'{'), count(b','));
        let takes = volumes * 2 * size_of::<FleetVolume>() as u64 + items * OF_ITEM;
        let too_many =
            || format!("{}: has {items} items, which take more than half of the memory that is free", name());
        ensure!(takes <= most.saturating_mul(4), too_many());
        serde_json::from_slice(&text).with_context(|| format!("{}: no table of a fleet", name()))
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(Plans::Plans(arguments)) = &arguments.plans {
        return plans::run(arguments);
    }
    if arguments.capacity == Bytes(0) {
        return Err(UsageError("--capacity must be above zero".into()).into());
    }
    let out = arguments.out.as_deref().expect("clap requires it");
    package::analyze(&arguments.job(out)?)?;
    let report = Report::read(out)?;
    let page = out.join("fleet.html");
    output::file(&page, &fleet_page(&report.rows, &report.errors, arguments.within).html())?;
    if arguments.json {
        output::json(&report)?;
    } else {
        output::text(&text::text(&report, arguments.within, out))?;
    }
    Ok(if report.rows.is_empty() { Exit::NothingToDo } else { Exit::Clean })
}

impl Arguments {
    fn job(&self, out: &Path) -> anyhow::Result<package::Job> {
        let nanos = |time: Option<Nanos>| time.map(|time| time.0);
        Ok(package::Job {
            version: env!("CARGO_PKG_VERSION"),
            paths: self.files.clone(),
            out: out.to_path_buf(),
            mean_slowdown: nanos(self.mean_slowdown),
            max_slowdown: nanos(self.max_slowdown),
            finish_within: nanos(self.finish_within),
            capacity: self.capacity.0,
            disk: self.disk.model()?.to_toml(),
            engine: self.engine.clone(),
            workers: self.workers.map(std::num::NonZeroU32::get),
            skip_bad_files: self.skip_bad_files,
        })
    }
}
