//! `idlewise reliability`: what a scrub that takes so long buys.

use idlewise::order::{Order, Surface};
use idlewise::reliability::monte_carlo::{Detection, mttdl as played_out};
use idlewise::reliability::{Bursts, Errors, mlet, with_dirty_parity};
use idlewise::report::Table;
use idlewise::{Bytes, Nanos};
use serde::Serialize;

use crate::exit::{Exit, UsageError};
use crate::output;

/// Show how long data live, and how long errors stay unseen, with scrubs that take so long, with intra-disk parity, and with both
///
/// Mean times to data loss are those of DSN 2008, equations 1 to 4, for data in two copies; the defaults are its table 1. Mean
/// latent error times are of bursts of errors, which a staggered scan finds sooner.
#[derive(clap::Args)]
pub struct Arguments {
    /// How long one pass over the disk takes, such as `scrub` and `tune` tell
    #[arg(long, value_name = "TIME")]
    scan_time: Nanos,

    /// Mean time between visible errors, such as failed disks
    #[arg(long, value_name = "TIME", default_value = "120000h")]
    visible: Nanos,

    /// Mean time between latent errors
    #[arg(long, value_name = "TIME", default_value = "84972h")]
    latent: Nanos,

    /// Mean time to recover from a visible error
    #[arg(long, value_name = "TIME", default_value = "1.4h")]
    recovery: Nanos,

    /// Mean time to recover from a latent error once it is detected
    #[arg(long, value_name = "TIME", default_value = "0s")]
    latent_recovery: Nanos,

    /// How much more apart errors are in time than alone, at most 1
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    temporal: f64,

    /// How likely a second error hits what the first has left: visible after visible, latent after visible, visible after latent,
    /// latent after latent
    #[arg(long, value_name = "SHARES", value_delimiter = ',', default_values_t = [1.0, 1.0, 1.0, 0.0])]
    spatial: Vec<f64>,

    /// By how much intra-disk parity makes latent errors rarer
    #[arg(long, value_name = "FACTOR", default_value_t = 48.0)]
    parity_factor: f64,

    /// Share of the disk whose parity is not up to date
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    dirty: f64,

    /// Size of the disk, for the mean latent error times
    #[arg(long, value_name = "SIZE", default_value = "40GB")]
    capacity: Bytes,

    /// Bytes that a staggered scan visits in a region before the next one
    #[arg(long, value_name = "SIZE", default_value = "1MiB")]
    visit: Bytes,

    /// Mean number of errors in a burst
    #[arg(long, value_name = "COUNT", default_value_t = 4.0)]
    burst_errors: f64,

    /// Mean distance from one error of a burst to the next
    #[arg(long, value_name = "SIZE", default_value = "10MiB")]
    burst_distance: Bytes,

    /// Also play the model out error by error, so many times
    #[arg(long, value_name = "CYCLES")]
    monte_carlo: Option<u32>,

