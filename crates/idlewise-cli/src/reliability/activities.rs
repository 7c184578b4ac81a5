//! Passes and updates in the idle times of a trace: the arguments, and what was simulated.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use idlewise::disk::SMALLEST_REQUEST;
use idlewise::idle::{Idleness, Keep};
use idlewise::policy::restrained::Amount;
use idlewise::policy::{RELATIVE_DELAY, REQUEST_SIZE, Setting};
use idlewise::reliability::{Activities, Activity, Policies, Protection, Study, Updates};
use idlewise::report::percent;
use idlewise::simulate::{Service, WriteVerification};
use idlewise::{Bytes, Cdh, Nanos};
use serde::Serialize;

use crate::exit::UsageError;
use crate::input::{DiskArguments, ReadArguments, Source};
use crate::parity::ParityArguments;
use crate::policy::PolicyArguments;
use crate::progress::Progress;
use crate::work::writes;

/// The paper's: a relative delay of 7 %.
const ALLOWED: f64 = 0.07;

/// A trace, and what runs in its idle times.
#[derive(Args)]
pub struct TraceArguments {
    /// Block I/O trace: files that are one trace together, a folder, a tar archive, or - for standard input. Each volume is a
    /// disk of its own
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,

    #[command(flatten)]
    read: ReadArguments,

    #[command(flatten)]
    disk: DiskArguments,

    #[command(flatten)]
    policy: PolicyArguments,

    /// Another policy for the parity updates, with the same options. When both run, the scrub may use what the updates leave of
    /// the allowed delay
    #[arg(long, value_name = "NAME", help_heading = "Parity updates")]
    parity_policy: Option<String>,

    /// Mean service time of a scrub request, exponentially distributed. By default the disk model gives it
    #[arg(long, value_name = "TIME")]
    service_time: Option<Nanos>,

    #[command(flatten)]
    parity: ParityArguments,

    /// Treat this share of the requests, drawn at random, as writes, whatever the trace says
    #[arg(long, value_name = "SHARE")]
    write_share: Option<f64>,

    /// Number of passes to simulate; the trace is repeated as often as needed
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    passes: u64,
}

/// What was simulated, as in `--json`.
#[derive(Serialize)]
pub struct Simulated {
    #[serde(flatten)]
    pub source: Source,
    pub policy: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parity_policy: Option<String>,
    pub parameters: BTreeMap<&'static str, String>,
    pub capacity_bytes: u64,
    /// The scrub alone.
    pub scrub: Row,
    /// Updates of parity alone.
    pub parity: Row,
    /// Both at once, the updates first.
    pub both: Row,
    /// What to be careful about.
    pub notes: Vec<String>,
    /// Alone, and where both run.
    #[serde(skip)]
    pub protections: (Protection, Protection),
    #[serde(skip)]
    pub disks: usize,
    #[serde(skip)]
    pub about: String,
}

/// Shares of WRITEs without an update, and of the delay above what is allowed, from which on they are noted.
const BEHIND: f64 = 0.01;
const ABOVE: f64 = 0.02;
/// Updates that take this share of the time that they take alone are sooner.
const SOONER: f64 = 0.8;

/// One of the three.
#[derive(Serialize)]
pub struct Row {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan: Option<Scan>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<Update>,
    pub mean_slowdown_s: f64,
    pub max_slowdown_s: f64,
    pub relative_delay: f64,
    /// Foreground and background together.
    pub utilisation: f64,
    /// How often the trace was run through.
    pub times: u64,
}

/// Passes of the scrub.
#[derive(Serialize)]
pub struct Scan {
    pub completed: u64,
    pub mean_s: f64,
    pub p50_s: f64,
    pub p90_s: f64,
    pub p99_s: f64,
    /// Whether no pass ended and the mean is the capacity over the rate.
    pub extrapolated: bool,
    #[serde(skip)]
    pub times: Cdh,
}

