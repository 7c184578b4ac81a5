//! How long an array keeps its data: RAID, RAID-Z and mirrors of any number of disks that may fail.
//!
//! Disks fail at a constant rate, each is rebuilt on a spare at once, and latent errors stay unseen until a scrub comes by. As long as
//! fewer disks have failed than may, a latent error is mended from the others. Once as many have failed as may, a stretch of another
//! disk that cannot be read and is not rebuilt yet is lost, and one more failure loses everything. Whatever else must come together to
//! lose data, such as latent errors of one stripe on several disks, is left out: it is rarer by orders of magnitude.

use std::fmt;
use std::str::FromStr;

/// Disks that keep data together, and how many of them may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    kind: Kind,
    disks: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Raid5,
    Raid6,
    RaidZ(u32),
    Mirror,
}

/// What is wrong with the text of a layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no array: write raid5:N, raid6:N, raidz1:N to raidz3:N or mirror:N, where N is the number of disks, from 2 to 1000 and more than may fail"
)]
pub struct LayoutError(String);

impl Layout {
    const MOST: u32 = 1_000;

    /// Disks in it.
    pub fn disks(&self) -> u32 {
        self.disks
    }

    /// How many of them may fail.
    pub fn may_fail(&self) -> u32 {
        match self.kind {
            Kind::Raid5 => 1,
            Kind::Raid6 => 2,
            Kind::RaidZ(parities) => parities,
            Kind::Mirror => self.disks - 1,
        }
    }
}

impl FromStr for Layout {
    type Err = LayoutError;

    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let wrong = || LayoutError(text.into());
        let (kind, disks) = text.split_once(':').ok_or_else(wrong)?;
        let kind = match kind {
            "raid5" => Kind::Raid5,
            "raid6" => Kind::Raid6,
            "raidz1" => Kind::RaidZ(1),
            "raidz2" => Kind::RaidZ(2),
            "raidz3" => Kind::RaidZ(3),
            "mirror" => Kind::Mirror,
            _ => return Err(wrong()),
        };
        let layout = Self { kind, disks: disks.parse().map_err(|_| wrong())? };
        let is_possible = (2..=Self::MOST).contains(&layout.disks) && layout.may_fail() < layout.disks;
        if is_possible { Ok(layout) } else { Err(wrong()) }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            Kind::Raid5 => "raid5".into(),
            Kind::Raid6 => "raid6".into(),
            Kind::RaidZ(parities) => format!("raidz{parities}"),
            Kind::Mirror => "mirror".into(),
        };
        write!(f, "{name}:{}", self.disks)
    }
}

/// An array and what may happen to it. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Array {
    /// Its disks.
    pub layout: Layout,
    /// Mean time until a disk fails.
    pub failure_s: f64,
    /// Mean time until a burst of latent errors comes to a disk.
    pub latent_s: f64,
    /// Stretches that cannot be read, beside latent errors, in a disk that is read from end to end: its size over the bytes of one.
    pub read_errors: f64,
    /// Until a failed disk is rebuilt.
    pub rebuild_s: f64,
    /// Mean time that a latent error stays unseen: half a pass, where passes follow one another.
    pub unseen_s: f64,
}

/// How long until data are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Losses {
    /// Mean time to the first loss, of a stretch or of everything, in seconds.
    pub mttdl_s: f64,
    /// How likely that is a loss of everything, and not of stretches that could not be read.
    pub of_everything: f64,
}

impl Losses {
    /// How likely data are lost within so many seconds.
    pub fn within(&self, seconds: f64) -> f64 {
        -(-seconds / self.mttdl_s).exp_m1()
    }
}

impl Array {
    /// Mean number of stretches that are lost when the last disk fails that may: latent errors that wait unseen where nothing is
    /// rebuilt yet, those that come until that is read, and read errors.
    ///
    /// Of `m` disks that have failed the first is rebuilt furthest. What is left of it at the failure of the last is on average `1 / m`,
    /// and its square `2 / (m (m + 1))`, as failures come at any moment of a rebuild.
    fn lost_stretches(&self) -> f64 {
        let may_fail = f64::from(self.layout.may_fail());
        let others = f64::from(self.layout.disks - self.layout.may_fail());
        let waits = self.unseen_s / may_fail + self.rebuild_s / (may_fail * (may_fail + 1.0));
        others * (waits / self.latent_s + self.read_errors / may_fail)
    }

