//! `idlewise reliability`: what a scrub buys, of a given length or in the idle times of a trace.

mod activities;
mod model;
mod page;
mod text;

pub use text::years;

use std::path::PathBuf;

use idlewise::Nanos;
use idlewise::reliability::monte_carlo::{Detection, mttdl as played_out};
use idlewise::reliability::{Errors, Gains, Protection};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::output;
use crate::policy::policies_and_formats;

/// Estimate the mean time to data loss (MTTDL), and how long errors stay unseen, with scrubs, with intra-disk parity, and with both
///
/// With a TRACE, scrub passes and parity updates are simulated in its idle times: each alone, then both together, with the
/// updates first. The default policy is `monitoring` with a relative delay of 7 %. Without a TRACE, --scan-time states how long a pass takes.
///
/// The model is that of DSN 2008, equations 1 to 4: data in two copies, as in a mirror. Its table 1 gives the defaults, which are of
/// disks of 2008. `idlewise array` is about RAID and disks of today.
#[derive(clap::Args)]
#[command(after_help = policies_and_formats())]
pub struct Arguments {
    #[command(flatten)]
    trace: activities::TraceArguments,

    /// How long one pass over the disk takes, instead of a TRACE; `scrub` and `tune` print it
    #[arg(long, value_name = "TIME", conflicts_with = "traces", required_unless_present = "traces")]
    scan_time: Option<Nanos>,

    /// Share of the disk whose parity is not up to date, with --scan-time
    #[arg(long, value_name = "SHARE", conflicts_with = "traces")]
    dirty: Option<f64>,

    #[command(flatten)]
    model: model::ModelArguments,

    /// Also simulate the model error by error, this many times (Monte Carlo)
    #[arg(long, value_name = "CYCLES")]
    monte_carlo: Option<u32>,

    /// Seed of the random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Write an HTML page with charts
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,

    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// The fields of `reliability --json`.
#[derive(Serialize)]
struct Reliability {
    /// With a TRACE.
    #[serde(flatten)]
    simulated: Option<activities::Simulated>,
    scan_s: f64,
    /// Mean time from a WRITE to the update of its parity, with a TRACE.
    #[serde(skip_serializing_if = "Option::is_none")]
    parity_update_s: Option<f64>,
    mttdl_none_s: f64,
    mttdl_scrub_s: f64,
    mttdl_parity_s: f64,
    mttdl_both_s: f64,
    gain_scrub: f64,
    gain_parity: f64,
    gain_both: f64,
    /// With visible errors as frequent as without parity.
    mttdl_both_visible_kept_s: f64,
    gain_both_visible_kept: f64,
    /// Shares of the disk whose parity is dirty.
    dirty: f64,
    /// In sequential order.
    mlet_s: f64,
    mlet_staggered: Vec<model::Staggered>,
    #[serde(skip_serializing_if = "Option::is_none")]
    played_out: Option<PlayedOut>,
}

#[derive(Serialize)]
struct PlayedOut {
    mttdl_scrub_s: f64,
    margin_s: f64,
    cycles: u32,
    seed: u64,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    output::check_all(&arguments.trace.paths(), &[arguments.report.as_deref()])?;
    let errors = arguments.model.errors()?;
    if arguments.monte_carlo.is_some_and(|count| count < 2) {
        return Err(UsageError("--monte-carlo must be at least 2".into()).into());
    }
    let (simulated, alone, together) = match arguments.scan_time {
        Some(scan_time) => {
            let alone = arguments.given(scan_time)?;
            (None, alone, alone)
        }
        None => {
            let simulated = activities::simulated(&arguments.trace, arguments.model.capacity)?;
            let (alone, together) = simulated.protections;
            (Some(simulated), alone, together)
        }
    };
    let found = arguments.found(&errors, simulated, alone, together);
    if let Some(path) = &arguments.report {
        output::file(path, &page::page(&found, arguments).html())?;
    }
    if arguments.json {
        output::json(&found)?;
    } else {
        output::text(&text::text(&found, arguments))?;
    }
    Ok(Exit::Clean)
}

impl Arguments {
    /// A pass of this length, and the share that is dirty.
    fn given(&self, scan_time: Nanos) -> anyhow::Result<Protection> {
        let dirty = self.dirty.unwrap_or(0.0);
        if scan_time == Nanos::ZERO || !(0.0..=1.0).contains(&dirty) {
            return Err(UsageError("--scan-time must be above zero, --dirty from 0 to 1".into()).into());
        }
        self.trace.refuse_without_trace()?;
        Ok(Protection { scan_s: scan_time.as_secs_f64(), dirty })
    }

    fn found(
        &self,
        errors: &Errors,
        simulated: Option<activities::Simulated>,
        alone: Protection,
        together: Protection,
    ) -> Reliability {
        let gains = Gains::of(errors, self.model.parity_factor, alone, together);
        let unseen = self.model.unseen(alone.scan_s, self.seed);
        Reliability {
            parity_update_s: simulated.as_ref().and_then(activities::Simulated::parity_update_s),
            simulated,
            scan_s: alone.scan_s,
            mttdl_none_s: gains.none_s,
            mttdl_scrub_s: gains.scrub_s,
            mttdl_parity_s: gains.parity_s,
            mttdl_both_s: gains.both_s,
            gain_scrub: gains.scrub_s / gains.none_s,
            gain_parity: gains.parity_s / gains.none_s,
            gain_both: gains.both_s / gains.none_s,
            mttdl_both_visible_kept_s: gains.both_visible_kept_s,
            gain_both_visible_kept: gains.both_visible_kept_s / gains.none_s,
            dirty: alone.dirty,
            mlet_s: unseen.sequential_s,
            mlet_staggered: unseen.staggered,
            played_out: self.monte_carlo.map(|cycles| {
                let estimate = played_out(errors, Detection::Scrub(alone.scan_s), cycles, self.seed);
                let (mttdl_scrub_s, margin_s) = (estimate.mean_s, estimate.margin_s);
                PlayedOut { mttdl_scrub_s, margin_s, cycles, seed: self.seed }
            }),
        }
    }
}
