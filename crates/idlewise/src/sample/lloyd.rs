//! Lloyd's algorithm on weighted points, exact, which leaves out the distances that the triangle inequality answers.
//!
//! Each point keeps an upper bound of the distance to its centre and a lower bound of that to any other, as Hamerly (SDM 2010) does.
//! Where they do not tell, other centres are tried from the nearest to the point's own on, until none beyond can matter
//! (after Newling and Fleuret, ICML 2016). Only centres near a cluster lower the bounds of its points when they move.

use super::points::{Points, squared_distance};

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
    /// Exact between `settle` and the next move of a centre.
    upper: Vec<f64>,
    lower: Vec<f64>,
}

/// What of the other centres is needed to decide for the points of a cluster.
struct Around {
    /// Distances to the other centres and their numbers, growing.
    others: Vec<(f64, u32)>,
    /// How far the centres that can matter have moved at most.
    drift: f64,
    /// Distance to the first that cannot.
    far: f64,
}

impl<'a> Lloyd<'a> {
    /// One cluster of all points; panics if there is none.
    pub fn one(points: &'a Points) -> Self {
        assert!(!points.is_empty(), "there are points");
        let mut one = Self {
            points,
            centres: vec![0.0; points.width()],
            sums: Vec::new(),
            weights: vec![0.0],
            counts: Vec::new(),
            changed: Vec::new(),
            cluster: vec![0; points.len()],
            upper: vec![0.0; points.len()],
            lower: vec![f64::INFINITY; points.len()],
        };
        one.count_anew();
        one.move_centres();
        one.tighten();
        one
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

    /// By how much a centre on this point would lower the distortion at once.
    pub fn gain(&self, centre: usize) -> f64 {
        let (centre, reach) = self.reach(centre);
        let gain = |index: usize| {
            let own = self.upper[index];
            if reach[self.cluster[index] as usize] >= 2.0 * own {
                return 0.0;
            }
            let squared = squared_distance(self.points.point(index), centre);
            self.points.weights()[index] * (own * own - squared).max(0.0)
        };
        (0..self.points.len()).map(gain).sum()
    }

    /// Puts a new centre on a point, and gives it the points that are nearer to it than to theirs.
    pub fn add_centre(&mut self, centre: usize) {
        let new = self.weights.len();
        let (centre, reach) = self.reach(centre);
        for index in 0..self.points.len() {
            let (own, from) = (self.upper[index], self.cluster[index] as usize);
            if reach[from] >= 2.0 * own {
                self.lower[index] = self.lower[index].min(reach[from] - own);
                continue;
            }
            let distance = squared_distance(self.points.point(index), centre).sqrt();
            if distance < own {
                (self.upper[index], self.lower[index]) = (distance, own);
                self.cluster[index] = new as u32;
            } else {
                self.lower[index] = self.lower[index].min(distance);
            }
        }
        self.centres.extend_from_slice(centre);
        self.weights.push(0.0);
        self.count_anew();
    }

    /// Moves centres to the middle of their points, and points to their nearest centre, until no point moves, or the squares
    /// of the ways that centres moved add up to `tolerance` or less.
    pub fn settle(&mut self, tolerance: f64) {
        for _ in 0..MOST_ROUNDS {
            let drift = self.move_centres();
            let moved = self.move_points(&drift);
            if !moved || drift.iter().map(|way| way * way).sum::<f64>() <= tolerance {
                break;
            }
        }
        self.tighten();
    }

    /// The centre whose points would raise the distortion least, at once, if they all went to one other, and by how much.
    /// There must be two centres.
    pub fn least_needed(&self) -> (usize, f64) {
        let width = self.points.width();
        let loss = |cluster: usize| {
            let weight = self.weights[cluster];
            if self.counts[cluster] == 0 {
                return 0.0;
            }
            let middle: Vec<f64> = self.sums[cluster * width..][..width].iter().map(|sum| sum / weight).collect();
            let squares = self.centres.chunks_exact(width).map(|centre| squared_distance(&middle, centre));
            let others = squares.clone().enumerate().filter(|(other, _)| *other != cluster).map(|(_, square)| square);
            weight * (others.fold(f64::INFINITY, f64::min) - squares.clone().nth(cluster).unwrap_or(0.0))
        };
        let losses = (0..self.weights.len()).map(|cluster| (cluster, loss(cluster)));
        losses.min_by(|a, b| a.1.total_cmp(&b.1)).expect("there are centres")
    }

    /// Takes a centre away, one of at least two; its points go to the nearest other, and the last centre takes its number.
    pub fn remove_centre(&mut self, centre: usize) {
        let (width, last) = (self.points.width(), self.weights.len() - 1);
        self.centres.copy_within(last * width.., centre * width);
        self.centres.truncate(last * width);
        for index in 0..self.points.len() {
            if self.cluster[index] as usize == centre {
                let point = self.points.point(index);
                let (mut nearest, mut first, mut second) = (0, f64::INFINITY, f64::INFINITY);
                for (other, at) in self.centres.chunks_exact(width).enumerate() {
                    let square = squared_distance(point, at);
                    if square < first {
                        (nearest, first, second) = (other, square, first);
                    } else {
                        second = second.min(square);
                    }
                }
                self.cluster[index] = nearest as u32;
                (self.upper[index], self.lower[index]) = (first.sqrt(), second.sqrt());
            } else if self.cluster[index] as usize == last {
                self.cluster[index] = centre as u32;
            }
        }
        self.weights.truncate(last);
        self.count_anew();
    }

    /// A point's coordinates, and its distance to each centre.
    fn reach(&self, point: usize) -> (&'a [f64], Vec<f64>) {
        let (point, width) = (self.points.point(point), self.points.width());
        (point, self.centres.chunks_exact(width).map(|centre| squared_distance(point, centre).sqrt()).collect())
    }

    /// Sums and weights anew, also so that rounding errors do not pile up.
    fn count_anew(&mut self) {
        let k = self.weights.len();
        (self.sums, self.weights) = (vec![0.0; self.centres.len()], vec![0.0; k]);
        (self.counts, self.changed) = (vec![0; k], vec![true; k]);
        for index in 0..self.points.len() {
            let cluster = self.cluster[index] as usize;
            self.count_in(index, cluster, 1.0);
            self.counts[cluster] += 1;
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

    /// Gives each point to its nearest centre; whether one changed its cluster.
    fn move_points(&mut self, drift: &[f64]) -> bool {
        let mut radius = vec![0.0f64; drift.len()];
        for (upper, &cluster) in self.upper.iter_mut().zip(&self.cluster) {
            let cluster = cluster as usize;
            *upper += drift[cluster];
            radius[cluster] = radius[cluster].max(*upper);
        }
        let around: Vec<Around> =
            (0..drift.len()).map(|cluster| self.around(cluster, radius[cluster], drift)).collect();
        let width = self.points.width();
        let mut moved = false;
        for index in 0..self.points.len() {
            let from = self.cluster[index] as usize;
            let near = &around[from];
            let upper = self.upper[index];
            let lower = (self.lower[index] - near.drift).min(near.far - upper);
            self.lower[index] = lower;
            let half_way = near.others.first().map_or(f64::INFINITY, |other| other.0 / 2.0);
            if upper <= lower.max(half_way) {
                continue;
            }
            let point = self.points.point(index);
            let squared = squared_distance(point, &self.centres[from * width..][..width]);
            let own = squared.sqrt();
            self.upper[index] = own;
            if own <= lower.max(half_way) {
                continue;
            }
            let (mut nearest, mut first, mut second) = (from, squared, f64::INFINITY);
            for &(between, other) in &near.others {
                let gap = between - own;
                if gap > 0.0 && gap * gap >= second {
                    break;
                }
                let square = squared_distance(point, &self.centres[other as usize * width..][..width]);
                if square < first {
                    (nearest, first, second) = (other as usize, square, first);
                } else {
                    second = second.min(square);
                }
            }
            (self.upper[index], self.lower[index]) = (first.sqrt(), second.sqrt());
            if nearest != from {
                moved = true;
                self.cluster[index] = nearest as u32;
                self.count_in(index, from, -1.0);
                self.count_in(index, nearest, 1.0);
                self.counts[from] -= 1;
                self.counts[nearest] += 1;
                (self.changed[from], self.changed[nearest]) = (true, true);
            }
        }
        moved
    }

    fn around(&self, cluster: usize, radius: f64, drift: &[f64]) -> Around {
        let width = self.points.width();
        let centre = &self.centres[cluster * width..][..width];
        let others = self.centres.chunks_exact(width).enumerate().filter(|(other, _)| *other != cluster);
        let mut others: Vec<(f64, u32)> =
            others.map(|(other, at)| (squared_distance(centre, at).sqrt(), other as u32)).collect();
        others.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        // Farther than twice a point's distance from its centre, none can be nearer to it.
        let near = others.partition_point(|other| other.0 < 2.0 * radius);
        Around {
            drift: others[..near].iter().map(|other| drift[other.1 as usize]).fold(0.0, f64::max),
            far: others.get(near).map_or(f64::INFINITY, |other| other.0),
            others,
        }
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
            new in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..8),
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
                ours.add_centre(index.index(points.len()));
                if swap {
                    ours.add_centre(index.index(points.len()) / 2);
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
