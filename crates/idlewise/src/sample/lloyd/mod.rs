//! Lloyd's algorithm on weighted points, exact but for rounding, which leaves out the distances that the triangle inequality
//! answers.
//!
//! Each point keeps an upper bound of the distance to its centre, and a lower bound of that to the centres of each block but its
//! own: Yinyang k-means (Ding et al., ICML 2015), whose groups are blocks of centres here that are computed side by side. Only
//! centres near a cluster lower the bounds of its points when they move.

mod blocks;
mod bounds;
mod place;

use blocks::{Blocks, Nearest};
use bounds::{Around, Doubtful, QUAD, lower_bounds, quads};

use crate::sample::points::{Points, squared_distance};

/// Lloyd's algorithm stops after so many rounds even if points still change their cluster, as scikit-learn does.
const MOST_ROUNDS: usize = 300;

/// A clustering at work.
#[derive(Clone)]
pub(super) struct Lloyd<'a> {
    points: &'a Points,
    centres: Vec<f64>,
    /// Of each cluster the weighted sum of its points, its weight and its number of points.
    sums: Vec<f64>,
    weights: Vec<f64>,
    counts: Vec<usize>,
    /// Whether a cluster has won or lost points since its centre was computed.
    changed: Vec<bool>,
    /// The cluster of each point.
    cluster: Vec<u32>,
    /// Distance of each point to its centre at most; exact between `settle` and the next move of a centre.
    upper: Vec<f64>,
    /// Of each point and block of centres: distance to any of these but the point's own, at least; infinite where there is none.
    lower: Vec<[f64; QUAD]>,
}

impl<'a> Lloyd<'a> {
    /// All points in one cluster.
    pub fn one(points: &'a Points) -> Self {
        let mut one = Self::of_centres(points, vec![0.0; points.width()]);
        one.settle(0.0);
        one
    }

    /// Each point at the nearest of these centres, which are padded and at least one.
    pub fn of_centres(points: &'a Points, centres: Vec<f64>) -> Self {
        let k = centres.len() / points.width();
        let mut lloyd = Self {
            points,
            centres,
            sums: Vec::new(),
            weights: vec![0.0; k],
            counts: Vec::new(),
            changed: Vec::new(),
            cluster: vec![0; points.len()],
            upper: vec![0.0; points.len()],
            lower: vec![[f64::INFINITY; QUAD]; quads(k) * points.len()],
        };
        let blocks = lloyd.blocks();
        for index in 0..points.len() {
            lloyd.find_nearest(index, &blocks);
        }
        lloyd.count_anew();
        lloyd
    }