    /// In closed form: the chain of how many disks have failed. From `k` failed ones the next fails at the rate `(n - k) / failure_s`,
    /// and one is rebuilt at the rate `k / rebuild_s`; a failure that is the last possible one loses stretches with the probability
    /// `1 - exp(-x)`, where `x` is their mean number.
    pub fn losses(&self) -> Losses {
        let (disks, may_fail) = (self.layout.disks, self.layout.may_fail());
        let fails = |failed: u32| f64::from(disks - failed) / self.failure_s;
        let rebuilt = |failed: u32| f64::from(failed) / self.rebuild_s;
        // From each number of failed disks to the next larger one, whatever is rebuilt meanwhile.
        let (mut up, mut before) = (0.0, 0.0);
        for failed in 0..may_fail {
            before += up;
            up = 1.0 / fails(failed) + if failed == 0 { 0.0 } else { rebuilt(failed) / fails(failed) * up };
        }
        let lost = -(-self.lost_stretches()).exp_m1();
        let (fails, rebuilt) = (fails(may_fail), rebuilt(may_fail));
        let (stays, back) = (1.0 / (fails + rebuilt), rebuilt / (fails + rebuilt));
        // Until the last possible failure; then again, as long as nothing is lost.
        let from_below = (up + (1.0 - lost) * stays) / (1.0 - (1.0 - lost) * back);
        let everything = (1.0 - lost) * (1.0 - back);
        Losses { mttdl_s: before + from_below, of_everything: everything / (everything + lost) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(layout: &str) -> Array {
        let layout = layout.parse().unwrap();
        Array { layout, failure_s: 1e6, latent_s: 1e30, read_errors: 0.0, rebuild_s: 1e3, unseen_s: 1e4 }
    }

    #[test]
    fn layouts_are_read_as_they_are_written() {
        for (text, may_fail) in
            [("raid5:8", 1), ("raid6:10", 2), ("raidz1:3", 1), ("raidz3:11", 3), ("mirror:2", 1), ("mirror:3", 2)]
        {
            let layout: Layout = text.parse().unwrap();
            assert_eq!((layout.to_string().as_str(), layout.may_fail()), (text, may_fail));
        }
        for wrong in ["raid6", "raid6:2", "raid0:4", "mirror:1", "raidz3:3", "raid5:1001", "raid5:-3"] {
            assert!(wrong.parse::<Layout>().is_err(), "{wrong}");
        }
    }

    /// The well-known first order of failures alone: MTTF^(m+1) / (n (n-1) ... (n-m)) times m! / rebuild^m.
    #[test]
    fn without_latent_errors_it_is_the_textbooks() {
        for (name, n, m) in [("raid5:8", 8.0, 1), ("raid6:10", 10.0, 2), ("raidz3:11", 11.0, 3), ("mirror:2", 2.0, 1)] {
            let one = array(name);
            let disks: f64 = (0..=m).map(|k| n - f64::from(k)).product();
            let factorial: f64 = (1..=m).map(f64::from).product();
            let expected = one.failure_s.powi(m + 1) * factorial / (disks * one.rebuild_s.powi(m));
            let found = one.losses();
            assert!((found.mttdl_s / expected - 1.0).abs() < 0.02, "{name}: {} {expected}", found.mttdl_s);
            assert_eq!(found.of_everything, 1.0);
        }
    }

    /// A mirror of two loses data at the first failure if the other disk is sure not to be readable.
    #[test]
    fn what_cannot_be_read_is_lost_with_the_last_possible_failure() {
        let found = Array { read_errors: 1e3, ..array("mirror:2") }.losses();
        assert!((found.mttdl_s - 5e5).abs() < 1e-6 && found.of_everything < 1e-12, "{found:?}");
        // Twice as long unseen is lost twice as soon, where that is what loses data.
        let with = |unseen_s| Array { latent_s: 1e8, rebuild_s: 0.1, unseen_s, ..array("raid6:10") }.losses().mttdl_s;
        assert!((with(1e4) / with(2e4) - 2.0).abs() < 0.01);
        assert!((found.within(5e5) - (1.0 - (-1f64).exp())).abs() < 1e-9);
    }
}
