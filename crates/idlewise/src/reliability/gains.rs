//! What scrubs, parity, and both are worth in mean time to data loss (DSN 2008, sections 6, 7.3 and 8.3).

use super::{Errors, with_dirty_parity};

/// How long a pass of a scrub takes, and which share of the disk has no valid parity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Protection {
    /// Mean length of a pass in seconds. Latent errors are detected after half of it on average.
    pub scan_s: f64,
    /// Share of the disk whose parity is dirty, see [`super::dirty_share`].
    pub dirty: f64,
}

/// Mean times to data loss, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// With neither scrubs nor parity (equation 1).
    pub none_s: f64,
    /// With scrubs (equation 2).
    pub scrub_s: f64,
    /// With parity (equations 1 and 3).
    pub parity_s: f64,
    /// With both, by the paper's equations 2 and 3, where k stays as it is without parity.
    pub both_s: f64,
    /// With both, and visible errors as frequent as without parity.
    pub both_visible_kept_s: f64,
}

impl Gains {
    /// Parity makes latent errors rarer by a factor. `together` is what scrubs and parity do where both run.
    pub fn of(errors: &Errors, parity_factor: f64, alone: Protection, together: Protection) -> Self {
        let rarer = errors.with_parity(parity_factor);
        let none_s = errors.mttdl();
        let detection = together.scan_s / 2.0;
        let parity = |dirty| with_dirty_parity(none_s, rarer.mttdl(), dirty);
        // A scrub that parity leaves no time for does nothing.
        let both = |clean: f64| match detection.is_finite() {
            true => with_dirty_parity(errors.mttdl_scrubbed(detection), clean, together.dirty),
            false => parity(together.dirty),
        };
        Self {
            none_s,
            scrub_s: errors.mttdl_scrubbed(alone.scan_s / 2.0),
            parity_s: parity(alone.dirty),
            both_s: both(rarer.equation_2(detection, errors.k())),
            both_visible_kept_s: both(rarer.mttdl_scrubbed(detection)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parity makes latent errors rarer, and by the paper's equations their losses by the square of that.
    #[test]
    fn both_are_worth_more_than_the_product() {
        let alone = Protection { scan_s: 3_617.8, dirty: 0.0 };
        let gains = Gains::of(&Errors::default(), 48.0, alone, alone);
        let [scrub, parity, both] = [gains.scrub_s, gains.parity_s, gains.both_s].map(|mttdl| mttdl / gains.none_s);
        assert!(both > scrub * parity, "{scrub} {parity} {both}");
        assert!((both / 9.5e7 - 1.0).abs() < 0.02, "{both}");
        // A third of the disk without parity costs a third of the gain.
        let dirty = Gains::of(&Errors::default(), 48.0, alone, Protection { dirty: 1.0 / 3.0, ..alone });
        assert!((dirty.both_s / gains.both_s - 2.0 / 3.0).abs() < 0.01);
        let never = Gains::of(&Errors::default(), 48.0, alone, Protection { scan_s: f64::INFINITY, dirty: 0.0 });
        assert_eq!((never.both_s, never.both_visible_kept_s), (never.parity_s, never.parity_s));
    }
}
