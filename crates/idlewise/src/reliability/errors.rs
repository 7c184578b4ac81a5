//! Mean time to data loss, in closed form (DSN 2008, equations 1 to 4, after Baker et al., EuroSys 2006).

/// How errors come, and how long it takes to recover: means in seconds, and the factors of the model. Two copies of the data
/// are taken, as of a disk and its redundancy elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    /// Between visible errors, such as the failure of a whole disk (MV).
    pub visible_s: f64,
    /// Between latent errors (ML).
    pub latent_s: f64,
    /// To recover from a visible error (MRV).
    pub visible_recovery_s: f64,
    /// To recover from a latent error once it is detected (MRL).
    pub latent_recovery_s: f64,
    /// How much more apart errors are in time than alone, at most 1: below it they come together (alpha).
    pub temporal: f64,
    /// How likely a second error of each kind hits what the first has left without redundancy, at most 1 (beta): visible
    /// after visible, latent after visible, visible after latent, latent after latent.
    pub spatial: [f64; 4],
}

const HOUR: f64 = 3600.0;

impl Default for Errors {
    /// The paper's table 1.
    fn default() -> Self {
        Self {
            visible_s: 120_000.0 * HOUR,
            latent_s: 84_972.0 * HOUR,
            visible_recovery_s: 1.4 * HOUR,
            latent_recovery_s: 0.0,
            temporal: 1.0,
            spatial: [1.0, 1.0, 1.0, 0.0],
        }
    }
}

impl Errors {
    /// Rate of losses by a second error while a visible one is recovered from, per second: the first two terms of both
    /// equations.
    fn after_visible(&self, visible_s: f64) -> f64 {
        let [visible, latent, ..] = self.spatial;
        let Self { latent_s, visible_recovery_s, temporal, .. } = *self;
        visible_recovery_s / (temporal * visible_s) * (visible / visible_s + latent / latent_s)
    }

    /// Mean time to data loss in seconds where nobody looks for latent errors (equation 1): the first of them is lost.
    pub fn mttdl(&self) -> f64 {
        1.0 / (self.after_visible(self.visible_s) + 1.0 / self.latent_s)
    }

    /// Mean time to data loss in seconds where a latent error is detected after `detection_s` on average (equation 2). The paper
    /// prints k = ML / MV; its value of 1.41 and its equation are those of k = MV / ML, which is taken here.
    pub fn mttdl_scrubbed(&self, detection_s: f64) -> f64 {
        self.equation_2(detection_s, self.k())
    }

    /// MV / ML.
    pub fn k(&self) -> f64 {
        self.visible_s / self.latent_s
    }

    /// Equation 2 with a k of its own. The paper leaves k as it is where parity makes latent errors rarer (table 10), as if visible
    /// ones became rarer as well.
    pub fn equation_2(&self, detection_s: f64, k: f64) -> f64 {
        let window = detection_s + self.latent_recovery_s;
        1.0 / (self.after_visible(k * self.latent_s) + self.after_latent(k) * window)
    }

    /// Rate of losses by a second error while a latent one is not recovered from, per second and per second of that: the last
    /// term of equation 2.
    fn after_latent(&self, k: f64) -> f64 {
        let [.., visible, latent] = self.spatial;
        (visible + k * latent) / (self.temporal * k) / self.latent_s.powi(2)
    }

    /// How soon latent errors must be detected on average for a mean time to data loss of so many seconds, or nothing if no scrub is
    /// fast enough: equation 2 solved for MDL.
    pub fn detection_for(&self, mttdl_s: f64) -> Option<f64> {
        let window = (1.0 / mttdl_s - self.after_visible(self.visible_s)) / self.after_latent(self.k());
        Some(window - self.latent_recovery_s).filter(|detection| *detection > 0.0)
    }

    /// The same with intra-disk parity, which makes latent errors rarer by a factor (section 7.3).
    pub fn with_parity(&self, factor: f64) -> Self {
        Self { latent_s: self.latent_s * factor, ..*self }
    }
}

/// Mean time to data loss where a share of the disk has no valid parity at any time (equation 3).
pub fn with_dirty_parity(without: f64, with: f64, dirty: f64) -> f64 {
    dirty * without + (1.0 - dirty) * with
}

