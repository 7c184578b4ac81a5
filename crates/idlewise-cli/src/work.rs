//! The arguments that say what background work there is.

use clap::Args;
use idlewise::disk::DiskModel;
use idlewise::idle::{Idleness, Keep, Writes};
use idlewise::policy::restrained::Amount;
use idlewise::simulate::{Scrub, Service, Work, WriteVerification};
use idlewise::{Bytes, Nanos};

use crate::exit::UsageError;
use crate::parity::ParityArguments;

/// The heading of these options.
const WORK: &str = "Background work";

/// Background work.
#[derive(Args)]
pub struct WorkArguments {
    /// Mean service time of a background request, exponentially distributed. By default the disk model gives it
    #[arg(long, help_heading = WORK, value_name = "TIME")]
    pub service_time: Option<Nanos>,

    /// Verify each foreground write by a READ, instead of scrubbing without end
    #[arg(long, help_heading = WORK)]
    pub verify_writes: bool,

    /// Update intra-disk parity, by a READ and a WRITE for each segment that a foreground write makes dirty
    #[arg(long, help_heading = WORK, conflicts_with_all = ["verify_writes", "service_time", "buffer"])]
    pub parity: bool,

    #[command(flatten)]
    parity_updates: ParityArguments,

    /// Number of writes that can wait for verification at the same time; others are not verified
    #[arg(long, help_heading = WORK, value_name = "WRITES", requires = "verify_writes")]
    pub buffer: Option<usize>,

    /// Treat this share of the requests, drawn at random, as writes, whatever the trace says
    #[arg(long, help_heading = WORK, value_name = "SHARE")]
    pub write_share: Option<f64>,
}

/// Which requests are WRITEs; an error if the share is none.
pub fn writes(share: Option<f64>) -> Result<Writes, UsageError> {
    match share {
        None => Ok(Writes::Recorded),
        Some(share) if share > 0.0 && share <= 1.0 => Ok(Writes::Drawn(share)),
        Some(_) => Err(UsageError("--write-share is a share above 0 and up to 1".into())),
    }
}

impl WorkArguments {
    /// What the idle times must keep of requests; an error if a number means nothing.
    pub fn keep(&self, responses: bool) -> anyhow::Result<Keep> {
        let usage = |text: &str| Err(UsageError(text.into()).into());
        if self.service_time == Some(Nanos::ZERO) {
            return usage("--service-time is a time above zero, such as 6ms");
        }
        let writes = writes(self.write_share)?;
        if self.write_share.is_some() && !self.per_write() {
            return usage("--write-share needs work that comes with WRITEs: --verify-writes or --parity");
        }
        if self.buffer == Some(0) {
            return usage("--buffer must be at least 1");
        }
        self.parity_updates.check()?;
        if self.parity_updates.given() && !self.parity {
            return usage("--parity-read, --parity-write, --segment and --whole-updates need --parity");
        }
        Ok(Keep { responses, writes: if self.per_write() { writes } else { Writes::None } })
    }

    /// Whether the work comes with WRITEs.
    pub fn per_write(&self) -> bool {
        self.verify_writes || self.parity
    }

    /// Work that nothing was done of yet.
    pub fn work(&self, model: &DiskModel) -> Box<dyn Work> {
        if self.parity {
            return Box::new(self.parity_updates.updates());
        }
        let of_size = || Service::OfSize(model.clone());
        let service = self.service_time.map_or_else(of_size, Service::exponential);
        if self.verify_writes {
            Box::new(WriteVerification::new(service, self.buffer))
        } else {
            Box::new(Scrub::new(service))
        }
    }

    /// How much of it there is, in requests of `size`.
    pub fn amount(&self, disk: &Idleness, model: &DiskModel, size: Bytes) -> Amount {
        if !self.per_write() {
            return Amount::Infinite;
        }
        let of_size = || model.verify_time(size);
        let each = if self.parity { self.parity_updates.update() } else { self.service_time.unwrap_or_else(of_size) };
        WriteVerification::amount(disk, each, self.buffer)
    }

    /// Mean time of a request, where its size does not tell it.
    pub fn mean_service(&self) -> Option<Nanos> {
        if self.parity { Some(self.parity_updates.decided_on()) } else { self.service_time }
    }

    /// What it is, for people.
    pub fn line(&self) -> String {
        let service = self.service_time.map(|mean| format!(", {mean} each on average")).unwrap_or_default();
        let of = self.write_share.map_or("foreground WRITE".into(), |share| {
            format!("foreground request in {:.1}, drawn at random", 1.0 / share.max(1e-9))
        });
        if self.parity {
            return format!("{}, for each {of}", self.parity_updates.line());
        }
        match (self.verify_writes, self.buffer) {
            (false, _) => format!("a scrub without end{service}"),
            (true, None) => format!("a READ that verifies each {of}{service}"),
            (true, Some(places)) => format!("a READ that verifies each {of}{service}, of which {places} can wait"),
        }
    }
}
