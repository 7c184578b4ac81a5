//! The arguments that say what updates of intra-disk parity are.

use clap::Args;
use idlewise::simulate::{ParityUpdates, Service};
use idlewise::{Bytes, Nanos};

use crate::exit::UsageError;

/// The heading of these options.
pub const PARITY: &str = "Parity updates";

/// Updates of intra-disk parity.
#[derive(Args)]
pub struct ParityArguments {
    /// Mean time of the READ of a parity update, exponentially distributed [default: 10ms]
    #[arg(long, help_heading = PARITY, value_name = "TIME")]
    parity_read: Option<Nanos>,

    /// Mean time of its WRITE, exponentially distributed [default: 5ms]
    #[arg(long, help_heading = PARITY, value_name = "TIME")]
    parity_write: Option<Nanos>,

    /// Size of a segment that has a parity of its own [default: 512KiB]
    #[arg(long, help_heading = PARITY, value_name = "SIZE")]
    segment: Option<Bytes>,

    /// Let the WRITE of an update follow its READ even if the policy would stop, unless a foreground request arrives
    #[arg(long, help_heading = PARITY)]
    whole_updates: bool,
}

impl ParityArguments {
    /// An error if a number means nothing.
    pub fn check(&self) -> Result<(), UsageError> {
        if self.segment() == Bytes(0) || self.read() == Nanos::ZERO || self.write() == Nanos::ZERO {
            return Err(UsageError("--segment, --parity-read and --parity-write must be above zero".into()));
        }
        Ok(())
    }

    /// Whether anything is said of them.
    pub fn given(&self) -> bool {
        let times = self.parity_read.or(self.parity_write);
        self.whole_updates || times.is_some() || self.segment.is_some()
    }

    /// None came yet.
    pub fn updates(&self) -> ParityUpdates {
        let (read, write) = (Service::seeded(self.read(), 2008), Service::seeded(self.write(), 8002));
        let updates = ParityUpdates::new(read, write, self.segment());
        if self.whole_updates { updates.whole() } else { updates }
    }

    /// Mean time of an update.
    pub fn update(&self) -> Nanos {
        Nanos(self.read().0.saturating_add(self.write().0))
    }

    /// Mean time of what a policy decides on: a READ or a WRITE, or both of a whole update.
    pub fn decided_on(&self) -> Nanos {
        if self.whole_updates { self.update() } else { Nanos(self.update().0 / 2) }
    }

    /// Size of a segment.
    pub fn segment(&self) -> Bytes {
        // DSN 2008, tables 6 and 9: at T1's rate of updates, a gain of 48.1 for 48.4 is that of about 1,000 sectors.
        self.segment.unwrap_or(Bytes::from_kib(512))
    }

    /// What it is, for people.
    pub fn line(&self) -> String {
        let whole = if self.whole_updates { ", as a whole" } else { "" };
        format!(
            "parity of {}, read in {} and written in {} on average{whole}",
            self.segment(),
            self.read(),
            self.write()
        )
    }

    fn read(&self) -> Nanos {
        self.parity_read.unwrap_or(Nanos::from_millis(10))
    }

    fn write(&self) -> Nanos {
        self.parity_write.unwrap_or(Nanos::from_millis(5))
    }
}
