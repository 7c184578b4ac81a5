//! The arguments that say what background work there is.

use clap::Args;
use idlewise::disk::DiskModel;
use idlewise::idle::{Idleness, Keep, Writes};
use idlewise::policy::restrained::Amount;
use idlewise::simulate::{Jobs, ParityUpdates, Scrub, Service, Work};
use idlewise::{Bytes, Nanos};

use crate::exit::UsageError;

/// Background work.
#[derive(Args)]
pub struct WorkArguments {
    /// Mean service time of a background request, exponentially distributed, instead of what the disk takes for its size
    #[arg(long, value_name = "TIME")]
    pub service: Option<Nanos>,

    /// The work is a job for each foreground WRITE, instead of a scrub without end
    #[arg(long)]
    pub per_write: bool,

    /// The work is an update of intra-disk parity, a READ and a WRITE, for each segment that a foreground WRITE makes dirty
    #[arg(long, conflicts_with_all = ["per_write", "service", "buffer"])]
    pub parity: bool,

    /// Mean time of the READ of a parity update, exponentially distributed
    #[arg(long, value_name = "TIME", default_value = "10ms", requires = "parity")]
    parity_read: Nanos,

    /// Mean time of its WRITE
    #[arg(long, value_name = "TIME", default_value = "5ms", requires = "parity")]
    parity_write: Nanos,

    /// Size of a segment that has a parity of its own
    #[arg(long, value_name = "SIZE", default_value = "1MiB", requires = "parity")]
    segment: Bytes,

    /// Jobs that can wait at the same time; those that find no place are lost
    #[arg(long, value_name = "JOBS", requires = "per_write")]
    pub buffer: Option<usize>,

    /// Take this share of the requests, drawn at random, for WRITEs, instead of those that are
    #[arg(long, value_name = "SHARE")]
    pub write_share: Option<f64>,
}

impl WorkArguments {
    /// What the idle times must keep of requests; an error if a share is none.
    pub fn keep(&self, responses: bool) -> anyhow::Result<Keep> {
        if self.service == Some(Nanos::ZERO) {
            return Err(UsageError("--service is a time above zero, such as 6ms".into()).into());
        }
        if self.write_share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
            return Err(UsageError("--write-share is a share above 0 and up to 1".into()).into());
        }
        if self.write_share.is_some() && !self.per_write() {
            return Err(
                UsageError("--write-share needs work that comes with WRITEs: --per-write or --parity".into()).into()
            );
        }
        if self.segment == Bytes(0) || self.parity_read == Nanos::ZERO || self.parity_write == Nanos::ZERO {
            return Err(UsageError("--segment, --parity-read and --parity-write must be above zero".into()).into());
        }
        let writes = match (self.per_write(), self.write_share) {
            (false, _) => Writes::None,
            (true, None) => Writes::Recorded,
            (true, Some(share)) => Writes::Drawn(share),
        };
        Ok(Keep { responses, writes })
    }

    /// Whether the work comes with WRITEs.
    pub fn per_write(&self) -> bool {
        self.per_write || self.parity
    }

    /// Work that nothing was done of yet.
    pub fn work(&self, model: &DiskModel) -> Box<dyn Work> {
        if self.parity {
            let (read, write) = (Service::seeded(self.parity_read, 2008), Service::seeded(self.parity_write, 8002));
            return Box::new(ParityUpdates::new(read, write, self.segment));
        }
        let of_size = || Service::OfSize(model.clone());
        let service = self.service.map_or_else(of_size, Service::exponential);
        if self.per_write { Box::new(Jobs::new(service, self.buffer)) } else { Box::new(Scrub::new(service)) }
    }

    /// How much of it there is, in requests of `size`.
    pub fn amount(&self, disk: &Idleness, model: &DiskModel, size: Bytes) -> Amount {
        if !self.per_write() {
            return Amount::Infinite;
        }
        let of_size = || model.verify_time(size);
        let service = self.mean_service().unwrap_or_else(of_size);
        Amount::Finite(Jobs::per_interval(disk, service, self.buffer))
    }

    /// Mean time of one job, where it is given.
    pub fn mean_service(&self) -> Option<Nanos> {
        if self.parity { Some(Nanos(self.parity_read.0 + self.parity_write.0)) } else { self.service }
    }

    /// What it is, for people.
    pub fn line(&self) -> String {
        let service = self.service.map(|mean| format!(", {mean} each on average")).unwrap_or_default();
        let of = self.write_share.map_or("foreground WRITE".into(), |share| {
            format!("foreground request in {:.1}, drawn at random", 1.0 / share.max(1e-9))
        });
        if self.parity {
            let (read, write) = (self.parity_read, self.parity_write);
            return format!(
                "parity of {}, read in {read} and written in {write} on average, for each {of}",
                self.segment
            );
        }
        match (self.per_write, self.buffer) {
            (false, _) => format!("a scrub without end{service}"),
            (true, None) => format!("a job for each {of}{service}"),
            (true, Some(places)) => format!("a job for each {of}{service}, of which {places} can wait"),
        }
    }
}
