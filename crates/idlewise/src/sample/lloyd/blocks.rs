//! Centres in blocks of eight, whose distances to a point are computed side by side.

use multiversion::multiversion;

/// Centres of a block.
pub const LANES: usize = 8;

/// Number of blocks of so many centres.
pub fn count(centres: usize) -> usize {
    centres.div_ceil(LANES)
}

/// The block of a centre.
pub fn of(centre: usize) -> usize {
    centre / LANES
}

/// Centres, laid out for computing: of the eight of a block each coordinate side by side.
pub struct Blocks {
    coordinates: Vec<[f64; LANES]>,
    width: usize,
}

/// The centre nearest to a point so far, and its distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearest {
    pub centre: usize,
    pub distance: f64,
}

impl Blocks {
    /// From padded centres.
    pub fn new(centres: &[f64], width: usize) -> Self {
        // A place that is left over is far from everything.
        let mut coordinates = vec![[f64::INFINITY; LANES]; count(centres.len() / width) * width];
        for (number, centre) in centres.chunks_exact(width).enumerate() {
            let block = &mut coordinates[of(number) * width..][..width];
            block.iter_mut().zip(centre).for_each(|(lanes, value)| lanes[number % LANES] = *value);
        }
        Self { coordinates, width }
    }

    /// The centre nearest to a padded point, if one is nearer than `nearest`. Blocks are left out of which `lower`, a bound of
    /// the distance to all its centres but `nearest`, says that none is; of the others it becomes exact.
    pub fn nearer(&self, point: &[f64], mut nearest: Nearest, lower: &mut [f64]) -> Nearest {
        for (block, centres) in self.coordinates.chunks_exact(self.width).enumerate() {
            if lower[block] >= nearest.distance {
                continue;
            }
            let mut squares = [0.0; LANES];
            squares_to(point, centres, &mut squares);
            let (own, own_lane) = (of(nearest.centre), nearest.centre % LANES);
            if own == block {
                squares[own_lane] = f64::INFINITY;
            }
            let (lane, square) = least(&squares);
            let distance = square.sqrt();
            if distance >= nearest.distance {
                lower[block] = distance;
                continue;
            }
            squares[lane] = f64::INFINITY;
            lower[block] = least(&squares).1.sqrt();
            lower[own] = lower[own].min(nearest.distance);
            nearest = Nearest { centre: block * LANES + lane, distance };
        }
        nearest
    }
}

/// The first of the least.
fn least(squares: &[f64; LANES]) -> (usize, f64) {
    let mut least = (0, squares[0]);
    for (lane, &square) in squares.iter().enumerate().skip(1) {
        least = if square < least.1 { (lane, square) } else { least };
    }
    least
}

/// Squares of the distances from a point to the centres of a block. Compiled for wider registers as well; the same numbers come
/// out, as nothing is contracted.
#[multiversion(targets("x86_64+avx2"))]
fn squares_to(point: &[f64], centres: &[[f64; LANES]], squares: &mut [f64; LANES]) {
    let mut sums = [0.0; LANES];
    for (value, lanes) in point.iter().zip(centres) {
        for lane in 0..LANES {
            let difference = value - lanes[lane];
            sums[lane] += difference * difference;
        }
    }
    *squares = sums;
}
