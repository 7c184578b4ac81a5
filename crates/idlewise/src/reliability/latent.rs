//! How long latent errors stay unseen (MLET) in either scan order, when they come in bursts.
//!
//! Latent errors are clustered in space and time (Bairavasundaram et al., SIGMETRICS 2007; Schroeder et al., FAST 2010). A burst is
//! taken to come at once, at any moment and place, its errors at exponential distances. A scan in sequential order meets them all
//! after half a pass on average, however many they are. A staggered one meets the first of those in a region sooner, and then
//! scans the whole region (Oprea and Juels, FAST 2010; DSN 2012, section II).

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rand_pcg::Pcg64;

use crate::Bytes;
use crate::order::{Name, Order, Place, Surface};

/// How errors of a burst lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Errors in a burst, geometric with this mean; at least 1.
    pub errors: f64,
    /// Mean distance from one to the next.
    pub distance: Bytes,
}

/// Errors beyond this many do not change a burst's times any more.
const MOST_ERRORS: usize = 300;

impl Bursts {
    /// Places of the errors of a burst, ascending, anywhere on a device of `size` bytes.
    fn draw(&self, size: u64, random: &mut Pcg64) -> Vec<u64> {
        let mut places = vec![random.random_range(0..size)];
        let goes_on = 1.0 - 1.0 / self.errors.max(1.0);
        while places.len() < MOST_ERRORS && random.random::<f64>() < goes_on {
            let unit: f64 = Exp1.sample(random);
            let next =
                places[places.len() - 1].saturating_add((unit * self.distance.0 as f64) as u64).saturating_add(1);
            if next >= size {
                break;
            }
            places.push(next);
        }
        places
    }
}

/// Mean latent error time as a share of a pass: the mean over errors of the time from a burst to the verify that finds each. Over
/// `bursts` drawn places the mean over all moments is exact, up to the time that a region's own scan takes from the pass.
pub fn mlet(order: &Order, surface: Surface, bursts: &Bursts, count: u32, seed: u64) -> f64 {
    let mut random = Pcg64::seed_from_u64(seed);
    let (mut sum, mut errors) = (0.0, 0);
    for _ in 0..count {
        let places = bursts.draw(surface.size.0, &mut random);
        errors += places.len();
        sum += match order.name {
            Name::STAGGERED => staggered(order, surface, &places),
            // Whatever the order, each error is half a pass away, unless one that is found brings others nearer.
            _ => 0.5 * places.len() as f64,
        };
    }
    sum / errors as f64
}

/// The sum of shares of a pass for which the errors of one burst stay unseen, on average over all moments at which it may come.
fn staggered(order: &Order, surface: Surface, places: &[u64]) -> f64 {
    let Geometry { region, visit } = Geometry::of(order, surface);
    let size = surface.size.0 as f64;
    let mut sum = 0.0;
    for group in places.chunk_by(|a, b| a / region == b / region) {
        // When each is visited in a pass, as a share of it, in that order.
        let mut visits: Vec<(f64, u64)> =
            group.iter().map(|&place| (course(place, region, visit, surface) / size, place % region)).collect();
        visits.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (index, &(at, offset)) in visits.iter().enumerate() {
            // The burst comes after the visit before this one and before it: this error is the first that is found.
            let before = if index == 0 { visits[visits.len() - 1].0 - 1.0 } else { visits[index - 1].0 };
            let arc = at - before;
            let then: f64 = group.iter().map(|&place| region_scan(offset, place % region, region, visit) / size).sum();
            sum += arc * arc / 2.0 * group.len() as f64 + arc * then;
        }
    }
    sum
}

/// Bytes of the region's scan from the error at one offset to that at another: the rest of the region first, then what the rounds
/// had behind them.
fn region_scan(found: u64, other: u64, region: u64, visit: u64) -> f64 {
    let bytes = match other {
        _ if other >= found => other - found,
        // Before it in the same visit: found together with it.
        _ if other / visit == found / visit => 0,
        _ => region.saturating_sub(found) + other,
    };
    bytes as f64
}