/// Updates of parity.
#[derive(Serialize)]
pub struct Update {
    pub writes: u64,
    /// Nothing where none was updated.
    pub mean_s: Option<f64>,
    pub p50_s: f64,
    pub p90_s: f64,
    pub p99_s: f64,
    /// WRITEs whose segment was updated.
    pub completed_share: f64,
    /// Updates, in shares of WRITEs.
    pub completed_ratio: f64,
    /// Shares of the updates for which one WRITE, two, and so on had made their segment dirty.
    pub writes_before_update: Vec<f64>,
    /// Share of the disk whose parity is dirty.
    pub dirty: f64,
    #[serde(skip)]
    pub times: Cdh,
}

/// Simulates the scrub, the updates, and both on the trace.
pub fn simulated(arguments: &TraceArguments, capacity: Bytes) -> anyhow::Result<Simulated> {
    arguments.parity.check()?;
    if arguments.parity.segment() > capacity {
        return Err(UsageError("--segment must be at most --capacity".into()).into());
    }
    if arguments.passes == 0 || arguments.service_time == Some(Nanos::ZERO) {
        return Err(UsageError("--passes and --service-time must be above zero".into()).into());
    }
    let (scrub, other) = arguments.policy.chosen_pair("monitoring", arguments.parity_policy.as_deref(), ALLOWED)?;
    let keep = Keep { writes: writes(arguments.write_share)?, ..Keep::default() };
    let input = arguments.read.idleness_keeping(&arguments.traces, arguments.disk.model()?, keep)?;
    let size = arguments.policy.parameters().size(REQUEST_SIZE).unwrap_or(SMALLEST_REQUEST);
    let activities = Activities {
        capacity,
        scrub: arguments.service_time.map_or_else(|| Service::OfSize(input.model.clone()), Service::exponential),
        updates: arguments.parity.updates(),
        segment: arguments.parity.segment(),
    };
    let model = &input.model;
    let for_scrub = |disk: &Idleness, share: f64| {
        let setting = Setting { past: disk, model, service: arguments.service_time, amount: Amount::Infinite };
        scrub.scaled(share).build(&setting)
    };
    let for_parity = |disk: &Idleness| {
        let amount = WriteVerification::amount(disk, arguments.parity.update(), None);
        let setting = Setting { past: disk, model, service: Some(arguments.parity.decided_on()), amount };
        other.as_ref().unwrap_or(&scrub).build(&setting)
    };
    let policies = Policies { scrub: &for_scrub, parity: &for_parity, shared: other.is_none() };
    let progress = RefCell::new((Progress::new("scrubbing"), "scrubbing"));
    let study = activities.study(&input.disks, arguments.passes, &policies, &|stage, done| {
        let mut progress = progress.borrow_mut();
        if progress.1 != stage {
            *progress = (Progress::new(stage), stage);
        }
        progress.0.share(done);
    });
    drop(progress);
    if let Some(never) = study.scrub.passes.as_ref().and_then(|passes| passes.never.first()) {
        anyhow::bail!(
            "{}: {} verifies nothing in the idle times of {never}: allow it to delay more, take another policy, or look at one \
             --volume",
            input.source.trace,
            scrub.name()
        );
    }
    let about = format!(
        "a scrub of {} in requests of {size}{}; {}",
        capacity.decimal(),
        arguments.service_time.map(|mean| format!(", {mean} each on average")).unwrap_or_default(),
        arguments.parity.line()
    );
    Ok(Simulated {
        notes: notes(arguments, &study),
        protections: study.protections(),
        disks: input.disks.len(),
        policy: scrub.name().into(),
        parity_policy: arguments.parity_policy.clone(),
        parameters: arguments.policy.given(),
        capacity_bytes: capacity.0,
        scrub: Row::new(&study.scrub),
        parity: Row::new(&study.parity),
        both: Row::new(&study.both),
        about,
        source: input.source,
    })
}