    /// Seed of what is drawn
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Regions of the staggered scans that are compared.
const REGIONS: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/// Bursts drawn for each.
const BURSTS: u32 = 20_000;
/// Logical block of the disk.
const BLOCK: u32 = 512;

/// The fields of `reliability --json`.
#[derive(Serialize)]
struct Reliability {
    scan_s: f64,
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
    /// In sequential order.
    mlet_s: f64,
    mlet_staggered: Vec<Staggered>,
    #[serde(skip_serializing_if = "Option::is_none")]
    played_out: Option<PlayedOut>,
}

#[derive(Clone, Copy, Serialize)]
struct Staggered {
    regions: u64,
    mlet_s: f64,
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
    let found = arguments.check()?.compute(arguments);
    if arguments.json {
        output::json(&found)?;
    } else {
        output::text(&found.text(arguments))?;
    }
    Ok(Exit::Clean)
}

impl Arguments {
    /// The model's parameters, if they mean something.
    fn check(&self) -> Result<Model, UsageError> {
        let usage = |text: &str| UsageError(text.into());
        let share = |share: f64| (0.0..=1.0).contains(&share);
        let times = [self.scan_time, self.visible, self.latent, self.recovery];
        if times.contains(&Nanos::ZERO) {
            return Err(usage("--scan-time, --visible, --latent and --recovery must be above zero"));
        }
        let positive = |share: f64| share > 0.0 && share <= 1.0;
        if !(positive(self.temporal) && self.spatial.iter().copied().all(share)) {
            return Err(usage("--temporal must be above 0 and at most 1, each of --spatial from 0 to 1"));
        }
        let at_least_1 = |factor: f64| (1.0..f64::INFINITY).contains(&factor);
        if !(share(self.dirty) && at_least_1(self.parity_factor) && at_least_1(self.burst_errors)) {
            return Err(usage("--dirty must be from 0 to 1, --parity-factor and --burst-errors at least 1"));
        }
        if self.visit.0 < u64::from(BLOCK)
            || self.capacity.0 < self.visit.0
            || self.monte_carlo.is_some_and(|count| count < 2)
        {
            return Err(usage("--visit must be at least 512B and at most --capacity, --monte-carlo at least 2"));
        }
        let [vv, lv, vl, ll] = self.spatial[..] else { return Err(usage("--spatial takes four shares")) };
        Ok(Model(Errors {
            visible_s: self.visible.as_secs_f64(),
            latent_s: self.latent.as_secs_f64(),
            visible_recovery_s: self.recovery.as_secs_f64(),
            latent_recovery_s: self.latent_recovery.as_secs_f64(),
            temporal: self.temporal,
            spatial: [vv, lv, vl, ll],
        }))
    }
}

struct Model(Errors);

impl Model {
    fn compute(&self, arguments: &Arguments) -> Reliability {
        let scan_s = arguments.scan_time.as_secs_f64();
        let (errors, rarer) = (self.0, self.0.with_parity(arguments.parity_factor));
        let detection = scan_s / 2.0;
        let none = errors.mttdl();
        let scrub = errors.mttdl_scrubbed(detection);
        let parity = with_dirty_parity(none, rarer.mttdl(), arguments.dirty);
        // The paper's: its k stays as it is.
        let both = with_dirty_parity(scrub, rarer.equation_2(detection, errors.k()), arguments.dirty);
        let kept = with_dirty_parity(scrub, rarer.mttdl_scrubbed(detection), arguments.dirty);
        let block = u64::from(BLOCK);
        let surface = Surface { size: Bytes(arguments.capacity.0 / block * block), block: BLOCK };
        let visit = Bytes(arguments.visit.0 / block * block);
        let bursts = Bursts { errors: arguments.burst_errors, distance: arguments.burst_distance };
        let latent = |order: &Order| mlet(order, surface, &bursts, BURSTS, arguments.seed) * scan_s;
        let staggered = |&regions: &u64| Staggered { regions, mlet_s: latent(&Order::staggered(regions, visit)) };
        Reliability {
            scan_s,
            mttdl_none_s: none,
            mttdl_scrub_s: scrub,
            mttdl_parity_s: parity,
            mttdl_both_s: both,
            gain_scrub: scrub / none,
            gain_parity: parity / none,
            gain_both: both / none,
            mttdl_both_visible_kept_s: kept,
            gain_both_visible_kept: kept / none,
            mlet_s: latent(&Order::SEQUENTIAL),
            mlet_staggered: REGIONS.iter().map(staggered).collect(),
            played_out: arguments.monte_carlo.map(|cycles| {
                let estimate = played_out(&errors, Detection::Scrub(scan_s), cycles, arguments.seed);
                let (mttdl_scrub_s, margin_s) = (estimate.mean_s, estimate.margin_s);
                PlayedOut { mttdl_scrub_s, margin_s, cycles, seed: arguments.seed }
            }),
        }
    }
}

impl Reliability {
    fn text(&self, arguments: &Arguments) -> String {
        let mut loss = Table::new(["", "mean time to data loss", "gain"]);
        let mut row = |name: &str, mttdl: f64, gain: f64| loss.row([name.into(), years(mttdl), short(gain)]);
        row("neither", self.mttdl_none_s, 1.0);
        row("scrubs", self.mttdl_scrub_s, self.gain_scrub);
        row("parity", self.mttdl_parity_s, self.gain_parity);
        row("both, by the paper's equations", self.mttdl_both_s, self.gain_both);
        row("both, visible errors no rarer", self.mttdl_both_visible_kept_s, self.gain_both_visible_kept);
        let mut unseen = Table::new(["order", "regions", "mean latent error time", "of sequential"]);
        unseen.row(["sequential".into(), "-".into(), seconds(self.mlet_s), "100 %".into()]);
        for one in &self.mlet_staggered {
            let share = format!("{:.0} %", one.mlet_s / self.mlet_s * 100.0);
            unseen.row(["staggered".into(), one.regions.to_string(), seconds(one.mlet_s), share]);
        }
        let best = self.mlet_staggered.iter().min_by(|a, b| a.mlet_s.total_cmp(&b.mlet_s));
        let best = best.map_or(String::new(), |best| {
            format!(
                "Errors are found soonest with {} regions, in bursts of {} errors {} apart on average.\n",
                best.regions, arguments.burst_errors, arguments.burst_distance
            )
        });
        let played = self.played_out.as_ref().map_or(String::new(), |played| {
            format!(
                "\nPlayed out {} times (seed {}): with scrubs {}, more or less {}.\n",
                played.cycles,
                played.seed,
                years(played.mttdl_scrub_s),
                years(played.margin_s)
            )
        });
        let scan = arguments.scan_time;
        format!(
            "One pass in {scan}; {} of it without valid parity.\n\n{loss}{played}\n{unseen}\n{best}",
            percent(arguments.dirty)
        )
    }
}

fn years(seconds: f64) -> String {
    const YEAR: f64 = 365.25 * 86_400.0;
    format!("{} years", short(seconds / YEAR))
}

/// Three digits, and a power of ten where there are many.
fn short(value: f64) -> String {
    if value >= 1e5 { format!("{value:.2e}") } else { format!("{value:.1}") }
}

fn seconds(value: f64) -> String {
    Nanos((value * 1e9) as u64).to_string()
}

fn percent(share: f64) -> String {
    format!("{:.3} %", share * 100.0)
}
