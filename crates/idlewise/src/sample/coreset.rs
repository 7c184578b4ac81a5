//! A few weighted points that stand for many.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::points::{Points, squared_distance};

/// At most `size` points whose weighted clusterings cost nearly what those of all points do, whatever the centres: a lightweight
/// coreset (Bachem, Lucic and Krause, KDD 2018, algorithm 1). Half of a point's chance is its share of the weight, half that of
/// the distortion about the mean; its weight is divided by the number of times that it is to be expected. Draws are evenly
/// spaced, one random shift for all, which scatters less than independent ones.
pub fn coreset(points: &Points, size: usize, seed: u64) -> Points {
    let centre = points.mean();
    let square = |index: usize| squared_distance(points.point(index), &centre);
    let total: f64 = points.weights().iter().sum();
    let distortion: f64 = (0..points.len()).map(|index| points.weights()[index] * square(index)).sum();
    // Where all points are in one place, their weight alone counts.
    let share = |index: usize| {
        let far = if distortion > 0.0 { square(index) / distortion } else { 1.0 / total };
        points.weights()[index] * (0.5 / total + 0.5 * far)
    };
    let mut shift: f64 = Pcg64Mcg::seed_from_u64(seed).random();
    let (mut chosen, mut weights) = (Vec::new(), Vec::new());
    for index in 0..points.len() {
        let expected = share(index) * size as f64;
        shift += expected;
        if shift >= 1.0 {
            chosen.push(index);
            weights.push(points.weights()[index] / expected * shift.floor());
            shift = shift.fract();
        }
    }
    points.only(&chosen, weights)
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};

    use super::*;

    const SEED: u64 = 2018;

    #[test]
    fn costs_are_nearly_those_of_all_points() {
        println!("seed {SEED}");
        let mut random = Pcg64Mcg::seed_from_u64(SEED);
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        // One of a hundred is far out.
        let coordinates: Vec<f64> =
            (0..60_000).map(|index| normal() + if index / 3 % 100 == 0 { 30.0 } else { 0.0 }).collect();
        let weights: Vec<f64> = (0..20_000).map(|_| f64::exp(2.0 * normal()).ceil()).collect();
        let points = Points::new(3, &coordinates, weights);
        let few = coreset(&points, 2_000, SEED);
        assert!((500..=2_000).contains(&few.len()), "{}", few.len());
        for centres in
            [[[0.0; 4]; 2], [[0.0; 4], [30.0, 30.0, 30.0, 0.0]], [[1.0, -1.0, 2.0, 0.0], [28.0, 31.0, 30.0, 0.0]]]
        {
            let cost = |points: &Points| -> f64 {
                let nearest = |index| {
                    centres
                        .iter()
                        .map(|centre| squared_distance(points.point(index), centre))
                        .fold(f64::INFINITY, f64::min)
                };
                (0..points.len()).map(|index| points.weights()[index] * nearest(index)).sum()
            };
            let (all, few) = (cost(&points), cost(&few));
            assert!((few / all - 1.0).abs() < 0.05, "seed {SEED}: {few} for {all}");
        }
    }

    #[test]
    fn equal_points_are_drawn_by_weight() {
        let points = Points::new(1, &[5.0; 100], vec![2.0; 100]);
        let few = coreset(&points, 10, SEED);
        assert_eq!(few.len(), 10);
        assert!((few.weights().iter().sum::<f64>() - 200.0).abs() < 1e-9);
    }
}
