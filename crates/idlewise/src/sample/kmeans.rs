//! Weighted k-means for every number of clusters, from several seeds (SIGMETRICS 2015, section 4.4).

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;

use super::coreset::coreset;
use super::lloyd::Lloyd;
use super::points::{Points, squared_distance};

/// Centres are sought on no more points than this, where there are more on a coreset of them.
const SOUGHT: usize = 8_192;

/// Clusterings that grow side by side, of which the best is kept for each number of clusters.
const SEEDS: u64 = 2;

/// For k clusters others start afresh, as growing may have begun badly, until about a k-th of so many distances have been
/// computed, or so many have been tried: few clusters are little work, and differ most by where they began.
const EFFORT: usize = 8_000_000;
const MOST_FRESH: usize = 30;

/// Points that are tried for each new centre.
const CANDIDATES: usize = 8;

/// Centres that are put elsewhere at most before there is one more.
const SWAPS: usize = 6;

/// A centre is put elsewhere where it is worth no more than this share of what it gains there.
const WORTH: f64 = 0.9;

/// Lloyd's algorithm stops where a round of it lowers the distortion by no more than this share.
const TOLERANCE: f64 = 3e-6;

/// A distortion below this share of the weighted squares of all coordinates is rounding, and counts as zero.
const ROUNDING: f64 = 1e-24;

/// Points in clusters.
#[derive(Clone, Debug)]
pub struct Clustering {
    /// The cluster of each point.
    pub cluster: Vec<u32>,
    /// The weight of each cluster; 0 for one that lost all its points.
    pub weights: Vec<f64>,
    /// The sum over all points of weight times squared distance to the centre of their cluster, which is the centroid up to the
    /// last round of Lloyd's algorithm.
    pub distortion: f64,
    /// The point of each cluster that is nearest to its centre, the first of them; none in a cluster without points.
    pub nearest: Vec<Option<usize>>,
}

impl Clustering {
    /// Number of clusters.
    pub fn k(&self) -> usize {
        self.weights.len()
    }

    fn of(lloyd: &Lloyd, points: &Points, rounding: f64) -> Self {
        let (width, k) = (points.width(), lloyd.weights().len());
        let (mut weights, mut distortion) = (vec![0.0; k], 0.0);
        let mut nearest: Vec<Option<(f64, usize)>> = vec![None; k];
        for (index, &cluster) in lloyd.cluster().iter().enumerate() {
            let cluster = cluster as usize;
            let squared = squared_distance(points.point(index), &lloyd.centres()[cluster * width..][..width]);
            weights[cluster] += points.weights()[index];
            distortion += points.weights()[index] * squared;
            if nearest[cluster].is_none_or(|(least, _)| squared < least) {
                nearest[cluster] = Some((squared, index));
            }
        }
        let nearest = nearest.into_iter().map(|nearest| Some(nearest?.1)).collect();
        let distortion = if distortion <= rounding { 0.0 } else { distortion };
        Self { cluster: lloyd.cluster().to_vec(), weights, distortion, nearest }
    }
}

