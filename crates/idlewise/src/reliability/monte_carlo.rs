//! The model of [`super::Errors`] played out error by error, which shows where its closed form holds.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64;

use super::Errors;

/// A mean with what it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean time to data loss in seconds.
    pub mean_s: f64,
    /// Half of its 99 % confidence interval.
    pub margin_s: f64,
}

/// How latent errors are found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Detection {
    /// Never.
    Never,
    /// By scrubs that take so many seconds each, one after another: an error waits for the rest of the pass until its place.
    Scrub(f64),
}

/// Plays so many cycles, each from two good copies to the next time that both are good, or to the loss of data.
///
/// A cycle's first error is visible or latent, whichever comes first. Until it is recovered from, or for a latent one detected and
/// recovered from, a second error that hits what is left loses data. The mean time to data loss is the mean length of a cycle
/// over the share that ends in loss (a renewal argument); its margin is that of a ratio of means.
pub fn mttdl(errors: &Errors, detection: Detection, cycles: u32, seed: u64) -> Estimate {
    let mut random = Pcg64::seed_from_u64(seed);
    // Sums of lengths, losses, and their squares and product.
    let mut sums = [0.0; 5];
    for _ in 0..cycles {
        let (length, lost) = cycle(errors, detection, &mut random);
        let terms = [length, lost, length * length, lost * lost, length * lost];
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
    let [length, lost, lengths, losses, both] = sums.map(|sum| sum / f64::from(cycles));
    let ratio = length / lost;
    let spread = lengths - 2.0 * ratio * both + ratio * ratio * losses;
    Estimate { mean_s: ratio, margin_s: 2.576 * (spread / f64::from(cycles)).sqrt() / lost }
}

/// The length of one cycle, and whether it ends in loss: zero or one.
fn cycle(errors: &Errors, detection: Detection, random: &mut Pcg64) -> (f64, f64) {
    let mut after = |mean: f64| -> f64 {
        let unit: f64 = Exp1.sample(random);
        unit * mean
    };
    let (visible, latent) = (after(errors.visible_s), after(errors.latent_s));
    let first_latent = latent < visible;
    let [vv, lv, vl, ll] = errors.spatial;
    let (by_visible, by_latent) = if first_latent { (vl, ll) } else { (vv, lv) };
    // Errors come so much sooner after one another, and hit what is left with so much probability.
    let next =
        |mean: f64, hits: f64, unit: f64| if hits > 0.0 { unit * mean * errors.temporal / hits } else { f64::INFINITY };
    let (unit_visible, unit_latent) = (after(1.0), after(1.0));
    let second = next(errors.visible_s, by_visible, unit_visible).min(next(errors.latent_s, by_latent, unit_latent));
    let recovery = if first_latent { after(errors.latent_recovery_s) } else { after(errors.visible_recovery_s) };
    let found = match detection {
        _ if !first_latent => 0.0,
        Detection::Never => f64::INFINITY,
        Detection::Scrub(pass_s) => random.random::<f64>() * pass_s,
    };
    let (first, window) = (visible.min(latent), found + recovery);
    if second < window { (first + second, 1.0) } else { (first + window, 0.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 20_081;

    /// Where recoveries and scrubs are short against the time between errors, the closed form is within the confidence interval.
    #[test]
    fn agrees_with_the_closed_form_where_windows_are_short() {
        // Errors a hundred times as often as in the paper, so that losses are not too rare to be seen.
        let paper = Errors::default();
        let often = Errors { visible_s: paper.visible_s / 1e2, latent_s: paper.latent_s / 1e2, ..paper };
        let together = Errors { spatial: [1.0, 0.5, 0.8, 0.7], latent_recovery_s: 600.0, ..often };
        for errors in [often, together] {
            for pass_s in [726.4, 3_617.8] {
                let simulated = mttdl(&errors, Detection::Scrub(pass_s), 10_000_000, SEED);
                let closed = errors.mttdl_scrubbed(pass_s / 2.0);
                assert!((simulated.mean_s - closed).abs() < simulated.margin_s, "{simulated:?} {closed}");
                assert!(simulated.margin_s < 0.05 * closed, "{simulated:?}");
            }
        }
    }

    /// Without scrubbing equation 1 counts the first latent error as the loss. Played out, data is lost when the next error hits:
    /// later by the time until then.
    #[test]
    fn shows_where_the_closed_form_does_not_hold() {
        let errors = Errors::default();
        let simulated = mttdl(&errors, Detection::Never, 400_000, SEED);
        let first_latent_then_visible = errors.latent_s + errors.visible_s;
        assert!((simulated.mean_s - first_latent_then_visible).abs() < 3.0 * simulated.margin_s, "{simulated:?}");
        assert!(simulated.mean_s > 2.0 * errors.mttdl());
    }
}
