//! The disks of an array: the arguments that say what they are and what happens to them.

use std::str::FromStr;

use idlewise::{Bytes, Nanos, Rate};

use crate::reliability::YEAR;

/// The heading of these options.
const DRIVES: &str = "Its disks";

/// What the disks are, and what happens to them.
#[derive(clap::Args)]
pub struct Drives {
    /// Size of each disk
    #[arg(long, help_heading = DRIVES, value_name = "SIZE", default_value = "20TB")]
    pub capacity: Bytes,

    /// Share of the disks that fail in a year. The default is that of 2024 of 300,000 disks at Backblaze
    #[arg(long, help_heading = DRIVES, value_name = "SHARE", default_value = "1.57%")]
    pub failures: Share,

    /// Share of the disks to which latent errors come in a year. The default is that of nearline disks in Bairavasundaram et al., SIGMETRICS
    /// 2007: 8.5 % in 32 months
    #[arg(long, help_heading = DRIVES, value_name = "SHARE", default_value = "3.3%")]
    pub latent: Share,

    /// One read error in so many bits read, such as 1e15 of a data sheet, beside latent errors [default: none]
    #[arg(long, help_heading = DRIVES, value_name = "BITS")]
    pub read_errors: Option<f64>,

    /// How long a rebuild takes [default: --capacity at 100 MB/s]
    #[arg(long, help_heading = DRIVES, value_name = "TIME", conflicts_with = "rebuild_in_gaps")]
    pub rebuild: Option<Nanos>,

    /// Rebuild in the gaps as well: it takes as long as a pass
    #[arg(long, help_heading = DRIVES)]
    pub rebuild_in_gaps: bool,

    /// Age that disks reach. Without scrubs, an error waits unseen for half of it
    #[arg(long, help_heading = DRIVES, value_name = "TIME", default_value = "1826d")]
    pub age: Nanos,
}

/// A share of the disks in a year.
#[derive(Clone, Copy, Debug)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number.trim_end(), 100.0));
        let share = number.parse().ok().map(|share: f64| share / unit).filter(|share| *share > 0.0 && *share < 1.0);
        share.map(Self).ok_or_else(|| "a share of the disks is above 0 and below 100 %, such as 1.5%".into())
    }
}

impl Share {
    /// The mean time until it happens to a disk, in seconds.
    pub fn mean_s(self) -> f64 {
        YEAR / -(-self.0).ln_1p()
    }
}

/// Rate of a rebuild that nothing holds up.
pub const REBUILDS: Rate = Rate(100_000_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_in_a_year_is_a_mean_time() {
        let mean = |text: &str| text.parse::<Share>().map(|share| share.mean_s() / YEAR);
        assert!((mean("1%").unwrap() - 99.499).abs() < 1e-3 && mean("0.01") == mean("1 %"));
        assert!(["0", "100%", "-1%", "x", "nan"].iter().all(|text| mean(text).is_err()));
    }
}
