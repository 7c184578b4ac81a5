//! A disk as measured: time against size for verifies, position and rate for foreground reads and writes.

use serde::{Deserialize, Serialize};

use super::interference::{Interference, Timing};
use crate::{Bytes, Nanos, Rate};

/// The smallest request that is worth issuing: verify times are almost constant below (DSN 2012, section IV-A).
pub const SMALLEST_REQUEST: Bytes = Bytes::from_kib(64);
/// The largest that is tried (DSN 2012, section V-C).
pub const LARGEST_REQUEST: Bytes = Bytes::from_kib(4096);

/// Service times of one disk, as kept in a TOML file (docs/formats.md).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskModel {
    /// What people call it.
    pub name: String,
    /// Verify time at some sizes, growing in size; at least two.
    pub verify: Vec<Point>,
    /// Foreground reads, needed for traces without completions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<Access>,
    /// Foreground writes, needed for traces without completions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<Access>,
}

/// One measured point of the verify curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Request size.
    pub size: Bytes,
    /// Service time of one request of that size.
    pub time: Nanos,
    /// How much of it a foreground request waits for that arrives meanwhile; all of it unless measured.
    #[serde(default, skip_serializing_if = "Point::is_served_alone")]
    pub interference: Interference,
}

/// Mean service of a foreground request: `position + size / rate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Mean seek and rotation.
    pub position: Nanos,
    /// Mean transfer rate.
    pub rate: Rate,
}

/// Why a disk model cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Not TOML, or not these fields.
    #[error("not a disk model: {0}")]
    Syntax(String),
    /// The verify curve has too few points, or they do not grow.
    #[error("verify needs at least two points, sizes growing, times above zero and never falling")]
    Curve,
    /// A rate of zero.
    #[error("the rate of [{0}] must be above zero")]
    Rate(&'static str),
}

impl Point {
    /// Of a disk that serves one request at a time.
    pub fn new(size: Bytes, time: Nanos) -> Self {
        Self { size, time, interference: Interference::FULL }
    }

    fn is_served_alone(interference: &Interference) -> bool {
        *interference == Interference::FULL
    }
}

impl Access {
    /// Service time of one request.
    pub fn time(&self, size: Bytes) -> Nanos {
        Nanos(self.position.0.saturating_add(self.rate.time_for(size).0))
    }
}

impl DiskModel {
    /// A disk whose background requests take these times.
    ///
    /// # Errors
    /// [`ModelError::Curve`] if there are fewer than two points, sizes do not grow, or times are zero or fall. Where times are measured, take
    /// the larger of each and the one before it.
    ///
    /// # Examples
    /// Work of 64 KiB takes 1 ms here, and of 4 MiB 20 ms:
    /// ```
    /// use idlewise::disk::{DiskModel, Point};
    /// use idlewise::{Bytes, Nanos};
    ///
    /// let point = |kib, ms| Point::new(Bytes::from_kib(kib), Nanos::from_millis(ms));
    /// let model = DiskModel::new("merge", vec![point(64, 1), point(4096, 20)])?;
    /// assert_eq!(model.verify_time(Bytes::from_kib(2080)), Nanos::from_micros(10_500));
    /// # Ok::<(), idlewise::disk::ModelError>(())
    /// ```
    pub fn new(name: &str, verify: Vec<Point>) -> Result<Self, ModelError> {
        let model = Self { name: name.into(), verify, read: None, write: None };
        model.check()?;
        Ok(model)
    }

    /// A disk of tests: 1,000 bytes take `time` nanoseconds, and every further 1,000 as much again.
    #[cfg(test)]
    pub(crate) fn in_proportion(time: u64) -> Self {
        let point = |size, time| Point::new(Bytes(size), Nanos(time));
        let verify = vec![point(1_000, time), point(2_000, time.saturating_mul(2))];
        Self { name: "test".into(), verify, read: None, write: None }
    }

    /// The same where a foreground request waits for this part of a request only.
    #[cfg(test)]
    pub(crate) fn interfering(mut self, part: f64) -> Self {
        self.verify.iter_mut().for_each(|point| point.interference = Interference::new(part));
        self
    }

    /// Whether the times mean anything: at least two points, whose sizes grow and whose times never fall, and rates above zero.
    fn check(&self) -> Result<(), ModelError> {
        let grows = |pair: &[Point]| pair[0].size < pair[1].size && pair[0].time <= pair[1].time;
        if self.verify.len() < 2 || self.verify[0].time == Nanos::ZERO || !self.verify.windows(2).all(grows) {
            return Err(ModelError::Curve);
        }
        for (name, access) in [("read", &self.read), ("write", &self.write)] {
            if access.is_some_and(|access| access.rate.0 == 0) {
                return Err(ModelError::Rate(name));
            }
        }
        Ok(())
    }

    /// The default: the disk of DSN 2012, whose VERIFY takes 4.8 ms for 64 KiB and 50.4 ms for 4 MiB (figure 4).
    #[cfg(feature = "files")]
    pub fn ultrastar_15k450() -> Self {
        super::PRESETS[0].model()
    }

