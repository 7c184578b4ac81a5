//! How many clusters: the Bayesian information criterion, and F_k (SIGMETRICS 2015, section 4.4).

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::kmeans::Clustering;

/// The fewest clusters that are chosen from.
pub const FEWEST_CLUSTERS: usize = 2;
/// The most clusters that are chosen from.
pub const MOST_CLUSTERS: usize = 50;

/// The smallest k is enough whose criterion reaches this share of the range.
const ENOUGH: f64 = 0.9;

/// What a clustering of k clusters is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Criterion {
    /// Number of clusters.
    pub k: usize,
    /// The sum over all points of weight times squared distance to the centroid.
    pub distortion: f64,
    /// The Bayesian information criterion, the lower the better; none where the distortion is zero, which is best of all.
    pub bic: Option<f64>,
    /// F_k of Pham, Dimov and Nguyen (2005), the lower the better.
    pub f_k: f64,
}

/// How k is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The lowest criterion, as the paper does.
    #[default]
    Bic,
    /// The smallest k whose criterion reaches 90 % of the way from the worst to the best, as SimPoint 3.0 does.
    Bic90,
    /// The lowest F_k.
    Fk,
}

/// All rules.
pub const RULES: [Rule; 3] = [Rule::Bic, Rule::Bic90, Rule::Fk];

impl Rule {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bic => "bic",
            Self::Bic90 => "bic90",
            Self::Fk => "fk",
        }
    }

    /// What it does.
    pub fn about(self) -> &'static str {
        match self {
            Self::Bic => "the lowest Bayesian information criterion, as DiskAccel",
            Self::Bic90 => "the fewest clusters that reach 90 % of the criterion's range, as SimPoint 3.0",
            Self::Fk => "the lowest F_k (Pham, Dimov, Nguyen 2005)",
        }
    }

    /// The k that it chooses of `criteria`, which are of 1, 2, ... clusters of so many points; none without a criterion.
    /// From 2 to 50 clusters, and fewer than points; where there are too few points for that, as many as there are.
    pub fn choose(self, criteria: &[Criterion], points: usize) -> Option<usize> {
        let eligible = |c: &&Criterion| c.k >= FEWEST_CLUSTERS && c.k < points;
        let candidates: Vec<&Criterion> = criteria.iter().filter(eligible).collect();
        if candidates.is_empty() {
            return criteria.last().map(|criterion| criterion.k);
        }
        // Without distortion no more clusters are needed.
        if let Some(exact) = candidates.iter().find(|criterion| criterion.bic.is_none()) {
            return Some(exact.k);
        }
        let bic = |criterion: &Criterion| criterion.bic.unwrap_or(f64::NEG_INFINITY);
        let lowest = |value: fn(&Criterion) -> f64| {
            candidates.iter().min_by(|a, b| value(a).total_cmp(&value(b))).map(|criterion| criterion.k)
        };
        match self {
            Self::Bic => lowest(|criterion| criterion.bic.unwrap_or(f64::NEG_INFINITY)),
            Self::Bic90 => {
                let best = candidates.iter().map(|c| bic(c)).fold(f64::INFINITY, f64::min);
                let worst = candidates.iter().map(|c| bic(c)).fold(f64::NEG_INFINITY, f64::max);
                let enough = worst - ENOUGH * (worst - best);
                candidates.iter().find(|criterion| bic(criterion) <= enough).map(|criterion| criterion.k)
            }
            Self::Fk => lowest(|criterion| criterion.f_k),
        }
    }
}

impl FromStr for Rule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = RULES.map(Self::name).join(", ");
        RULES.into_iter().find(|rule| rule.name() == text).ok_or_else(|| format!("write one of {names}"))
    }
}

/// The criteria of clusterings into 1, 2, ... clusters of points with so many dimensions.
pub fn criteria(clusterings: &[Clustering], dimensions: usize) -> Vec<Criterion> {
    let f_k = f_k(&clusterings.iter().map(|clustering| clustering.distortion).collect::<Vec<_>>(), dimensions);
    let of = |(clustering, f_k): (&Clustering, f64)| Criterion {
        k: clustering.k(),
        distortion: clustering.distortion,
        bic: bic(clustering, dimensions),
        f_k,
    };
    clusterings.iter().zip(f_k).map(of).collect()
}