    /// All points.
    pub fn points(&self) -> &'a Points {
        self.points
    }

    /// The centres, padded.
    pub fn centres(&self) -> &[f64] {
        &self.centres
    }

    /// The weight of each cluster, as far as rounding goes.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The cluster of each point.
    pub fn cluster(&self) -> &[u32] {
        &self.cluster
    }

    /// What each point adds to the distortion: its weight times the square of its distance to its centre.
    pub fn shares(&self) -> impl Iterator<Item = f64> + '_ {
        self.upper.iter().zip(self.points.weights()).map(|(distance, weight)| weight * distance * distance)
    }

    /// The sum of all shares, exact once settled.
    pub fn distortion(&self) -> f64 {
        self.shares().sum()
    }

    /// Moves centres to the middle of their points, and points to their nearest centre, until no point moves, or the centres
    /// lower the distortion by no more than a share of `tolerance`. Returns about how many distances that took.
    pub fn settle(&mut self, tolerance: f64) -> usize {
        let mut effort = 0;
        self.count_anew();
        let little = tolerance * self.distortion();
        for _ in 0..MOST_ROUNDS {
            let drift = self.move_centres();
            // To the middle, a centre lowers the distortion by just that.
            let lowered: f64 = drift.iter().zip(&self.weights).map(|(way, weight)| weight * way * way).sum();
            let (moved, tried) = self.move_points(&drift);
            effort += tried;
            if !moved || lowered <= little {
                break;
            }
        }
        self.tighten();
        effort
    }

    fn blocks(&self) -> Blocks {
        Blocks::new(&self.centres, self.points.width())
    }

    /// Tries all centres for one point.
    fn find_nearest(&mut self, index: usize, blocks: &Blocks) {
        let distance = squared_distance(self.points.point(index), &self.centres[..self.points.width()]).sqrt();
        let quads = quads(self.weights.len());
        let lower = self.lower[index * quads..][..quads].as_flattened_mut();
        lower[..blocks::count(self.weights.len())].fill(0.0);
        let nearest = blocks.nearer(self.points.point(index), Nearest { centre: 0, distance }, lower);
        (self.upper[index], self.cluster[index]) = (nearest.distance, nearest.centre as u32);
    }

    /// Sums and weights anew, also so that rounding errors do not pile up.
    fn count_anew(&mut self) {
        let k = self.weights.len();
        (self.sums, self.weights) = (vec![0.0; self.centres.len()], vec![0.0; k]);
        (self.counts, self.changed) = (vec![0; k], vec![true; k]);
        for index in 0..self.points.len() {
            let cluster = self.cluster[index] as usize;
            self.joins(index, cluster);
        }
    }

    fn count_in(&mut self, point: usize, cluster: usize, sign: f64) {
        let (width, weight) = (self.points.width(), sign * self.points.weights()[point]);
        self.weights[cluster] += weight;
        let sums = &mut self.sums[cluster * width..][..width];
        sums.iter_mut().zip(self.points.point(point)).for_each(|(sum, value)| *sum += weight * value);
    }

    /// How far each centre moved. One without points stays where it is.
    fn move_centres(&mut self) -> Vec<f64> {
        let width = self.points.width();
        let centres = self.centres.chunks_exact_mut(width).zip(self.sums.chunks_exact(width));
        let mut drift = vec![0.0; self.weights.len()];
        for (cluster, (centre, sum)) in centres.enumerate() {
            if std::mem::take(&mut self.changed[cluster]) && self.counts[cluster] > 0 {
                let middle: Vec<f64> = sum.iter().map(|sum| sum / self.weights[cluster]).collect();
                drift[cluster] = squared_distance(centre, &middle).sqrt();
                centre.copy_from_slice(&middle);
            }
        }
        drift
    }

    /// Gives each point to its nearest centre, after centres have moved by `drift`; whether one changed its cluster,
    /// and about how many distances that took.
    fn move_points(&mut self, drift: &[f64]) -> (bool, usize) {
        let mut radius = vec![0.0f64; drift.len()];
        for (upper, &cluster) in self.upper.iter_mut().zip(&self.cluster) {
            let cluster = cluster as usize;
            *upper += drift[cluster];
            radius[cluster] = radius[cluster].max(*upper);
        }
        let around = Around::new(&self.centres, self.points.width(), &radius, drift);
        let mut enough = vec![0.0; self.points.len()];
        lower_bounds(&mut self.lower, &self.cluster, &self.upper, &around, &mut enough);
        let (blocks, width, quads) = (self.blocks(), self.points.width(), quads(drift.len()));
        let mut doubtful = Doubtful::new(self.points.len());
        for (index, (upper, enough)) in self.upper.iter().zip(&enough).enumerate() {
            doubtful.push(index, upper > enough);
        }
        let mut more = Doubtful::new(doubtful.points().len());
        for &index in doubtful.points() {
            let index = index as usize;
            let centre = &self.centres[self.cluster[index] as usize * width..][..width];
            self.upper[index] = squared_distance(self.points.point(index), centre).sqrt();
            more.push(index, self.upper[index] > enough[index]);
        }
        let mut moved = false;
        for &index in more.points() {
            let index = index as usize;
            let own = Nearest { centre: self.cluster[index] as usize, distance: self.upper[index] };
            let lower = self.lower[index * quads..][..quads].as_flattened_mut();
            let nearest = blocks.nearer(self.points.point(index), own, lower);
            if nearest.centre != own.centre {
                moved = true;
                self.changes_cluster(index, nearest);
            }
        }
        (moved, doubtful.points().len() + more.points().len() * blocks::LANES)
    }

    fn changes_cluster(&mut self, point: usize, to: Nearest) {
        let from = std::mem::replace(&mut self.cluster[point], to.centre as u32) as usize;
        self.upper[point] = to.distance;
        self.count_in(point, from, -1.0);
        self.counts[from] -= 1;
        self.changed[from] = true;
        self.joins(point, to.centre);
    }

    fn joins(&mut self, point: usize, cluster: usize) {
        self.count_in(point, cluster, 1.0);
        self.counts[cluster] += 1;
        self.changed[cluster] = true;
    }

    fn tighten(&mut self) {
        let width = self.points.width();
        for (index, (upper, &cluster)) in self.upper.iter_mut().zip(&self.cluster).enumerate() {
            let centre = &self.centres[cluster as usize * width..][..width];
            *upper = squared_distance(self.points.point(index), centre).sqrt();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    /// Every distance in every round; centres and clusters.
    fn naive(points: &Points, mut centres: Vec<f64>) -> (Vec<f64>, Vec<u32>) {
        let width = points.width();
        let mut clusters = Vec::new();
        loop {
            let nearest = |index: usize| {
                let distances = centres.chunks_exact(width).map(|centre| squared_distance(points.point(index), centre));
                distances.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0 as u32
            };
            let now: Vec<u32> = (0..points.len()).map(nearest).collect();
            if now == clusters {
                return (centres, clusters);
            }
            clusters = now;
            for (cluster, centre) in centres.chunks_exact_mut(width).enumerate() {
                let members: Vec<usize> = (0..points.len()).filter(|&i| clusters[i] == cluster as u32).collect();
                let weight: f64 = members.iter().map(|&i| points.weights()[i]).sum();
                for (column, value) in centre.iter_mut().enumerate().filter(|_| weight > 0.0) {
                    *value =
                        members.iter().map(|&i| points.weights()[i] * points.point(i)[column]).sum::<f64>() / weight;
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, rng_seed: RngSeed::Fixed(2015), ..ProptestConfig::default() })]

        /// Rounded coordinates make equal points, irrational scales no equal distances.
        #[test]
        fn is_what_every_distance_in_every_round_gives(
            dimensions in 1usize..9,
            rows in prop::collection::vec((prop::collection::vec(-30i32..30, 8), 1u32..2_000, 0usize..4), 8..120),
            new in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..40),
        ) {
            let scales = [1.0, 2f64.sqrt(), 3f64.sqrt(), 5f64.sqrt(), 7f64.sqrt(), 0.1f64.exp(), 0.2f64.exp(), 0.3f64.exp()];
            let mut coordinates = Vec::new();
            for (row, _, blob) in &rows {
                let at = |column: usize| f64::from(row[column]) * scales[column] * 0.1 + *blob as f64 * 7.3;
                coordinates.extend((0..dimensions).map(at));
            }
            let points = Points::new(dimensions, &coordinates, rows.iter().map(|row| f64::from(row.1)).collect());
            let mut ours = Lloyd::one(&points);
            for (index, swap) in new {
                let (one, other) = (index.index(points.len()), index.index(points.len()) / 2);
                if ours.upper[one] == 0.0 {
                    continue;
                }
                ours.add_centre(one);
                if swap && ours.upper[other] > 0.0 {
                    ours.add_centre(other);
                    let (least, loss) = ours.least_needed();
                    let before: f64 = ours.shares().sum();
                    ours.remove_centre(least);
                    prop_assert!(ours.shares().sum::<f64>() <= (before + loss) * (1.0 + 1e-9));
                }
                // Points at two centres in the same place belong to either.
                let all: Vec<&[f64]> = ours.centres().chunks_exact(points.width()).collect();
                let same = |at: usize| all[..at].iter().any(|other| squared_distance(other, all[at]) < 1e-18);
                if (1..all.len()).any(same) {
                    break;
                }
                let (centres, clusters) = naive(&points, ours.centres().to_vec());
                ours.settle(0.0);
                prop_assert_eq!(ours.cluster(), &clusters[..]);
                for (ours, naive) in ours.centres().iter().zip(&centres) {
                    prop_assert!((ours - naive).abs() < 1e-9, "{ours} {naive}");
                }
                for (index, upper) in ours.upper.iter().enumerate() {
                    let centre = &centres[clusters[index] as usize * points.width()..][..points.width()];
                    prop_assert!((upper - squared_distance(points.point(index), centre).sqrt()).abs() < 1e-9);
                }
            }
        }
    }
}