/// Share of the disk whose parity is dirty (equation 4, Little's law): updates that come at a rate and take a mean time each leave
/// so many segments dirty.
pub fn dirty_share(update_s: f64, updates_per_s: f64, segment_bytes: f64, capacity_bytes: f64) -> f64 {
    (update_s * updates_per_s * segment_bytes / capacity_bytes).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gain(scan_s: f64) -> f64 {
        let errors = Errors::default();
        errors.mttdl_scrubbed(scan_s / 2.0) / errors.mttdl()
    }

    /// Scan times of table 4 give the improvements of table 5, which are printed to one digit.
    #[test]
    fn table_5() {
        let cases = [(3_617.8, 4e4), (6_484.7, 3e4), (11_519.6, 3e4), (726.4, 5e4), (4_476.3, 4e4), (972.9, 5e4)];
        for (scan_s, printed) in cases {
            let ratio: f64 = gain(scan_s) / printed;
            assert!((0.7..1.3).contains(&ratio), "{scan_s}: {}", gain(scan_s));
        }
        assert!((gain(3_617.8) - 4.147e4).abs() < 10.0 && (gain(726.4) - 4.815e4).abs() < 10.0);
    }

    /// Parity at once multiplies the time by nearly the factor of rarer latent errors; table 9 prints 48.4, which takes a factor
    /// of 48.4 where the text has 48.
    #[test]
    fn table_9() {
        let errors = Errors::default();
        let gain = |factor| errors.with_parity(factor).mttdl() / errors.mttdl();
        assert!((gain(48.0) - 47.98).abs() < 0.01, "{}", gain(48.0));
        assert!((gain(48.42) - 48.4).abs() < 0.02, "{}", gain(48.42));
        let (without, with) = (errors.mttdl(), errors.with_parity(48.42).mttdl());
        // T2 with 90 % WRITEs, body: 35.1, so that 28 % of the disk was dirty.
        assert!((with_dirty_parity(without, with, 0.28) / without - 35.1).abs() < 0.2);
    }

    /// Both together, on T1's scan time by body + tail and T2's by tail: the paper's k of before makes it the square of the factor.
    /// With visible errors as frequent as they are, losses by two of them are a limit that no scrub lifts.
    #[test]
    fn table_10() {
        let errors = Errors::default();
        let both = |scan_s: f64, k: fn(&Errors) -> f64| {
            let rarer = errors.with_parity(48.0);
            rarer.equation_2(scan_s / 2.0, k(&rarer)) / errors.mttdl()
        };
        let paper = |scan_s| both(scan_s, |_| Errors::default().k());
        assert!((paper(726.4) / 1.12e8 - 1.0).abs() < 0.02, "{}", paper(726.4));
        let kept = |scan_s| both(scan_s, Errors::k);
        assert!((1.1e5..1.3e5).contains(&kept(726.4)), "{}", kept(726.4));
        let limit = errors.visible_s.powi(2) / errors.visible_recovery_s / errors.mttdl();
        assert!(kept(1.0) < limit && kept(1.0) > 0.95 * limit, "{} {limit}", kept(1.0));
    }

    #[test]
    fn the_detection_that_a_time_to_data_loss_takes() {
        let errors = Errors { latent_recovery_s: 60.0, ..Errors::default() };
        for detection in [10.0, 3_600.0, 1e7] {
            let found = errors.detection_for(errors.mttdl_scrubbed(detection)).unwrap();
            assert!((found / detection - 1.0).abs() < 1e-3, "{found} {detection}");
        }
        assert_eq!(errors.detection_for(errors.mttdl_scrubbed(0.0) * 1.01), None);
    }

    #[test]
    fn equation_4_is_littles_law() {
        // 100 updates a second that wait 2 s each: 200 segments of 1 MB on 40 GB.
        assert!((dirty_share(2.0, 100.0, 1e6, 40e9) - 0.005).abs() < 1e-12);
        assert_eq!(dirty_share(1e9, 1.0, 1e9, 1.0), 1.0);
    }

    #[test]
    fn latent_errors_that_come_together_matter_once_they_hit_each_other() {
        let apart = Errors::default();
        let together = Errors { spatial: [1.0, 1.0, 1.0, 1.0], ..apart };
        assert!(together.mttdl_scrubbed(3_600.0) < apart.mttdl_scrubbed(3_600.0));
        assert_eq!(together.mttdl(), apart.mttdl());
    }
}