fn notes(arguments: &TraceArguments, study: &Study) -> Vec<String> {
    let mut notes = Vec::new();
    let ended = study.scrub.passes.as_ref().map_or(0, |passes| passes.times.count());
    if ended < arguments.passes {
        notes.push(format!(
            "only {ended} of {} passes were simulated: the trace is short for so long a pass",
            arguments.passes
        ));
    }
    let rows = [("the scrub", &study.scrub), ("parity", &study.parity), ("both at once", &study.both)];
    let mean = |activity: &Activity| activity.updates.as_ref().and_then(Updates::mean_s);
    if let (Some(alone), Some(beside)) = (mean(&study.parity), mean(&study.both))
        && beside < alone * SOONER
    {
        notes.push(
            "updates are sooner beside the scrub, whose policy waits less: alone it waits for as long as their work allows, and delays \
             less"
                .into(),
        );
    }
    let allowed = arguments.policy.parameters().number(RELATIVE_DELAY).unwrap_or(ALLOWED);
    for (name, activity) in rows {
        if let Some(updates) = &activity.updates {
            let behind = 1.0 - updates.writes.completed as f64 / updates.writes.came.max(1) as f64;
            if updates.writes.came > 0 && behind > BEHIND {
                notes.push(format!(
                    "{name}: {} of the WRITEs were never updated; they wait longer the longer this goes on",
                    percent(behind)
                ));
            }
        }
        if name == "both at once" && activity.passes.as_ref().is_some_and(|passes| passes.mean_s.is_infinite()) {
            notes.push("both at once: the updates, which go first, leave the scrub no time".into());
        }
        let delay = activity.run.relative_delay();
        if arguments.policy.takes_relative_delay("monitoring") && delay > allowed * (1.0 + ABOVE) {
            notes.push(format!(
                "{name}: the relative delay is {}, above the {} allowed",
                percent(delay),
                percent(allowed)
            ));
        }
    }
    notes
}

impl TraceArguments {
    /// The files that are read.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.traces.iter().cloned().chain(self.disk.path()).chain(self.policy.plan_path()).collect()
    }

    /// An error if something is said that needs a trace.
    pub fn refuse_without_trace(&self) -> Result<(), UsageError> {
        let said = !self.policy.given().is_empty()
            || self.policy.named()
            || self.parity.given()
            || self.parity_policy.is_some()
            || self.service_time.is_some()
            || self.write_share.is_some();
        if said { Err(UsageError("policies and their work need a TRACE, not --scan-time".into())) } else { Ok(()) }
    }
}

impl Simulated {
    /// Mean time from a WRITE to the update of its parity where nothing else runs.
    pub fn parity_update_s(&self) -> Option<f64> {
        self.parity.update.as_ref()?.mean_s
    }
}

impl Row {
    fn new(activity: &Activity) -> Self {
        let (run, quantile) = (&activity.run, |times: &Cdh, share| times.quantile(share).as_secs_f64());
        Self {
            scan: activity.passes.as_ref().map(|passes| Scan {
                completed: passes.times.count(),
                mean_s: passes.mean_s,
                p50_s: quantile(&passes.times, 0.5),
                p90_s: quantile(&passes.times, 0.9),
                p99_s: quantile(&passes.times, 0.99),
                extrapolated: passes.times.count() == 0,
                times: passes.times.clone(),
            }),
            update: activity.updates.as_ref().map(|updates| Update {
                writes: updates.writes.came,
                mean_s: updates.mean_s(),
                p50_s: quantile(&updates.times, 0.5),
                p90_s: quantile(&updates.times, 0.9),
                p99_s: quantile(&updates.times, 0.99),
                completed_share: updates.writes.completed as f64 / updates.writes.came.max(1) as f64,
                completed_ratio: updates.completed_ratio(),
                writes_before_update: updates.shares(),
                dirty: updates.dirty,
                times: updates.times.clone(),
            }),
            mean_slowdown_s: run.outcome.delay_sum.as_secs_f64() / run.foreground.requests.max(1) as f64,
            max_slowdown_s: run.outcome.longest_delay.as_secs_f64(),
            relative_delay: run.relative_delay(),
            utilisation: run.utilisation(),
            times: activity.times,
        }
    }
}