/// The best clusterings found into 1, 2, ... `most` clusters, as far as there are so many different points; none without a point.
/// `done` is told the share done. For a seed the result is the same on any number of threads.
///
/// Centres are sought on few points that stand for all of them, a coreset, and then moved by Lloyd's algorithm on all points.
///
/// From each seed a clustering grows by one cluster at a time: the new centre is, of some points drawn by their share of
/// the distortion (k-means++), the one that lowers it most, and Lloyd's algorithm goes on from there. Then, while a centre found
/// in the same way gains more than the least needed one is worth, it takes that one's place. Others start afresh, as far as that
/// is little work, and the best one grows on.
pub fn clusterings(points: &Points, most: usize, seed: u64, done: &(dyn Fn(f64) + Sync)) -> Vec<Clustering> {
    if points.is_empty() || most == 0 {
        return Vec::new();
    }
    let sought = if points.len() > SOUGHT { Cow::Owned(coreset(points, SOUGHT, seed)) } else { Cow::Borrowed(points) };
    let steps = AtomicUsize::new(0);
    let step = || {
        let count = steps.fetch_add(1, Ordering::Relaxed) + 1;
        done((count as f64 / (most as f64 * (SEEDS + 1) as f64)).min(1.0));
    };
    let seek = |run: u64| grow(Lloyd::one(&sought), most, seed ^ run << 48, &step);
    let chains: Vec<Vec<Lloyd>> = (0..SEEDS).into_par_iter().map(seek).collect();
    let best: Vec<&Lloyd> = (0..most)
        .map_while(|index| {
            let found = chains.iter().filter_map(|chain| chain.get(index));
            found.min_by(|a, b| a.distortion().total_cmp(&b.distortion()))
        })
        .collect();
    let rounding = rounding(points);
    let settle = |sought: &Lloyd| {
        let mut lloyd = Lloyd::of_centres(points, sought.centres().to_vec());
        lloyd.settle(TOLERANCE);
        lloyd
    };
    let settled = |sought: &&Lloyd| {
        let clustering = Clustering::of(&settle(sought), points, rounding);
        step();
        clustering
    };
    let mut all: Vec<Clustering> = best.par_iter().with_max_len(1).map(settled).collect();
    if all.len() < most && all.last().is_some_and(|last| last.distortion > 0.0) {
        // All points are in more places than the few.
        let more = grow(settle(best[all.len() - 1]), most, seed, &step);
        all.extend(more[1..].iter().map(|lloyd| Clustering::of(lloyd, points, rounding)));
    }
    all
}

/// From `first` on, one clustering for each number of clusters up to `most`, as long as there is distortion.
fn grow<'a>(first: Lloyd<'a>, most: usize, seed: u64, step: &(dyn Fn() + Sync)) -> Vec<Lloyd<'a>> {
    let points = first.points();
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let rounding = rounding(points);
    let mut lloyd = first.clone();
    let mut all = vec![first];
    step();
    while lloyd.weights().len() < most && lloyd.distortion() > rounding {
        lloyd.add_centre(new_centre(&lloyd, CANDIDATES, &mut random).0);
        let mut effort = lloyd.settle(TOLERANCE) + swap(&mut lloyd, &mut random);
        for _ in 0..MOST_FRESH {
            if effort * lloyd.weights().len() > EFFORT {
                break;
            }
            let mut fresh = all[0].clone();
            while fresh.weights().len() < lloyd.weights().len() {
                fresh.add_centre(new_centre(&fresh, 1, &mut random).0);
            }
            effort += points.len() * fresh.weights().len();
            effort += fresh.settle(TOLERANCE) + swap(&mut fresh, &mut random);
            if fresh.distortion() < lloyd.distortion() {
                lloyd = fresh;
            }
        }
        all.push(lloyd.clone());
        step();
    }
    all
}

/// Puts centres elsewhere where that is worth it; about how many distances that took.
fn swap(lloyd: &mut Lloyd, random: &mut Pcg64Mcg) -> usize {
    let mut effort = 0;
    for _ in 0..SWAPS {
        let (centre, gain) = new_centre(lloyd, CANDIDATES, random);
        lloyd.add_centre(centre);
        let (least, loss) = lloyd.least_needed();
        if loss > WORTH * gain {
            lloyd.remove_centre(lloyd.weights().len() - 1);
            break;
        }
        lloyd.remove_centre(least);
        effort += lloyd.settle(TOLERANCE);
    }
    effort
}

/// A distortion up to this is zero.
fn rounding(points: &Points) -> f64 {
    let origin = vec![0.0; points.width()];
    let square = |index: usize| points.weights()[index] * squared_distance(points.point(index), &origin);
    ROUNDING * (0..points.len()).map(square).sum::<f64>()
}

