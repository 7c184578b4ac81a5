//! Bounds that leave points alone.

use multiversion::multiversion;

use super::blocks;
use crate::sample::points::squared_distance;

/// Bounds are kept by fours, to be lowered side by side.
pub const QUAD: usize = 4;

/// Fours of bounds for so many centres.
pub fn quads(centres: usize) -> usize {
    blocks::count(centres).div_ceil(QUAD)
}

/// What of the other centres is needed to leave points of a cluster alone.
#[derive(Default)]
pub struct Around {
    /// Of each cluster, half the distance to the nearest other centre: no point within it is nearer to any.
    half_way: Vec<f64>,
    /// Of each cluster and block, how far those that can matter have moved at most ...
    drift: Vec<[f64; QUAD]>,
    /// ... and the distance to the nearest that cannot.
    far: Vec<[f64; QUAD]>,
}

impl Around {
    /// Of centres that have moved by `drift`, and clusters none of whose points is farther from its centre than `radius`.
    pub fn new(centres: &[f64], width: usize, radius: &[f64], drift: &[f64]) -> Self {
        let quads = quads(drift.len());
        let mut around = Self::default();
        for (cluster, centre) in centres.chunks_exact(width).enumerate() {
            around.drift.resize((cluster + 1) * quads, [0.0; QUAD]);
            around.far.resize((cluster + 1) * quads, [f64::INFINITY; QUAD]);
            let moved = around.drift[cluster * quads..].as_flattened_mut();
            let far = around.far[cluster * quads..].as_flattened_mut();
            let mut nearest = f64::INFINITY;
            for (other, at) in centres.chunks_exact(width).enumerate().filter(|(other, _)| *other != cluster) {
                let (distance, block) = (squared_distance(centre, at).sqrt(), blocks::of(other));
                nearest = nearest.min(distance);
                // Farther than twice a point's distance from its centre, none can be nearer to it.
                match distance < 2.0 * radius[cluster] {
                    true => moved[block] = moved[block].max(drift[other]),
                    false => far[block] = far[block].min(distance),
                }
            }
            around.half_way.push(nearest / 2.0);
        }
        around
    }
}

/// Lowers the bounds of all points, which belong to `clusters`, after centres have moved. A point whose distance to its own
/// centre is not above `enough` has no nearer one.
#[multiversion(targets("x86_64+avx2"))]
pub fn lower_bounds(bounds: &mut [[f64; QUAD]], clusters: &[u32], upper: &[f64], around: &Around, enough: &mut [f64]) {
    let quads = bounds.len() / clusters.len();
    let points = bounds.chunks_exact_mut(quads).zip(clusters).zip(upper.iter().zip(enough));
    for ((bounds, &cluster), (upper, enough)) in points {
        let from = cluster as usize * quads;
        let mut all = [f64::INFINITY; QUAD];
        let near = around.drift[from..][..quads].iter().zip(&around.far[from..][..quads]);
        for (bound, (drift, far)) in bounds.iter_mut().zip(near) {
            for lane in 0..QUAD {
                bound[lane] = lesser(bound[lane] - drift[lane], far[lane] - upper);
                all[lane] = lesser(all[lane], bound[lane]);
            }
        }
        let least = lesser(lesser(all[0], all[2]), lesser(all[1], all[3]));
        *enough = least.max(around.half_way[cluster as usize]);
    }
}

/// In one instruction, as numbers are never NaN here.
#[inline(always)]
fn lesser(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// Points that may have changed their cluster. Listed without a branch: nothing foretells which they are.
pub struct Doubtful {
    points: Vec<u32>,
    count: usize,
}

impl Doubtful {
    pub fn new(most: usize) -> Self {
        Self { points: vec![0; most], count: 0 }
    }

    #[inline(always)]
    pub fn push(&mut self, point: usize, doubt: bool) {
        self.points[self.count] = point as u32;
        self.count += usize::from(doubt);
    }

    pub fn points(&self) -> &[u32] {
        &self.points[..self.count]
    }
}