/// Bytes that a pass has behind it when it comes to a place.
fn course(place: u64, region: u64, visit: u64, surface: Surface) -> f64 {
    let size = surface.size.0;
    let (index, offset) = (place / region, place % region);
    let (full, short) = (size / region, size % region);
    let depth = offset / visit * visit;
    let piece = visit.min(region - depth);
    // Rounds behind, then the regions before this one in the present round, then this piece.
    let rounds = full * depth.min(region) + depth.min(short);
    (rounds + index * piece + (offset - depth)) as f64
}

/// Region and visit in bytes.
struct Geometry {
    region: u64,
    visit: u64,
}

impl Geometry {
    fn of(order: &Order, surface: Surface) -> Self {
        let block = u64::from(surface.block.max(1));
        let region = surface.size.0.div_ceil(order.regions.unwrap_or(1).max(1)).next_multiple_of(block);
        Self { region, visit: order.visit.map_or(region, |visit| visit.0).clamp(1, region) }
    }
}

/// The same by walking the order itself: a burst comes at a random moment of a pass, and every piece takes its share of time.
pub fn mlet_simulated(order: &Order, surface: Surface, bursts: &Bursts, request: Bytes, count: u32, seed: u64) -> f64 {
    let mut random = Pcg64::seed_from_u64(seed);
    let (mut sum, mut errors) = (0.0, 0);
    for _ in 0..count {
        let mut unseen = bursts.draw(surface.size.0, &mut random);
        errors += unseen.len();
        let block = u64::from(surface.block);
        let begins = random.random_range(0..surface.size.0 / block) * block;
        let mut scan = order.make(surface, &Place::after(begins)).expect("a place within the device");
        let mut elapsed = 0u64;
        while !unseen.is_empty() {
            let Some(extent) = scan.next(request) else {
                scan = order.make(surface, &Place::default()).expect("the beginning");
                continue;
            };
            let found: Vec<u64> =
                unseen.extract_if(.., |place| (extent.offset.0..extent.end().0).contains(place)).collect();
            for place in found {
                sum += (elapsed + place - extent.offset.0) as f64;
                scan.unreadable(Bytes(place));
            }
            elapsed += extent.length.0;
        }
    }
    sum / errors as f64 / surface.size.0 as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 2010;
    const MIB: u64 = 1 << 20;
    const DISK: Surface = Surface { size: Bytes(4096 * MIB), block: 4096 };

    #[test]
    fn one_error_alone_waits_for_half_a_pass_in_either_order() {
        let alone = Bursts { errors: 1.0, distance: Bytes(MIB) };
        for order in [Order::SEQUENTIAL, Order::staggered(128, Bytes(64 << 10))] {
            assert!((mlet(&order, DISK, &alone, 2_000, SEED) - 0.5).abs() < 1e-9);
        }
    }

    /// The exact means agree with the order walked piece by piece.
    #[test]
    fn exact_and_walked_agree() {
        let bursts = Bursts { errors: 6.0, distance: Bytes(4 * MIB) };
        let visit = Bytes(MIB);
        for order in
            [Order::SEQUENTIAL, Order::staggered(16, visit), Order::staggered(128, visit), Order::staggered(500, visit)]
        {
            let exact = mlet(&order, DISK, &bursts, 20_000, SEED);
            let walked = mlet_simulated(&order, DISK, &bursts, visit, 1_500, SEED + 1);
            assert!((exact - walked).abs() < 0.03, "{order}: {exact} {walked}");
        }
    }

    /// Errors that spread over a region are found by its next visits; regions much larger than the burst gain nothing.
    #[test]
    fn staggered_wins_where_regions_are_about_as_large_as_bursts() {
        let bursts = Bursts { errors: 10.0, distance: Bytes(2 * MIB) };
        let at = |regions| mlet(&Order::staggered(regions, Bytes(64 << 10)), DISK, &bursts, 5_000, SEED);
        let (few, right) = (at(4), at(256));
        assert!(few > 0.4 && right < 0.25, "{few} {right}");
    }
}