/// The criterion of Schwarz for clusters that are spherical Gaussians of one variance, with the likelihood and the parameters
/// as SimPoint counts them (Sherwood et al., ASPLOS 2002, section 4.2, after Pelleg and Moore, ICML 2000): `-2 l + k (d + 1) ln R` with
/// `l = sum R_i (ln(R_i / R) - ln(2 pi) / 2 - d ln(s^2) / 2) - (R - k) / 2`, `s^2 = distortion / (R - k)`. Weights are scaled to
/// a mean of one, so that they add up to the number of points R. None where there is no distortion, or no more points
/// than clusters.
fn bic(clustering: &Clustering, dimensions: usize) -> Option<f64> {
    let (points, k, d) = (clustering.cluster.len() as f64, clustering.k() as f64, dimensions as f64);
    let total: f64 = clustering.weights.iter().sum();
    let variance = clustering.distortion * (points / total) / (points - k);
    if points <= k || clustering.distortion == 0.0 {
        return None;
    }
    let share = |weight: &f64| if *weight > 0.0 { weight / total * (weight / total).ln() } else { 0.0 };
    let mixture: f64 = points * clustering.weights.iter().map(share).sum::<f64>();
    let gaussian = points / 2.0 * ((2.0 * std::f64::consts::PI).ln() + d * variance.ln()) + (points - k) / 2.0;
    Some(-2.0 * (mixture - gaussian) + k * (d + 1.0) * points.ln())
}

/// Of the distortions of 1, 2, ... clusters (Pham, Dimov, Nguyen 2005, equations 2 and 3).
fn f_k(distortions: &[f64], dimensions: usize) -> Vec<f64> {
    let mut alpha = 0.0;
    let of = |index: usize| {
        if index == 0 {
            return 1.0;
        }
        // The equations want more than one dimension; with one, the first factor would be a quarter all the same.
        alpha = if index == 1 { 1.0 - 3.0 / (4.0 * dimensions as f64) } else { alpha + (1.0 - alpha) / 6.0 };
        let before = distortions[index - 1];
        if before > 0.0 { distortions[index] / (alpha * before) } else { 1.0 }
    };
    (0..distortions.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn criterion(k: usize, bic: f64, f_k: f64) -> Criterion {
        Criterion { k, distortion: 1.0, bic: Some(bic), f_k }
    }

    #[test]
    fn rules_choose_the_lowest_or_what_is_enough() {
        let criteria = [
            criterion(1, -999.0, 0.1),
            criterion(2, 100.0, 0.9),
            criterion(3, 12.0, 0.4),
            criterion(4, 9.9, 0.8),
            criterion(5, 0.0, 0.7),
            criterion(6, 30.0, 0.9),
        ];
        assert_eq!(RULES.map(|rule| rule.choose(&criteria, 100)), [Some(5), Some(4), Some(3)]);
        // Fewer clusters than points; as many as there are where that leaves none.
        assert_eq!(RULES.map(|rule| rule.choose(&criteria, 4)), [Some(3), Some(3), Some(3)]);
        assert_eq!(RULES.map(|rule| rule.choose(&criteria[..2], 2)), [Some(2); 3]);
        assert_eq!(RULES.map(|rule| rule.choose(&criteria[..1], 1)), [Some(1); 3]);
        assert_eq!(RULES.map(|rule| rule.choose(&[], 0)), [None; 3]);
        let exact = [criteria[0], criteria[1], Criterion { bic: None, ..criteria[2] }];
        assert_eq!(RULES.map(|rule| rule.choose(&exact, 100)), [Some(3); 3]);
    }

    #[test]
    fn the_criterion_is_what_its_equation_gives() {
        // Points 0, 2 and 10 with weights 1, 1 and 2, scaled to 3/4, 3/4 and 3/2: s^2 = (2 * 3/4) / (3 - 2).
        let clustering = Clustering {
            cluster: vec![0, 0, 1],
            weights: vec![2.0, 2.0],
            distortion: 2.0,
            nearest: vec![Some(0), Some(2)],
        };
        let likelihood = 2.0 * 1.5 * (0.5f64.ln() - (2.0 * std::f64::consts::PI).ln() / 2.0 - 1.5f64.ln() / 2.0) - 0.5;
        let expected = -2.0 * likelihood + 4.0 * 3f64.ln();
        assert!((bic(&clustering, 1).unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn f_k_is_one_where_clusters_add_no_more_than_for_uniform_points() {
        // Alpha for two dimensions: 5/8, 11/16, 71/96.
        let ours = f_k(&[80.0, 50.0, 34.375, 0.0, 0.0], 2);
        assert_eq!(ours, [1.0, 1.0, 1.0, 0.0, 1.0]);
    }
}
