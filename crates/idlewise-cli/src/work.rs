//! The arguments that say what background work there is.

use clap::Args;
use idlewise::disk::DiskModel;
use idlewise::idle::{Idleness, Keep, Writes};
use idlewise::policy::restrained::Amount;
use idlewise::simulate::{Jobs, Scrub, Service, Work};
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

    /// Jobs that can wait at the same time; those that find no place are lost
    #[arg(long, value_name = "JOBS", requires = "per_write")]
    pub buffer: Option<usize>,

    /// Take this share of the requests, drawn at random, for WRITEs, instead of those that are
    #[arg(long, value_name = "SHARE", requires = "per_write")]
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
        let writes = match (self.per_write, self.write_share) {
            (false, _) => Writes::None,
            (true, None) => Writes::Recorded,
            (true, Some(share)) => Writes::Drawn(share),
        };
        Ok(Keep { responses, writes })
    }

    /// Work that nothing was done of yet.
    pub fn work(&self, model: &DiskModel) -> Box<dyn Work> {
        let of_size = || Service::OfSize(model.clone());
        let service = self.service.map_or_else(of_size, Service::exponential);
        if self.per_write { Box::new(Jobs::new(service, self.buffer)) } else { Box::new(Scrub::new(service)) }
    }

    /// How much of it there is, in requests of `size`.
    pub fn amount(&self, disk: &Idleness, model: &DiskModel, size: Bytes) -> Amount {
        let service = self.service.unwrap_or_else(|| model.verify_time(size));
        if !self.per_write {
            return Amount::Infinite;
        }
        Amount::Finite(Jobs::per_interval(disk, service, self.buffer))
    }

    /// What it is, for people.
    pub fn line(&self) -> String {
        let service = self.service.map(|mean| format!(", {mean} each on average")).unwrap_or_default();
        let of = self.write_share.map_or("foreground WRITE".into(), |share| {
            format!("foreground request in {:.1}, drawn at random", 1.0 / share.max(1e-9))
        });
        match (self.per_write, self.buffer) {
            (false, _) => format!("a scrub without end{service}"),
            (true, None) => format!("a job for each {of}{service}"),
            (true, Some(places)) => format!("a job for each {of}{service}, of which {places} can wait"),
        }
    }
}
