//! The disks of an array: the arguments that say what they are and what happens to them.

use std::str::FromStr;

use idlewise::reliability::{self, Rebuild};
use idlewise::{Bytes, Nanos};

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

impl Drives {
    /// As the library has them.
    pub fn all(&self) -> reliability::Drives {
        let rebuild = match self.rebuild {
            Some(time) => Rebuild::Takes(time),
            None if self.rebuild_in_gaps => Rebuild::InGaps,
            None => Rebuild::Unhindered,
        };
        let Self { capacity, read_errors, age, .. } = *self;
        reliability::Drives { capacity, failures: self.failures.0, latent: self.latent.0, read_errors, rebuild, age }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_in_percent_or_not() {
        let share = |text: &str| text.parse::<Share>().map(|share| share.0);
        assert_eq!((share("1 %"), share("0.01")), (Ok(0.01), Ok(0.01)));
        assert!(["0", "100%", "-1%", "x", "nan"].iter().all(|text| share(text).is_err()));
    }

    /// What is said here for nothing is what the library takes for nothing.
    #[test]
    fn the_defaults_are_the_librarys() {
        #[derive(clap::Parser)]
        struct Only {
            #[command(flatten)]
            drives: Drives,
        }
        let none = <Only as clap::Parser>::parse_from(["array"]).drives.all();
        assert_eq!(none, reliability::Drives::default());
    }
}
