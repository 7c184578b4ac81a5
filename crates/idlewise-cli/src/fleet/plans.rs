//! `idlewise fleet plans`: what the table of a fleet says, as the part of `idlewise.toml` for one machine.

use std::path::PathBuf;

use anyhow::bail;
use idlewise::report::FleetVolume;
use idlewise::report::printable::{is_harmful, one_line};
use idlewise::{Nanos, Rate};

use super::Report;
use crate::exit::{Exit, UsageError};
use crate::output;

const DAY_S: f64 = 86_400.0;
/// A pass that takes as long is none: 100 years.
const LONGEST_S: f64 = 36_525.0 * DAY_S;
/// A pass may take so much longer than on the trace before it is late.
const SLACK: f64 = 2.0;

/// Print the part of idlewise.toml for the volumes of one machine, from the table of a fleet
///
/// Each volume gets a section with the slowdowns and a time between passes that is at least twice what a pass takes by its plan, in whole
/// days. A volume without a plan is said in a comment, and gets no section.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folder of `idlewise fleet --out`, or its fleet.json
    #[arg(value_name = "TABLE")]
    table: PathBuf,

    /// Volumes whose name begins with this, such as hm_ or a host's name [default: all]
    #[arg(long, value_name = "PREFIX", default_value = "")]
    host: String,

    /// How the machine calls a volume: the path that idlewise.toml matches, with {volume} for its name, such as
    /// '/dev/disk/by-id/virtio-{volume}'
    #[arg(long, value_name = "PATTERN")]
    path: String,

    /// Mean slowdown of each section
    #[arg(long, value_name = "TIME")]
    mean_slowdown: Nanos,

    /// Longest slowdown of each section
    #[arg(long, value_name = "TIME")]
    max_slowdown: Nanos,

    /// A pass is to begin no more often than this
    #[arg(long, value_name = "TIME", default_value = "14d")]
    verify_every: Nanos,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    if !arguments.path.contains("{volume}") {
        return Err(UsageError("--path must hold {volume}: else all sections would match the same disk".into()).into());
    }
    let report = Report::read(&arguments.table)?;
    let own: Vec<_> = report.rows.iter().filter(|one| one.volume.starts_with(&arguments.host)).collect();
    if own.is_empty() {
        bail!("{}: no volume begins with '{}'", arguments.table.display(), arguments.host);
    }
    output::text(&own.into_iter().map(|one| arguments.section(one)).collect::<String>())?;
    Ok(Exit::Clean)
}

impl Arguments {
    fn section(&self, volume: &FleetVolume) -> String {
        let name = one_line(&volume.volume);
        let none = |why: &str| format!("# {name}: no plan: {}\n\n", one_line(why));
        let Some(pass_s) = volume.full_pass_s else {
            return none(volume.error.as_deref().unwrap_or("its plan scrubs nothing"));
        };
        if !(0.0..LONGEST_S).contains(&pass_s) {
            return none("a pass would take more than 100 years");
        }
        if volume.volume.contains(|c: char| matches!(c, '*' | '?') || is_harmful(c)) {
            return none("its name holds '*', '?' or what cannot be shown, so that a section could match other disks");
        }
        let days = (SLACK * pass_s / DAY_S).ceil().max((self.verify_every.as_secs_f64() / DAY_S).ceil()) as u64;
        let rate = Rate(volume.throughput_bytes_per_s.unwrap_or(0.0) as u64);
        let pass = Nanos((pass_s * 1e9) as u64);
        let quoted = |text: &str| serde_json::to_string(text).expect("text can be written");
        format!(
            "# {name}: {rate} by its plan, a pass takes {pass}\n[[disk]]\nmatch = {}\nmean_slowdown = \"{}\"\nmax_slowdown = \"{}\"\nverify_every = \"{days}d\"\n\n",
            quoted(&self.path.replace("{volume}", &volume.volume)),
            self.mean_slowdown,
            self.max_slowdown,
        )
    }
}