/// A point for a further centre, the best of some drawn, and by how much it would lower the distortion at once.
fn new_centre(lloyd: &Lloyd, candidates: usize, random: &mut Pcg64Mcg) -> (usize, f64) {
    let sums: Vec<f64> = lloyd
        .shares()
        .scan(0.0, |sum, share| {
            *sum += share;
            Some(*sum)
        })
        .collect();
    let total = sums.last().copied().unwrap_or(0.0);
    let mut draw = || {
        let at = random.random::<f64>() * total;
        // The sum may round up to the total.
        sums.partition_point(|&sum| sum <= at).min(sums.len() - 1)
    };
    let candidates: Vec<usize> = (0..candidates).map(|_| draw()).collect();
    let best = candidates.into_iter().map(|point| (point, lloyd.gain(point))).max_by(|a, b| a.1.total_cmp(&b.1));
    best.expect("there are candidates")
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    const SEED: u64 = 20150615;

    fn blobs(count: usize, dimensions: usize, centres: usize) -> Points {
        let mut random = Pcg64Mcg::seed_from_u64(SEED);
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        let middles: Vec<f64> = (0..centres * dimensions).map(|_| 20.0 * normal()).collect();
        let coordinate = |index: usize| middles[index % (centres * dimensions)] + normal();
        let coordinates: Vec<f64> = (0..count * dimensions).map(coordinate).collect();
        Points::new(dimensions, &coordinates, (0..count).map(|index| (index % 7 + 1) as f64).collect())
    }

    #[test]
    fn blobs_far_apart_are_the_clusters() {
        println!("seed {SEED}");
        let points = blobs(700, 3, 7);
        let all = clusterings(&points, 12, SEED, &|_| ());
        assert_eq!(all.iter().map(Clustering::k).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
        assert!(all.is_sorted_by(|a, b| a.distortion >= b.distortion));
        let seven = &all[6];
        for index in 0..700 {
            assert_eq!(seven.cluster[index], seven.cluster[index % 7], "seed {SEED}, point {index}");
        }
        // Three dimensions of variance one, weights 1 to 7 of which each blob has one.
        let expected = 3.0 * points.weights().iter().sum::<f64>();
        assert!((seven.distortion / expected - 1.0).abs() < 0.1, "seed {SEED}: {} {expected}", seven.distortion);
        let weight: f64 = seven.weights.iter().sum();
        assert_eq!(weight, points.weights().iter().sum::<f64>());
        for (cluster, nearest) in seven.nearest.iter().enumerate() {
            assert_eq!(seven.cluster[nearest.unwrap()], cluster as u32);
        }
    }

    #[test]
    fn what_is_sought_on_few_points_is_found_on_all() {
        println!("seed {SEED}");
        let points = blobs(3 * SOUGHT, 3, 7);
        let all = clusterings(&points, 8, SEED, &|_| ());
        let direct = grow(Lloyd::one(&points), 8, SEED, &|| ());
        for (found, direct) in all.iter().zip(&direct) {
            let ratio = found.distortion / direct.distortion();
            assert!((0.9..1.01).contains(&ratio), "seed {SEED}, {} clusters: {ratio}", found.k());
        }
        assert!((all[6].distortion / direct[6].distortion() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_place_that_the_few_points_miss_is_a_cluster() {
        let mut coordinates = vec![0.0; 2 * SOUGHT];
        coordinates[SOUGHT..].fill(1000.0);
        coordinates[7] = 1e-3;
        let mut weights = vec![1e3; 2 * SOUGHT];
        weights[7] = 1e-3;
        let points = Points::new(1, &coordinates, weights);
        let sought = coreset(&points, SOUGHT, SEED);
        assert!((0..sought.len()).all(|index| sought.point(index)[0] != 1e-3), "seed {SEED}: none is missed");
        let all = clusterings(&points, 5, SEED, &|_| ());
        assert_eq!(all.iter().map(Clustering::k).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(all[2].distortion, 0.0);
    }

    #[test]
    fn threads_make_no_difference() {
        println!("seed {SEED}");
        let points = blobs(400, 5, 9);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| clusterings(&points, 20, SEED, &|_| ()))
        };
        for (one, three) in on(1).iter().zip(on(3)) {
            assert_eq!((&one.cluster, one.distortion), (&three.cluster, three.distortion), "seed {SEED}");
        }
    }

    #[test]
    fn there_are_no_more_clusters_than_different_points() {
        let points = |rows: &[f64]| Points::new(1, rows, vec![1.0; rows.len()]);
        let count = |rows: &[f64], most| clusterings(&points(rows), most, SEED, &|_| ()).len();
        assert_eq!(count(&[], 5), 0);
        assert_eq!(count(&[0.1], 5), 1);
        assert_eq!(count(&[0.1; 9], 5), 1);
        assert_eq!(count(&[0.1, 0.7, 0.1, 0.3, 0.7, 0.7], 5), 3);
        assert_eq!(count(&[0.1, 0.7, 0.3], 2), 2);
    }
}
