//! An [`Array`] played out failure by failure: each rebuild takes its time from the moment of the failure, and each latent error has a
//! place and a moment. It shows where the closed form holds.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, Poisson};
use rand_pcg::Pcg64;

use super::Array;
use super::monte_carlo::Estimate;

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayedArray {
    /// The mean time to data loss; infinite where none was lost.
    pub mttdl: Estimate,
    /// How often data were lost, and how often all of them.
    pub losses: (u32, u32),
}

/// Plays so many cycles, each from all disks being sound to the next time that they are, or to a loss of data. The mean time to that is the
/// mean length of a cycle over the share that ends in loss.
pub fn play(array: &Array, cycles: u32, seed: u64) -> PlayedArray {
    let mut random = Pcg64::seed_from_u64(seed);
    let (mut time, mut losses) = (0.0, (0, 0));
    for _ in 0..cycles {
        let (length, end) = cycle(array, &mut random);
        time += length;
        losses.0 += u32::from(end != End::Sound);
        losses.1 += u32::from(end == End::Everything);
    }
    let mean_s = time / f64::from(losses.0);
    // Losses are rare, so that their number is of Poisson's distribution: this is 99 %.
    let margin_s = 2.576 * mean_s / f64::from(losses.0).sqrt();
    PlayedArray { mttdl: Estimate { mean_s, margin_s }, losses }
}

#[derive(PartialEq)]
enum End {
    Sound,
    Stretches,
    Everything,
}

fn cycle(array: &Array, random: &mut Pcg64) -> (f64, End) {
    let (disks, may_fail) = (array.layout.disks(), array.layout.may_fail() as usize);
    let mut now = 0.0;
    // When each rebuild ends, the first to end first.
    let mut rebuilds: Vec<f64> = Vec::new();
    loop {
        let unit: f64 = Exp1.sample(random);
        let fails = now + unit * array.failure_s / f64::from(disks - rebuilds.len() as u32);
        if let Some(&ends) = rebuilds.first().filter(|&&ends| ends <= fails) {
            rebuilds.remove(0);
            now = ends;
            if rebuilds.is_empty() {
                return (now, End::Sound);
            }
            // Failures know no past: another is drawn.
            continue;
        }
        now = fails;
        rebuilds.push(now + array.rebuild_s);
        if rebuilds.len() > may_fail {
            return (now, End::Everything);
        }
        if rebuilds.len() == may_fail && any_lost(array, (rebuilds[0] - now) / array.rebuild_s, random) {
            return (now, End::Stretches);
        }
    }
}

/// Whether a stretch cannot be read of what is `left` of the rebuild that is furthest, as a share.
fn any_lost(array: &Array, left: f64, random: &mut Pcg64) -> bool {
    let others = f64::from(array.layout.disks() - array.layout.may_fail());
    let mut drawn =
        |mean: f64| if mean > 0.0 { Poisson::new(mean).map_or(0.0, |of| of.sample(random)) as u64 } else { 0 };
    // Of the errors of a whole pass and of the rebuild.
    let pass_s = 2.0 * array.unseen_s;
    let latent = drawn(others * (pass_s + left * array.rebuild_s) / array.latent_s);
    let read_errors = drawn(others * array.read_errors * left);
    let is_lost = |random: &mut Pcg64| {
        let came = random.random::<f64>() * (pass_s + left * array.rebuild_s) - pass_s;
        let place = random.random::<f64>();
        // The scrub finds it at a moment of the pass after it; the rebuild comes to its place in turn.
        let is_unseen = came + random.random::<f64>() * pass_s > 0.0;
        let read_at = (place - (1.0 - left)) * array.rebuild_s;
        read_at >= 0.0 && came <= read_at && (came > 0.0 || is_unseen)
    };
    read_errors > 0 || (0..latent).any(|_| is_lost(random))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 20_261;

    /// Failures so often that losses are seen, and so rare that the closed form holds.
    #[test]
    fn the_closed_form_holds_where_rebuilds_are_short() {
        for (layout, read_errors) in
            [("raid5:6", 0.0), ("mirror:2", 0.02), ("raid6:6", 0.0), ("raid6:8", 0.01), ("mirror:3", 0.0)]
        {
            let (latent_s, rebuild_s, unseen_s) = (3e6, 4e3, 4e4);
            let array =
                Array { layout: layout.parse().unwrap(), failure_s: 4e5, latent_s, read_errors, rebuild_s, unseen_s };
            let (closed, played) = (array.losses(), play(&array, 2_000_000, SEED));
            let (losses, everything) = played.losses;
            assert!(losses > 300, "{layout}: {played:?}");
            let off = (played.mttdl.mean_s - closed.mttdl_s).abs();
            assert!(
                off < played.mttdl.margin_s + 0.03 * closed.mttdl_s,
                "seed {SEED}, {layout}: {played:?} {closed:?}"
            );
            let share = f64::from(everything) / f64::from(losses);
            let spread = (closed.of_everything * (1.0 - closed.of_everything) / f64::from(losses)).sqrt();
            assert!((share - closed.of_everything).abs() < 3.0 * spread + 0.02, "{layout}: {share} {closed:?}");
        }
    }
}
