//! The arguments that say how errors come, and how long they take to find.

use clap::Args;
use idlewise::order::{Order, Surface};
use idlewise::reliability::{Bursts, Errors, mlet};
use idlewise::{Bytes, Nanos};
use serde::Serialize;

use crate::exit::UsageError;

/// Regions of the staggered scans that are compared.
const REGIONS: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
/// Bursts drawn for each, fewer where they are of many errors.
const BURSTS: f64 = 20_000.0;
const FEWEST_BURSTS: f64 = 500.0;
/// Logical block of the disk.
const BLOCK: u32 = 512;

/// The heading of these options.
const MODEL: &str = "Reliability model";

/// How errors come.
#[derive(Args)]
pub struct ModelArguments {
    /// Mean time between visible errors, such as disk failures
    #[arg(long, help_heading = MODEL, value_name = "TIME", default_value = "120000h")]
    visible: Nanos,

    /// Mean time between latent errors
    #[arg(long, help_heading = MODEL, value_name = "TIME", default_value = "84972h")]
    latent: Nanos,

    /// Mean time to recover from a visible error
    #[arg(long, help_heading = MODEL, value_name = "TIME", default_value = "1.4h")]
    recovery: Nanos,

    /// Mean time to recover from a latent error once it is detected
    #[arg(long, help_heading = MODEL, value_name = "TIME", default_value = "0s")]
    latent_recovery: Nanos,

    /// Temporal correlation: how much sooner an error follows another one, at most 1 (no correlation)
    #[arg(long, help_heading = MODEL, value_name = "FACTOR", default_value_t = 1.0)]
    temporal: f64,

    /// Spatial correlation: how likely a second error hits the data whose other copy is lost, for visible after visible, latent after
    /// visible, visible after latent and latent after latent errors
    #[arg(long, help_heading = MODEL, value_name = "SHARES", value_delimiter = ',', default_value = "1,1,1,0")]
    spatial: Vec<f64>,

    /// Factor by which intra-disk parity makes latent errors rarer
    #[arg(long, help_heading = MODEL, value_name = "FACTOR", default_value_t = 48.0)]
    pub parity_factor: f64,

    /// Size of each disk
    #[arg(long, help_heading = MODEL, value_name = "SIZE", default_value = "40GB")]
    pub capacity: Bytes,

    /// How much of a region a staggered scan visits before it goes to the next one
    #[arg(long, help_heading = MODEL, value_name = "SIZE", default_value = "1MiB")]
    visit: Bytes,

    /// Mean number of errors in a burst
    #[arg(long, help_heading = MODEL, value_name = "COUNT", default_value_t = 4.0)]
    pub burst_errors: f64,

    /// Mean distance from one error of a burst to the next
    #[arg(long, help_heading = MODEL, value_name = "SIZE", default_value = "10MiB")]
    pub burst_distance: Bytes,
}

/// Mean latent error times of one pass length.
pub struct Unseen {
    /// In sequential order.
    pub sequential_s: f64,
    /// In staggered order, by the number of regions.
    pub staggered: Vec<Staggered>,
}

/// A number of regions.
#[derive(Clone, Copy, Serialize)]
pub struct Staggered {
    pub regions: u64,
    pub mlet_s: f64,
}

impl ModelArguments {
    /// The model's parameters, if they mean something.
    pub fn errors(&self) -> Result<Errors, UsageError> {
        let usage = |text: &str| UsageError(text.into());
        let share = |share: f64| (0.0..=1.0).contains(&share);
        if [self.visible, self.latent, self.recovery].contains(&Nanos::ZERO) {
            return Err(usage("--visible, --latent and --recovery must be above zero"));
        }
        let positive = |share: f64| share > 0.0 && share <= 1.0;
        if !(positive(self.temporal) && self.spatial.iter().copied().all(share)) {
            return Err(usage("--temporal must be above 0 and at most 1, each of --spatial from 0 to 1"));
        }
        let at_least_1 = |factor: f64| (1.0..f64::INFINITY).contains(&factor);
        if !(at_least_1(self.parity_factor) && at_least_1(self.burst_errors)) {
            return Err(usage("--parity-factor and --burst-errors must be at least 1"));
        }
        if self.visit.0 < u64::from(BLOCK) || self.capacity.0 < self.visit.0 {
            return Err(usage("--visit must be at least 512B and at most --capacity"));
        }
        let [vv, lv, vl, ll] = self.spatial[..] else { return Err(usage("--spatial takes four shares")) };
        Ok(Errors {
            visible_s: self.visible.as_secs_f64(),
            latent_s: self.latent.as_secs_f64(),
            visible_recovery_s: self.recovery.as_secs_f64(),
            latent_recovery_s: self.latent_recovery.as_secs_f64(),
            temporal: self.temporal,
            spatial: [vv, lv, vl, ll],
        })
    }

    /// How long errors stay unseen by passes of this length.
    pub fn unseen(&self, scan_s: f64, seed: u64) -> Unseen {
        let block = u64::from(BLOCK);
        let surface = Surface { size: Bytes(self.capacity.0 / block * block), block: BLOCK };
        let visit = Bytes(self.visit.0 / block * block);
        let bursts = Bursts { errors: self.burst_errors, distance: self.burst_distance };
        let count = (BURSTS * 4.0 / self.burst_errors).clamp(FEWEST_BURSTS, BURSTS) as u32;
        let mlet = |order: &Order| mlet(order, surface, &bursts, count, seed) * scan_s;
        let staggered = |&regions: &u64| Staggered { regions, mlet_s: mlet(&Order::staggered(regions, visit)) };
        Unseen { sequential_s: mlet(&Order::SEQUENTIAL), staggered: REGIONS.iter().map(staggered).collect() }
    }
}