    /// Reads the TOML text of a model.
    ///
    /// # Errors
    /// [`ModelError`] says which field is wrong.
    #[cfg(feature = "files")]
    pub fn from_toml(text: &str) -> Result<Self, ModelError> {
        crate::small::check(text).map_err(ModelError::Syntax)?;
        let model: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].lines().count().max(1));
            ModelError::Syntax(format!("line {line}: {}", error.message()))
        })?;
        model.check()?;
        Ok(model)
    }

    /// The TOML text of this model.
    #[cfg(feature = "files")]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("a disk model has only text and tables")
    }

    /// The request sizes that are tried, in steps of the smallest, and their timing: those that take no longer than
    /// `longest`, as a foreground request may have to wait for all of one.
    pub fn sizes(&self, longest: Nanos) -> Vec<(Bytes, Timing)> {
        let all = (1..=LARGEST_REQUEST.0 / SMALLEST_REQUEST.0).map(|steps| Bytes(steps * SMALLEST_REQUEST.0));
        all.map(|size| (size, self.timing(size))).filter(|(_, timing)| timing.time <= longest).collect()
    }

    /// Time and interference of one verify of `size`, the latter also linear between points, and constant outside of them.
    pub fn timing(&self, size: Bytes) -> Timing {
        let upper = self.verify.partition_point(|point| point.size < size);
        let interference = match (upper.checked_sub(1).map(|lower| self.verify[lower]), self.verify.get(upper)) {
            (Some(a), Some(b)) => a.interference.towards(b.interference, size.0 - a.size.0, b.size.0 - a.size.0),
            (a, b) => a.or(b.copied()).map_or(Interference::FULL, |point| point.interference),
        };
        Timing { time: self.verify_time(size), interference }
    }

    /// Time of one verify of `size`: constant below the first point (DSN 2012, section IV-A: times are almost constant up
    /// to 64 KiB), linear in size between points, beyond the last point in the last segment's slope.
    pub fn verify_time(&self, size: Bytes) -> Nanos {
        let points = &self.verify;
        if size <= points[0].size {
            return points[0].time;
        }
        let upper = points.partition_point(|point| point.size < size).min(points.len() - 1);
        let (a, b) = (points[upper - 1], points[upper]);
        let run = u128::from(b.size.0 - a.size.0);
        let rise = u128::from(b.time.0 - a.time.0) * u128::from(size.0 - a.size.0);
        Nanos(u64::try_from(u128::from(a.time.0) + (rise + run / 2) / run).unwrap_or(u64::MAX))
    }
}

#[cfg(all(test, feature = "files"))]
mod tests {
    use super::*;

    #[test]
    fn the_default_has_the_papers_times() {
        let disk = DiskModel::ultrastar_15k450();
        assert_eq!(disk.verify_time(Bytes::from_kib(64)), Nanos(4_800_000));
        assert_eq!(disk.verify_time(Bytes::from_kib(4096)), Nanos(50_400_000));
        assert_eq!(disk.verify_time(Bytes::from_kib(1)), Nanos(4_800_000));
        // 4.8 ms + 45.6 ms * 448 / 4032
        assert_eq!(disk.verify_time(Bytes::from_kib(512)), Nanos(9_866_667));
        // 50.4 ms + 45.6 ms * 4096 / 4032, in the last slope
        assert_eq!(disk.verify_time(Bytes::from_kib(8192)), Nanos(96_723_810));
        assert_eq!(disk.read.unwrap().time(Bytes(90_000)), Nanos(5_000_000));
        let sizes = disk.sizes(Nanos::from_millis(50));
        assert_eq!((sizes.len(), sizes[7]), (63, (Bytes::from_kib(512), Nanos(9_866_667).into())));
    }

    #[test]
    fn writes_what_it_reads() {
        let mut disk = DiskModel::ultrastar_15k450();
        assert!(!disk.to_toml().contains("interference"));
        disk.verify[0].interference = Interference::new(0.25);
        assert!(disk.to_toml().contains("interference = 0.25\n"), "{}", disk.to_toml());
        assert_eq!(DiskModel::from_toml(&disk.to_toml()).unwrap(), disk);
    }

    #[test]
    fn interference_is_linear_between_points_and_constant_outside() {
        let mut disk = DiskModel::ultrastar_15k450();
        let last = disk.verify.len() - 1;
        (disk.verify[0].interference, disk.verify[last].interference) =
            (Interference::new(0.2), Interference::new(0.8));
        assert_eq!(last, 1);
        let part = |kib| disk.timing(Bytes::from_kib(kib)).interference.part();
        assert_eq!([1, 64, 2080, 4096, 9000].map(part), [0.2, 0.2, 0.5, 0.8, 0.8]);
    }

    #[test]
    fn refuses_a_model_that_means_nothing() {
        let point = |size, time| format!("[[verify]]\nsize = \"{size}\"\ntime = \"{time}\"\n");
        let model = |points: &str| DiskModel::from_toml(&format!("name = \"x\"\n{points}"));
        assert!(matches!(model(&point("64KiB", "1ms")), Err(ModelError::Curve)));
        let falling = point("64KiB", "2ms") + &point("1MiB", "1ms");
        assert!(matches!(model(&falling), Err(ModelError::Curve)));
        let same = point("64KiB", "2ms") + &point("64KiB", "3ms");
        assert!(matches!(model(&same), Err(ModelError::Curve)));
        let stopped = point("64KiB", "2ms") + &point("1MiB", "3ms") + "[read]\nposition=\"1ms\"\nrate=\"0B/s\"";
        assert!(matches!(model(&stopped), Err(ModelError::Rate("read"))));
        let half = "[[verify]]\nsize = \"64KiB\"\ntime = \"1ms\"\ninterference = 1.5\n";
        let error = model(half).unwrap_err().to_string();
        assert!(error.contains("line 5") && error.contains("a number from 0 to 1"), "{error}");
        let error = model("[[verify]]\nsize = \"64 apples\"\ntime = \"1ms\"").unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains("apples"), "{error}");
    }
}
